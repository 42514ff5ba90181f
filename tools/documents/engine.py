"""The engine's figures for README and docs, from `records/engine.jsonl`: nothing is typed in."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from muxgcl.evaluate import paired_difference
from muxgcl.io.schema import read_lines
from muxgcl.reproduce.job import settings_of, stated
from muxgcl.reproduce.numbers import interval
from muxgcl.reproduce.paper import TITLES
from muxgcl.reproduce.table5 import counts
from muxgcl.reproduce.typeset import Table, markdown
from muxgcl.runs.plan import Plan

Row = dict[str, Any]
SEVERAL_STREAMS = "4e535e6"  # before bbc06dc, from which on the warm-ups of a capture share one
BANDWIDTH = 4.8  # TB/s of an H200's memory by its datasheet


def read(path: Path) -> list[Row]:
    """The records; of several measurements of one thing the one that counts."""
    kept: dict[tuple[Any, ...], Row] = {}
    names = ("kind", "dataset", "nodes", "width", "backend", "precision", "device")
    for row in read_lines(path):
        key = tuple(row.get(name) for name in names)
        if counts(row, kept.get(key)):
            kept[key] = row
    return list(kept.values())


def epochs_table(rows: Sequence[Row]) -> Table:
    """A whole epoch on a GPU: the dense step against ours."""
    body = []
    on_gpu = [row for row in rows if row["kind"] == "epoch" and "threads" not in row["device"]]
    for row in sorted(on_gpu, key=lambda row: row["nodes"]):
        if row["backend"] != "fused":
            continue
        dense = next(
            (r for r in on_gpu if (r["dataset"], r["backend"]) == (row["dataset"], "reference")),
            None,
        )
        name = TITLES.get(row["dataset"], "random graph")
        body.append(
            [
                f"{name}, {row['nodes']:,} nodes",
                _time(row["epoch_ms"]),
                f"{row['peak_mib']:,.0f} MiB",
                _time(dense["epoch_ms"]) if dense else "—",
                f"{dense['peak_mib']:,.0f} MiB" if dense else "—",
                f"{dense['epoch_ms'] / row['epoch_ms']:.1f}x" if dense else "—",
                ", ".join(r["commit"][:7] for r in (row, dense) if r),
            ]
        )
    devices = ", ".join(sorted({row["device"] for row in on_gpu}))
    return Table(
        "epochs",
        "One training epoch of MUX-GCL: three scales, soft negatives, all pairs",
        ["graph", "ours", "memory", "dense step", "memory", "faster", "commits"],
        body,
        [
            f"{devices}; width 256 (Cora: 128); medians. The dense step is plain torch with n x n "
            "matrices and TF32 products; ours has fused fp16 products with 32-bit sums and is "
            "captured as one CUDA graph. Memory is the peak above the graph's own tensors. —: not "
            "run, or does not fit. Records: `records/engine.jsonl`, by `muxgcl bench epoch`.",
            "The last column has the commits at which ours and the dense step were measured. Ours "
            "is the last measurement. The dense step is the fastest one recorded of that graph."
            f"{_older(on_gpu)}",
        ],
    )


def _older(rows: Sequence[Row]) -> str:
    """Which rows of ours were measured before warm-ups shared one stream."""
    names = dict.fromkeys(
        TITLES.get(row["dataset"], "random graphs")
        for row in sorted(rows, key=lambda row: row["nodes"])
        if row["backend"] == "fused" and row["commit"].startswith(SEVERAL_STREAMS)
    )
    if not names:
        return ""
    return (
        f" Older than the rest: {', '.join(names)}. Warm-ups had a stream each then, and each "
        "stream kept 32 MiB of cuBLAS workspace, so their memory is more than an epoch takes now."
    )


def kernels_table(rows: Sequence[Row]) -> Table:
    """The loss of one scale, forward and backward, and its share of the matmul ceiling."""
    kernels = [r for r in rows if r["kind"] == "kernel"]
    on_gpu = {r["device"] for r in kernels if r["backend"] == "fused"}
    body = [
        [
            f"{row['nodes']:,}",
            str(row["width"]),
            f"{row['backend']} {row['precision']}",
            _time(row["ms"]),
            f"{row['peak_mib']:.0f} MiB",
            f"{row['tflops']:.0f}",
            f"{100 * row['share_of_ceiling']:.0f} %",
        ]
        for row in sorted(kernels, key=lambda row: (row["nodes"], row["ms"]))
        if row["device"] in on_gpu
    ]
    return Table(
        "kernels",
        "The loss of one scale, forward and backward (2n anchors, 2n keys, rank 128)",
        ["nodes", "width", "backend", "time", "memory", "TFLOP/s", "of the ceiling"],
        body,
        [
            "The ceiling is an 8192-cubed library product on random data in the same run and "
            "precision. Work is counted at its least. The dense backend "
            "was not tried above 13,000 nodes here. By `muxgcl bench kernels`.",
        ],
    )


def parity_table(path: Path) -> Table:
    """Whether speed costs accuracy: the same seeds and splits on two backends."""
    body, rows = [], read_lines(path)
    for row in rows:
        backends = [row["accuracy"][backend] for backend in ("fast", "plain")]
        gap = paired_difference(*(row["per_split"][backend] for backend in ("fast", "plain")))
        body.append(
            [
                TITLES[row["dataset"]],
                str(row["epochs"]),
                *(
                    f"{backend['mean']:.2f} ± {backend['std'] / backend['n'] ** 0.5:.2f}"
                    for backend in backends
                ),
                interval(gap, digits=3).rstrip("*"),
            ]
        )
    return Table(
        "parity",
        "As accurate as plain torch: test accuracy of MUX-GCL with preset `best`",
        ["graph", "epochs", "fused fp16, captured", "dense fp32", "difference"],
        body,
        [
            "Mean over 5 seeds by 20 splits ± standard error over seeds; differences are paired, "
            f"with a 95 % t interval over seeds and splits.{_then(rows)} Records: "
            "`records/parity.jsonl`, by `benchmarks/parity.py`.",
        ],
    )


def _then(rows: Sequence[Row]) -> str:
    """How these rows differ from what the preset and the protocol are today."""
    told = ""
    if earlier := [row for row in rows if not _is_todays(row)]:
        which = "All rows are" if len(earlier) == len(rows) else f"{len(earlier)} rows are"
        told = (
            f" {which} at settings that the preset had before ({_commits(earlier)}), so two rows "
            "of one graph are two settings."
        )
    if any("protocol" not in row for row in rows):  # these are older than the two halves
        told += " Test nodes are of both halves of the labels."
    return told


def _is_todays(row: Row) -> bool:
    """Whether preset `best` still has the settings that were measured."""
    now = settings_of(Plan.make("mux-gcl", row.get("preset", "best"), row["dataset"]))
    return bool(stated(row.get("settings", {})) == now["settings"] | now["train"])


def _commits(rows: Sequence[Row]) -> str:
    return ", ".join(dict.fromkeys(row["commit"][:7] for row in rows))


def hops_table(path: Path) -> Table:
    """An epoch over hops against one of MUX-GCL."""
    rows = read_lines(path)
    graphs = [name for name in TITLES if any(row["dataset"] == name for row in rows)]
    found = {(row["dataset"], row["anchors"]): row for row in rows}

    def cell(graph: str, anchors: str) -> str:
        row = found.get((graph, anchors))
        return f"{_time(row['epoch_ms']['mux-hop'])} ({row['ratio']:.2f}x)" if row else "—"

    body = [
        [TITLES[graph], _time(found[graph, "last"]["epoch_ms"]["mux-gcl"])]
        + [cell(graph, anchors) for anchors in ("last", "all")]
        for graph in graphs
    ]
    return Table(
        "hop-epoch",
        "One training epoch over hops",
        ["graph", "MUX-GCL", "over hops, last scale as anchors", "every scale"],
        body,
        [
            "Tables of width 256 are contrasted in all of them. MUX-GCL's encoder has width 256, "
            "the perceptron of `mux-hop` that of preset `best` (2,048 inside, 512 or 1,024 out). "
            "Contrasting every scale with every other is three times the pairs; —: the preset "
            "does not. One training at a time, medians of 100 epochs. Records: "
            "`records/hop-epoch.jsonl`, by `benchmarks/hop_epoch.py`.",
        ],
    )


def small_table(path: Path) -> Table:
    """What the two small kernels save."""
    rows = read_lines(path)
    alone = [row for row in rows if row["what"] != "epoch"]
    whole = [row for row in rows if row["what"] == "epoch"]
    body = []
    others = {"unit rows": "normalize", "bias": "torch"}  # what a user of torch would write
    for what, other in others.items():
        ratios = sorted(row["ratio"][other] for row in alone if row["what"] == what)
        saved = {
            TITLES[row["dataset"]]: 100 * (row["ratio"][f"torch's {what}"] - 1) for row in whole
        }
        shares = [f"{graph} {share:.1f} %" for graph, share in saved.items()]
        body.append([what, f"{ratios[0]:.2f}x to {ratios[-1]:.2f}x", ", ".join(shares)])
    epochs = [f"{TITLES[row['dataset']]} {_time(row['times']['ours'])}" for row in whole]
    return Table(
        "small",
        "The small kernels against plain torch",
        ["kernel", "faster alone, forward and backward", "saved of an epoch of MUX-GCL"],
        body,
        [
            f"{len(alone) // 2} shapes, 5,416 to 39,434 rows of 128 to 512 numbers, against "
            f"torch's `normalize` and `+`. An epoch is one of preset `best` as {_commits(whole)} "
            f"had it, without affinities ({', '.join(epochs)}), with torch's operations in the "
            "place of ours. Records: "
            "`records/small-kernels.jsonl`, by `benchmarks/small_kernels.py`.",
        ],
    )


def _time(ms: float) -> str:
    return f"{ms:,.0f} ms" if ms >= 100 else f"{ms:.3g} ms"


def blocks(root: Path) -> dict[Path, str]:
    """What stands between the engine's markers in each document."""
    rows = read(root / "records" / "engine.jsonl")
    figures = (
        "![Time and memory against the number of nodes](figures/engine-growth.svg)\n\n"
        "![Roofline of the fused kernel](figures/engine-roofline.svg)\n"
    )
    parity = parity_table(root / "records" / "parity.jsonl")
    hops = hops_table(root / "records" / "hop-epoch.jsonl")
    small = small_table(root / "records" / "small-kernels.jsonl")
    tables = [epochs_table(rows), hops, kernels_table(rows), small, parity]
    return {
        Path("README.md"): markdown(tables[0]),
        Path("docs/kernels.md"): "\n".join([*map(markdown, tables), figures]),
    }


