"""What was measured on large graphs and with sampled contrasts, for docs/scale.md."""

from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from muxgcl.evaluate.controls import control_name
from muxgcl.io.schema import read_lines
from muxgcl.reproduce.numbers import DASH, device
from muxgcl.reproduce.paper import TITLES
from muxgcl.reproduce.typeset import Table, markdown

PAGE, README = Path("docs/scale.md"), Path("README.md")
FILES = "edges.csv --features nodes.csv --label-column label"
GRAPHS = {  # that whole runs were timed on, by what follows `muxgcl run`
    "cora": "Cora, 2,708 nodes",
    "citeseer": "CiteSeer, 3,327 nodes",
    "photo": "Photo, 7,650 nodes",
    "computers": "Computers, 13,752 nodes",
    "pubmed": "PubMed, 19,717 nodes",
    FILES: "CSV files, 18,333 nodes, 6,805 columns",
    "sbm-100000": "block model, 100,000 nodes",
    "sbm-noisy-10000": "block model, noisy words, 10,000 nodes",
}


def size_table(path: Path) -> Table:
    """One line a training on a block model, oldest first."""
    rows = read_lines(path)
    return Table(
        "scale",
        "Block models: time, memory and test accuracy in percent",
        ["nodes", "edges", "sample", "steps", "training", "GPU memory", "mux-hop", "controls"],
        [_line(row) for row in rows],
        [
            "One line a training, in the order in which they were done. Training includes walks "
            "and affinities; the sample is $B = M$; memory is all that the process took. Accuracy "
            "of the linear probe on 20,000 of the nodes; controls are the features X, A X and "
            "A^2 X. Records: `records/scale.jsonl`, by `benchmarks/scale.py`."
        ],
    )


def growth(path: Path) -> list[list[dict[str, Any]]]:
    """Trainings of several sizes, of one commit, with the same sample and as many steps."""
    found: dict[tuple[str, int, int], list[dict[str, Any]]] = defaultdict(list)
    for row in read_lines(path):
        found[row["commit"], row["anchors"], row["settings"]["epochs"]].append(row)
    return [rows for rows in found.values() if len(rows) > 2]


