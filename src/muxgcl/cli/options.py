"""Options that several commands share, each described once, in the groups of the help page."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from muxgcl.app import LoadOptions
from muxgcl.io import DATASETS
from muxgcl.methods import METHODS

TRAINING, FOLDER, SCORES, FILES, OUTPUT = (
    "Training",
    "Run folder",
    "Scores",
    "Reading files",
    "Output",
)
PRESETS = ("best", "paper", "quick", "auto")


def _seed_of_splits(seed: int) -> int:
    if not 0 <= seed < 2**32:
        raise typer.BadParameter(f"expected an integer from 0 to {2**32 - 1}, got {seed}")
    return seed


class Protocol(StrEnum):
    """How embeddings are judged."""

    holdout = "holdout"
    holdout_all = "holdout-all"
    public = "public"
    paper = "paper"


class CaptureMode(StrEnum):
    """Whether the training step is captured as a CUDA graph."""

    auto = "auto"
    on = "on"
    off = "off"


class Log(StrEnum):
    """Where a run is logged besides its own metrics.jsonl."""

    tensorboard = "tensorboard"
    mlflow = "mlflow"
    wandb = "wandb"


GraphName = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A dataset's name (see `muxgcl datasets`) or a path: an edge list (.csv, .tsv, "
        ".parquet), a folder with edges.* and nodes.*, .npz, .graphml or .gexf.",
        autocompletion=lambda: list(DATASETS),
    ),
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]

# training
MethodName = Annotated[
    str,
    typer.Option(
        "--method",
        help="Which method to train; see `muxgcl methods`.",
        rich_help_panel=TRAINING,
        autocompletion=lambda: list(METHODS),
    ),
]
PresetName = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="Where settings start: best (the default for a named dataset), paper, quick, auto "
        "(by the graph's size and density: the default for other graphs), or a .toml file.",
        rich_help_panel=TRAINING,
        autocompletion=lambda: list(PRESETS),
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override one setting; may be repeated.",
        rich_help_panel=TRAINING,
    ),
]
Epochs = Annotated[
    int | None, typer.Option(help="How many epochs to train.", rich_help_panel=TRAINING)
]
Seed = Annotated[
    int, typer.Option(help="The seed of everything random in a run.", rich_help_panel=TRAINING)
]
Seeds = Annotated[
    int,
    typer.Option(help="Train with this many seeds, counted up.", rich_help_panel=TRAINING),
]
Members = Annotated[
    int,
    typer.Option(
        help="Train this many seeds, counted up, and put their rows side by side in one embedding.",
        rich_help_panel=TRAINING,
    ),
]
OutputWidth = Annotated[
    int | None,
    typer.Option(
        help="Compress the embedding to this many columns; all that is read out by default.",
        rich_help_panel=TRAINING,
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.", rich_help_panel=TRAINING)]
BackendName = Annotated[
    str,
    typer.Option(
        "--backend",
        help="How to compute the contrast: auto, reference, chunked, fused, or fused/PRECISION "
        "with fp32, tf32, fp16 or bf16.",
        rich_help_panel=TRAINING,
    ),
]
Capture = Annotated[
    CaptureMode,
    typer.Option(
        help="Capture the training step as a CUDA graph (GPU only).", rich_help_panel=TRAINING
    ),
]
Anchors = Annotated[
    int | None,
    typer.Option(
        "--anchors",
        metavar="B",
        help="Nodes that a step contrasts, drawn anew each time; all by default, or as many as "
        "about ten minutes on a CPU allow.",
        rich_help_panel=TRAINING,
    ),
]
Negatives = Annotated[
    int | None,
    typer.Option(
        "--negatives",
        metavar="M",
        help="Nodes that they are contrasted with; all by default, or as --anchors.",
        rich_help_panel=TRAINING,
    ),
]
Exact = Annotated[
    bool,
    typer.Option(
        "--exact",
        help="Contrast all nodes with all, however long it takes.",
        rich_help_panel=TRAINING,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Tell what it would take, and stop: nothing is trained or written.",
        rich_help_panel=TRAINING,
    ),
]
LogOption = Annotated[
    Log | None,
    typer.Option(
        "--log",
        help="Also send the losses to TensorBoard (files in the run folder), MLflow or W&B.",
        rich_help_panel=TRAINING,
    ),
]

# the run folder
Out = Annotated[
    Path | None,
    typer.Option("--out", help="The run folder; under runs/ by default.", rich_help_panel=FOLDER),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on where the run folder stands; with more --epochs, train longer.",
        rich_help_panel=FOLDER,
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace a run that is there.", rich_help_panel=FOLDER),
]

# scores
Protocols = Annotated[
    list[Protocol] | None,
    typer.Option(
        "--protocol",
        metavar="NAME",
        help="How to classify; may be repeated. `holdout`: test nodes whose labels no search of "
        "settings reads; `holdout-all`: others too; `public`: the published split; `paper`: "
        "optimistic by design.",
        rich_help_panel=SCORES,
    ),
]
Splits = Annotated[
    int, typer.Option(help="How many random splits `holdout` takes.", rich_help_panel=SCORES)
]
SplitSeed = Annotated[
    int,
    typer.Option(
        callback=_seed_of_splits,
        help="The seed of the splits, shared by all methods.",
        rich_help_panel=SCORES,
    ),
]
Controls = Annotated[
    bool | None,
    typer.Option(
        "--controls/--no-controls",
        help="Score what needs no training beside the method: by default where there are labels.",
        rich_help_panel=SCORES,
    ),
]
Report = Annotated[
    bool,
    typer.Option(
        "--report/--no-report",
        help="Write report.html into the run folder.",
        rich_help_panel=OUTPUT,
    ),
]

# reading files
DataRoot = Annotated[
    Path | None,
    typer.Option(
        help="Where datasets lie; otherwise $MUXGCL_DATA, then the cache folder.",
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
        help="The edge list's column of types; each is a propagation of its own (mux-hop).",
        rich_help_panel=FILES,
    ),
]
Directed = Annotated[
    bool | None,
    typer.Option(
        "--directed",
        help="Keep the directions of edges, which otherwise go both ways (mux-hop).",
        rich_help_panel=FILES,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether text files begin with a line of names; looked for by default.",
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

# output
Json = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON object on the last line of output.", rich_help_panel=OUTPUT
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.", rich_help_panel=OUTPUT)]


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
    )