def write_figures(root: Path) -> list[Path]:
    """Growth with the number of nodes, and a roofline, as SVG."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "muxgcl"  # the same records, the same file
    import matplotlib.pyplot as plt

    rows = read(root / "records" / "engine.jsonl")
    folder = root / "docs" / "figures"
    epochs = sorted((r for r in rows if r["kind"] == "epoch"), key=lambda r: r["nodes"])
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for backend, label in (("reference", "dense step"), ("fused", "ours")):
        mine = [r for r in epochs if r["backend"] == backend and r["width"] == 256]
        nodes = [r["nodes"] for r in mine]
        axes[0].loglog(nodes, [r["epoch_ms"] for r in mine], "o-", label=label)
        axes[1].loglog(nodes, [r["peak_mib"] for r in mine], "o-", label=label)
    for axis, title in zip(axes, ("milliseconds an epoch", "peak memory, MiB"), strict=True):
        axis.set(xlabel="nodes", title=title)
        axis.grid(alpha=0.3, which="both")
        axis.legend()
    paths = [folder / "engine-growth.svg", folder / "engine-roofline.svg"]
    figure.savefig(paths[0], metadata={"Date": None})

    fused = [r for r in rows if r["kind"] == "kernel" and r["backend"] == "fused"]
    figure, axis = plt.subplots(figsize=(6, 3.8), layout="constrained")
    for precision in sorted({r["precision"] for r in fused}):
        mine = [r for r in fused if r["precision"] == precision]
        points = [(_intensity(r), r["tflops"]) for r in mine]
        (line,) = axis.loglog(*zip(*points, strict=True), "o", label=precision)
        ceiling = mine[-1]["ceiling_tflops"]
        edge = ceiling / BANDWIDTH
        axis.loglog([1, edge, 1e5], [BANDWIDTH, ceiling, ceiling], color=line.get_color())
        for row in mine:
            at = (_intensity(row), row["tflops"])
            axis.annotate(
                f"{row['nodes']:,}", at, fontsize=7, xytext=(4, -9), textcoords="offset points"
            )
    axis.set(xlabel="operations a byte of memory traffic, at the least", ylabel="TFLOP/s")
    axis.set_title("The fused kernel under its ceilings (labels: nodes)")
    axis.grid(alpha=0.3, which="both")
    axis.legend()
    figure.savefig(paths[1], metadata={"Date": None})
    plt.close("all")
    return paths


def _intensity(row: Row) -> float:
    """Operations over bytes when each table is read once and each gradient written once."""
    n, d, r = row["nodes"], row["width"], row["rank"]
    work = row["tflops"] * row["ms"] * 1e9
    size = 2 if row["precision"] in ("fp16", "bf16") else 4
    return float(work / (2 * (2 * 2 * n * d + 2 * n * r) * size + 2 * 2 * n * d * 4))