def write_figures(root: Path) -> list[Path]:
    """Time and memory against the number of nodes, with slopes, as SVG."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "muxgcl"  # the same records, the same file
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    titles = {"train_s": "seconds to train", "process_mib": "GPU memory, MiB"}
    for rows in growth(root / "records" / "scale.jsonl"):
        nodes = [row["nodes"] for row in rows]
        for axis, (key, title) in zip(axes, titles.items(), strict=True):
            values = [row[key] for row in rows]
            slope = np.polyfit(np.log(nodes), np.log(values), 1)[0]
            axis.loglog(nodes, values, "o-", label=f"slope {slope:.2f}")
            axis.set(xlabel="nodes", title=title)
            axis.grid(alpha=0.3, which="both")
            axis.legend()
    found = root / "docs" / "figures" / "scale-growth.svg"
    figure.savefig(found, metadata={"Date": None})
    plt.close("all")
    return [found]


def _line(row: dict[str, Any]) -> list[str]:
    scores = {name: fmean(values) for name, values in row["accuracy"].items()}
    ours = scores.pop("mux-hop")
    return [
        f"{row['nodes']:,}",
        f"{row['edges']:,}",
        f"{row['anchors']:,}",
        f"{row['settings']['epochs']:,}",
        f"{row['train_s']:.0f} s",
        f"{row['process_mib'] / 1024:.1f} GiB",
        f"{ours:.1f}",
        ", ".join(f"{score:.1f}" for score in scores.values()),
    ]


def sample_table(path: Path) -> Table:
    """Accuracy by the size of the sample, beside the exact contrast."""
    rows = read_lines(path)
    found: dict[tuple[str, int | None], list[float]] = defaultdict(list)
    for row in rows:
        found[row["dataset"], row["anchors"]].append(fmean(row["accuracy"]))
    nodes = {row["dataset"]: row["nodes"] for row in rows}
    graphs = [name for name in TITLES if any(dataset == name for dataset, _ in found)]
    sizes = sorted({size for _, size in found if size is not None})

    def cell(graph: str, size: int | None) -> str:
        values, exact = found.get((graph, size)), found.get((graph, None))
        if not values or not exact:
            return "all" if size is not None and size >= nodes[graph] else DASH
        mean, seeds = fmean(values), f", {len(values)} seeds" if len(values) > 1 else ""
        if size is None:
            return f"{mean:.2f}{seeds}"
        return f"{mean:.2f} ({mean - fmean(exact):+.2f}{seeds})"

    body = [
        ["all nodes" if size is None else f"{size:,}", *(cell(graph, size) for graph in graphs)]
        for size in (None, *sizes)
    ]
    return Table(
        "sampled",
        "Accuracy in percent with a sampled contrast",
        ["$B = M$", *(TITLES[graph] for graph in graphs)],
        body,
        [
            "`mux-hop`, preset `best`, at the preset's number of steps; 10 splits of the "
            "development half, one seed unless more are named; in brackets the difference to all "
            "nodes. all: the graph has no more nodes than that. Not run: 1,024 and 4,096 nodes, "
            "other numbers of negatives than of anchors, and a second seed where none is named. "
            "Records: `records/sampled.jsonl`, by "
            "`benchmarks/scale.py --accuracy`."
        ],
    )


def network_table(path: Path) -> Table:
    """Accuracy on PubMed by sample, steps and network: what the settings of a sample cost."""
    found: dict[tuple[str, int, int], float] = {}
    for row in read_lines(path):
        changes = row["changes"]
        if row["dataset"] == "pubmed" and changes.get("norm") and changes["lr"] == 1e-3:
            shape = f"{changes['hidden']:,} and {changes['width']:,}, {changes['norm']}"
            found[shape, row["anchors"], row["epochs"]] = row["accuracy"]
    shapes = sorted(sorted({shape for shape, _, _ in found}), key=_by_width)
    columns = sorted({(size, steps) for _, size, steps in found})
    body = [
        [shape, *(f"{v:.2f}" if (v := found.get((shape, *at))) else DASH for at in columns)]
        for shape in shapes
    ]
    return Table(
        "sampled-network",
        "PubMed: accuracy in percent by sample, steps and network",
        ["hidden and width, norm", *(f"{size:,} x {steps}" for size, steps in columns)],
        body,
        [
            "Columns: nodes a step, and steps. Biases begin at zero; all else as preset `best` has "
            "it. One seed, 10 splits of the development half. "
            f"{DASH}: not run. Records: `records/sampled-search.jsonl`, by "
            "`benchmarks/candidates.py sampled`."
        ],
    )


def fanout_table(path: Path) -> Table:
    """Accuracy with all neighbours of a node, or some."""
    rows = read_lines(path)
    graphs = [name for name in TITLES if any(row["dataset"] == name for row in rows)]
    found = {(row["changes"]["fanout"], row["dataset"]): row for row in rows}
    fanouts = sorted({fanout for fanout, _ in found})
    body = [
        [
            "all" if fanout == 0 else str(fanout),
            *(
                f"{row['accuracy']:.2f}" if (row := found.get((fanout, g))) else DASH
                for g in graphs
            ),
        ]
        for fanout in fanouts
    ]
    return Table(
        "fanout",
        "Accuracy in percent by fanout",
        ["fanout", *(TITLES[graph] for graph in graphs)],
        body,
        [
            "256 nodes a step, 200 steps of a narrow network (`hidden` 512, `width` 256) on a CPU; "
            "one seed, 10 splits of the development half. Records: `records/fanout-search.jsonl`, "
            "by `benchmarks/candidates.py fanout`."
        ],
    )


def _by_width(shape: str) -> list[int]:
    return [-int(part.replace(",", "")) for part in shape.split() if part[0].isdigit()]


def run_table(path: Path) -> Table:
    """Whole runs: what was said before, and what they took."""
    return Table(
        "runs",
        "Whole runs on two cores: loading, walks, training, scores, controls and report",
        ["command", "said before", "took", "memory", "accuracy", "best control", "commit"],
        [
            [f"`{row['command']}`", row["estimate"][0], *_outcome(row), row["commit"]]
            for row in _runs(path)
        ],
        [
            "One line a run, in the order in which they were done; later runs use more of the "
            "methods described above. Accuracy is on the report half: PubMed's was seen after each "
            "of its runs, and defaults were changed in between (`docs/evaluation.md`, What was "
            "looked at). Records: `records/run-time.jsonl`, by `benchmarks/run_time.py`."
        ],
    )


def last_runs(path: Path) -> Table:
    """The last run on each graph."""
    last = {row["command"]: row for row in _runs(path)}
    timed = [(name, last.get(f"muxgcl run {graph} --json")) for graph, name in GRAPHS.items()]
    return Table(
        "last-runs",
        "`muxgcl run GRAPH` on two cores, without a GPU: from files to scores and report",
        ["graph", "took", "memory", "accuracy", "best control", "commit"],
        [[name, *_outcome(row), row["commit"]] for name, row in timed if row],
        [
            "The default: `mux-hop`, preset `best` on the benchmark graphs and `auto` on others; "
            "each step uses a sample of the nodes. One run of each, one seed, nothing else on the "
            "machine. Accuracy in percent, of the benchmark graphs on the report half. The CSV "
            "files are a block model as `benchmarks/as_csv.py` writes it. Records: "
            "`records/run-time.jsonl`, by `benchmarks/run_time.py`."
        ],
    )


def _runs(path: Path) -> list[dict[str, Any]]:
    return [row for row in read_lines(path) if row.get("scores") and row.get("estimate")]


def _outcome(row: dict[str, Any]) -> list[str]:
    """Time, memory, accuracy, the best control."""
    scores = dict(row["scores"])
    ours = scores.pop("mux-hop")
    rival = max(scores, key=lambda name: scores[name])
    seconds = row["first_s"]
    return [
        f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min",
        f"{row['peak_mib'] / 1024:.1f} GiB",
        f"{ours:.2f}",
        f"{scores[rival]:.2f} ({control_name(rival).replace('|', ', ')})",
    ]


def ring_table(path: Path) -> Table:
    """An epoch on several processes, by when the ring sends."""
    rows = read_lines(path)
    return Table(
        "ring",
        "An epoch on several processes that share two cores, or one GPU, by when tables are sent",
        [
            "processes",
            "device",
            "nodes",
            "sent by each",
            "nothing sent",
            "sent before",
            "sent after",
        ],
        [
            [
                f"{row['workers']}",
                device(row["device"]),
                f"{row['nodes']:,}",
                f"{row['sent_mib']:.1f} MiB",
                *(_spread(row["ms"][way]) for way in ("alone", "early", "late")),
            ]
            for row in rows
        ],
        [
            "Milliseconds: the median, and in brackets the middle half of the epochs. `mux-gcl` "
            "with rows of 128 numbers, one thread a process, Gloo. Tables are sent before a block "
            "of pairs is computed, as in training, or after it. Other programs used the two cores "
            "meanwhile; the GPU was alone. Records: `records/ring.jsonl`, by `benchmarks/ring.py`."
        ],
    )


def _spread(times: list[float]) -> str:
    low, middle, high = np.quantile(times, [0.25, 0.5, 0.75])
    return f"{middle:,.0f} ({low:,.0f} to {high:,.0f})"


def blocks(root: Path) -> dict[Path, str]:
    """What stands between the markers of the page."""
    records = root / "records"
    figure = "![Time and memory against the number of nodes](figures/scale-growth.svg)\n"
    parts = (
        markdown(run_table(records / "run-time.jsonl")),
        markdown(size_table(records / "scale.jsonl")),
        figure,
        markdown(sample_table(records / "sampled.jsonl")),
        markdown(network_table(records / "sampled-search.jsonl")),
        markdown(fanout_table(records / "fanout-search.jsonl")),
        markdown(ring_table(records / "ring.jsonl")),
    )
    return {PAGE: "\n".join(parts), README: markdown(last_runs(records / "run-time.jsonl"))}
