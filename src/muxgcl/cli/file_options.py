"""Options on how files are read, which several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from muxgcl.app import LoadOptions

FILES = "Reading files"  # their group on the help page

DataRoot = Annotated[
    Path | None,
    typer.Option(
        help="The folder of datasets; otherwise $MUXGCL_DATA, then the cache folder.",
        rich_help_panel=FILES,
    ),
]
FeaturesFile = Annotated[
    Path | None,
    typer.Option(
        "--features", help="Node features: a file joined by node id.", rich_help_panel=FILES
    ),
]
LabelsFile = Annotated[
    Path | None,
    typer.Option("--labels", help="Node labels: a file joined by node id.", rich_help_panel=FILES),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        help="The column of labels; it is never used as a feature.", rich_help_panel=FILES
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(help="The column of node ids; the first one by default.", rich_help_panel=FILES),
]
SourceColumn = Annotated[
    str | None,
    typer.Option("--source", help="The edge list's column of sources.", rich_help_panel=FILES),
]
TargetColumn = Annotated[
    str | None,
    typer.Option("--target", help="The edge list's column of targets.", rich_help_panel=FILES),
]
WeightColumn = Annotated[
    str | None,
    typer.Option("--weight", help="The edge list's column of weights.", rich_help_panel=FILES),
]
EdgeTypeColumn = Annotated[
    str | None,
    typer.Option(
        "--edge-type",
        metavar="COLUMN",
        help="The edge list's column of edge types; each has its own propagation (mux-hop).",
        rich_help_panel=FILES,
    ),
]
Directed = Annotated[
    bool | None,
    typer.Option(
        "--directed",
        help="Keep the directions of edges; by default edges are made undirected (mux-hop).",
        rich_help_panel=FILES,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether text files begin with a line of column names; detected by default.",
        rich_help_panel=FILES,
    ),
]

Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include",
        metavar="COLUMN",
        help="Only this column becomes a feature; may be repeated, and may be a pattern: 'word_*'.",
        rich_help_panel=FILES,
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="COLUMN",
        help="This column does not become a feature; may be repeated, and may be a pattern.",
        rich_help_panel=FILES,
    ),
]
Structure = Annotated[
    bool | None,
    typer.Option(
        "--structure",
        help="Add degree and position, made from the edges, to the features; a graph without "
        "features has them anyway.",
        rich_help_panel=FILES,
    ),
]
NoScale = Annotated[
    bool,
    typer.Option(
        "--no-scale",
        help="Keep all numbers of the features as they are; a large .npy stays on the disk then.",
        rich_help_panel=FILES,
    ),
]


def load_options(
    *,
    data_root: Path | None = None,
    features: Path | None = None,
    labels: Path | None = None,
    label_column: str | None = None,
    id_column: str | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    edge_type: str | None = None,
    directed: bool | None = None,
    header: bool | None = None,
    include: list[str] | None = None,
    exclude: list[str] | None = None,
    structure: bool | None = None,
    no_scale: bool = False,
) -> LoadOptions:
    """The options about files under the names that the command line has for them."""
    return LoadOptions(
        data_root=data_root,
        features=features,
        labels=labels,
        label_column=label_column,
        id_column=id_column,
        source_column=source,
        target_column=target,
        weight_column=weight,
        edge_type_column=edge_type,
        directed=directed or None,
        header=header,
        include=tuple(include) if include else None,
        exclude=tuple(exclude) if exclude else None,
        structure=structure or None,
        scale=False if no_scale else None,
    )
