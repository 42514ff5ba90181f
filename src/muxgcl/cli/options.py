"""Options that several commands share, each described once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

GraphName = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A dataset's name (see `muxgcl datasets`) or a path: an edge list (.csv, .tsv, "
        ".parquet), a folder with edges.* and nodes.*, .npz, .graphml or .gexf.",
    ),
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
MethodName = Annotated[
    str, typer.Option("--method", help="Which method to train; see `muxgcl methods`.")
]
PresetName = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="Where settings start: best (the default for a benchmark graph), paper (as published),"
        " quick (a CPU in a coffee break), auto (picked from the graph's size and density: the "
        "default for any other graph), or a .toml file of settings such as `muxgcl tune` writes.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override one setting; may be repeated."),
]
Epochs = Annotated[int | None, typer.Option(help="How many epochs to train.")]
Seed = Annotated[int, typer.Option(help="The seed of everything random in a run.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
BackendName = Annotated[
    str,
    typer.Option(
        "--backend",
        help="How to compute the contrast: auto, reference, chunked, fused, or fused/PRECISION "
        "with fp32, tf32, fp16 or bf16.",
    ),
]
DataRoot = Annotated[
    Path | None,
    typer.Option(help="Where datasets lie; otherwise $MUXGCL_DATA, then the cache folder."),
]
Splits = Annotated[int, typer.Option(help="How many random splits `holdout` takes.")]
SplitSeed = Annotated[
    int,
    typer.Option(min=0, max=2**32 - 1, help="The seed of the splits, shared by all methods."),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on the last line of output.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]

FeaturesFile = Annotated[
    Path | None, typer.Option("--features", help="Node features: a file joined by node id.")
]
LabelsFile = Annotated[
    Path | None, typer.Option("--labels", help="Node labels: a file joined by node id.")
]
LabelColumn = Annotated[
    str | None, typer.Option(help="The column of labels; it is never used as a feature.")
]
IdColumn = Annotated[
    str | None, typer.Option(help="The column of node ids; the first one by default.")
]
SourceColumn = Annotated[
    str | None, typer.Option("--source", help="The edge list's column of sources.")
]
TargetColumn = Annotated[
    str | None, typer.Option("--target", help="The edge list's column of targets.")
]
WeightColumn = Annotated[
    str | None, typer.Option("--weight", help="The edge list's column of weights.")
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether text files begin with a line of names; looked for by default.",
    ),
]


class Protocol(StrEnum):
    """How embeddings are judged."""

    holdout = "holdout"
    public = "public"
    paper = "paper"


class CaptureMode(StrEnum):
    """Whether the training step is captured as a CUDA graph."""

    auto = "auto"
    on = "on"
    off = "off"
