"""Options that several commands share, each described once, in the groups of the help page."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from muxgcl.io import DATASETS
from muxgcl.methods import METHODS

TRAINING, FOLDER, SCORES, OUTPUT = "Training", "Run folder", "Scores", "Output"
PRESETS = ("best", "paper", "quick", "auto")


def seed_of_32_bits(seed: int) -> int:
    """The seed, if numpy and scikit-learn take it."""
    if not 0 <= seed < 2**32:
        raise typer.BadParameter(f"expected an integer from 0 to {2**32 - 1}, got {seed}")
    return seed


class Protocol(StrEnum):
    """`muxgcl.runs.scoring.Protocol` as Typer takes it in a list."""

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
        ".parquet, .arrow), a folder with edges.* and nodes.*, .npz, .graphml, .gexf, .gml, .json.",
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
        "(chosen for the graph at hand: the default for other graphs), or a .toml file.",
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
    typer.Option(
        help="Make this many runs, one for each seed from --seed on.", rich_help_panel=TRAINING
    ),
]
Members = Annotated[
    int,
    typer.Option(
        help="Train this many seeds, from --seed on, and put their embeddings side by side.",
        rich_help_panel=TRAINING,
    ),
]
OutputWidth = Annotated[
    int | None,
    typer.Option(
        help="Compress the embedding to this many columns; 0: all that is read out. mux-hop has "
        "1,024 a member by default.",
        rich_help_panel=TRAINING,
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.", rich_help_panel=TRAINING)]
BackendName = Annotated[
    str,
    typer.Option(
        "--backend",
        help="How to compute the contrast: auto, reference, chunked, reference/fp32 or "
        "chunked/fp32 (round nothing), fused, or fused/PRECISION with fp32, tf32, fp16 or bf16.",
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
        help="Size of the random sample of anchors in each step; by default all nodes, or fewer "
        "where training on a CPU would take more than a minute (other methods than mux-hop: "
        "eight, or twenty beyond 50,000 nodes).",
        rich_help_panel=TRAINING,
    ),
]
Negatives = Annotated[
    int | None,
    typer.Option(
        "--negatives",
        metavar="M",
        help="Size of the random sample that anchors are contrasted with; by default as --anchors.",
        rich_help_panel=TRAINING,
    ),
]
Exact = Annotated[
    bool,
    typer.Option(
        "--exact",
        help="Contrast all nodes with all others, however long it takes.",
        rich_help_panel=TRAINING,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Print the estimated time and memory, then stop: nothing is trained or written.",
        rich_help_panel=TRAINING,
    ),
]
LogOption = Annotated[
    Log | None,
    typer.Option(
        "--log",
        metavar="NAME",
        help="Also send the losses to `tensorboard` (files in the run folder), `mlflow` or "
        "`wandb`.",
        rich_help_panel=TRAINING,
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=1.0,
        help="Seconds that a process of torchrun waits for the others.",
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
        help="Continue the run in the run folder; with more --epochs, train longer. Where there "
        "is no run, a new one begins, and a line says so.",
        rich_help_panel=FOLDER,
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace an existing run.", rich_help_panel=FOLDER),
]

# scores
Protocols = Annotated[
    list[Protocol] | None,
    typer.Option(
        "--protocol",
        metavar="NAME",
        help="How to classify; may be repeated. `holdout`: random splits, tested on nodes whose "
        "labels `tune` does not read; `holdout-all`: tested on all other nodes; `public`: the "
        "published split; `paper`: the best epoch on test nodes, optimistic.",
        rich_help_panel=SCORES,
    ),
]
Splits = Annotated[
    int, typer.Option(help="How many random splits `holdout` takes.", rich_help_panel=SCORES)
]
SplitSeed = Annotated[
    int,
    typer.Option(
        callback=seed_of_32_bits,
        help="The seed of the splits, shared by all methods.",
        rich_help_panel=SCORES,
    ),
]
Controls = Annotated[
    bool | None,
    typer.Option(
        "--controls/--no-controls",
        help="Also score controls that need no training; the default where there are labels.",
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

# output
Json = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON object on the last line of output.", rich_help_panel=OUTPUT
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.", rich_help_panel=OUTPUT)]
