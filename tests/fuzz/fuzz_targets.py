"""What is fuzzed: whole files to begin with, and what reads them.

Graphs, finished and unfinished runs, studies, records, presets, options and published files; what a
trained run is used for is in `fuzz_use.py`.
"""

import io
import json
import random
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fuzz_mutations import strange_word
from fuzz_target import KEPT, SilentlyWrong, Target, everything, sane, small_graph
from fuzz_use import USES

sys.path.insert(0, str(Path(__file__).parents[1]))

from cli_cases import write_files
from planetoid_cases import write_tiny

from muxgcl.cli import commands  # noqa: F401
from muxgcl.cli.app import run as command_line
from muxgcl.io import DATASETS, planted
from muxgcl.io.raw_files import read_raw
from muxgcl.io.schema import read_lines
from muxgcl.methods import METHODS
from muxgcl.report import read_run
from muxgcl.report.scores import flatten
from muxgcl.reproduce.check import doubts
from muxgcl.reproduce.records import RecordStore
from muxgcl.runs.checkpoint import restore
from muxgcl.runs.fit import fit, make_ready
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan

ROOT = Path(__file__).parents[2]
SETTINGS = {"width": 8, "projection": 8, "epochs": 3}


# loaders ----------------------------------------------------------------------------------------


def _csv(folder: Path) -> None:
    write_files(folder)


def _parquet(folder: Path) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    write_files(folder)
    for name in ("edges", "nodes"):
        table = pyarrow.csv.read_csv(folder / f"{name}.csv")
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
        (folder / f"{name}.csv").unlink()


def _arrow(folder: Path) -> None:
    import pyarrow.csv
    from pyarrow.feather import write_feather

    write_files(folder)
    for name, how in (("edges", "uncompressed"), ("nodes", "lz4")):
        table = pyarrow.csv.read_csv(folder / f"{name}.csv")
        write_feather(table, folder / f"{name}.arrow", compression=how)
        (folder / f"{name}.csv").unlink()


def _numpy(folder: Path) -> None:
    (folder / "edges.csv").write_text("\n".join(f"{i},{(i * 7 + 1) % 30}" for i in range(30)))
    ids, label = np.array([str(i) for i in range(30)]), np.arange(30) % 3
    np.savez_compressed(folder / "nodes.npz", x=np.random.default_rng(0).random((30, 4)), id=ids,
                        label=label)  # fmt: skip


def _benchmark(folder: Path) -> None:
    data = planted(nodes=40, features=8)
    from scipy.sparse import csr_array

    a = csr_array((np.ones(data.num_edges), data.edge_index.numpy()), shape=(40, 40))
    x = csr_array(data.x.numpy())
    arrays = {"adj": a, "attr": x}
    parts = {
        f"{name}_{part}": getattr(matrix, part)
        for name, matrix in arrays.items()
        for part in ("data", "indices", "indptr", "shape")
    }
    np.savez(folder / "amazon_electronics_photo.npz", labels=data.y.numpy(), **parts)


def _xml(ending: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        import networkx

        graph = networkx.path_graph(12)
        for node in graph:
            graph.nodes[node].update(size=node / 3, kind="abc"[node % 3])
        writer = networkx.write_gexf if ending == "gexf" else networkx.write_graphml_xml
        writer(graph, folder / f"g.{ending}")

    return write


def _only(pattern: str) -> Callable[[Path], None]:
    return lambda folder: sane(next(folder.glob(pattern)))


# runs, studies, records -------------------------------------------------------------------------


def _run_folder(folder: Path) -> None:
    files = folder / "files"
    files.mkdir()
    write_files(files)
    words = ["run", str(files), "--label-column", "topic", "--preset", "quick", "--method", "grace"]
    words += ["--set", "width=8", "--set", "projection=8", "--epochs", "3", "--splits", "2"]
    with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
        status = command_line([*words, "--quiet", "--device", "cpu", "--out", str(folder / "run")])
    assert status == 0
    (folder / "run" / "report.html").unlink()
    shutil.rmtree(files)


def _read_run(folder: Path) -> None:
    run = Run(folder / "run")
    tables = run.config()
    plan = Plan.from_tables(tables)
    make_ready(plan, small_graph())
    run.encoding()
    flatten(read_run(run.path).scores)
    ids, z = run.embeddings()
    nodes = run.nodes()
    tensors, facts = run.checkpoint()
    restore(run, plan, small_graph())
    run.keep_metrics(facts["epoch"])
    want_ids, want_z, want_nodes, want_tensors, want_facts = KEPT["run"]
    if not (np.array_equal(ids, want_ids) and np.array_equal(z, want_z)):
        raise SilentlyWrong("other embeddings")
    if nodes.keys() != want_nodes.keys() or not all(
        np.array_equal(nodes[k], want_nodes[k], equal_nan=nodes[k].dtype.kind == "f") for k in nodes
    ):
        raise SilentlyWrong("other nodes")
    if facts != want_facts or tensors.keys() != want_tensors.keys():
        raise SilentlyWrong("another checkpoint")
    if not all(torch.equal(tensors[name], want_tensors[name]) for name in tensors):
        raise SilentlyWrong("other weights")


def _keep_run(whole: Path) -> None:
    run = Run(whole / "run")
    KEPT["run"] = (*run.embeddings(), run.nodes(), *run.checkpoint())


def _resumed(folder: Path) -> None:
    run = Run(folder)
    plan = Plan.make("grace", "quick", overrides=SETTINGS, device="cpu")
    fitted = fit(plan, small_graph(), run=run, resume=True)
    if not torch.equal(fitted.embed(), KEPT["resumed"]):
        raise SilentlyWrong("another embedding after going on")


def _half_a_run(folder: Path) -> None:
    plan = Plan.make("grace", "quick", overrides=SETTINGS, device="cpu")
    KEPT["resumed"] = fit(plan, small_graph()).embed()

    class Enough(Exception):
        pass

    def stop(block: list[Any]) -> None:
        if block[-1].number == 2:
            raise Enough

    import muxgcl.runs.checkpoint as module

    before, module.CHECKPOINT_SECONDS = module.CHECKPOINT_SECONDS, -1.0
    try:
        fit(plan, small_graph(), run=Run(folder), on_block=stop)
    except Enough:
        pass
    finally:
        module.CHECKPOINT_SECONDS = before


class _Hill:
    figures = ("height",)
    words = mark = "hill"

    def __call__(self, plan: Plan, **_: Any) -> dict[str, float]:
        return {"height": -abs(plan.settings.temperature - 0.7)}


def _study(folder: Path) -> None:
    from muxgcl.tune import tune

    tune(small_graph(), _Hill(), folder / "s.study", method="grace", trials=3)


def _go_on_with_study(folder: Path) -> None:
    from muxgcl.tune import tune

    tune(small_graph(), _Hill(), folder / "s.study", method="grace", trials=3)


def _records(folder: Path) -> None:
    for name in ("table1", "table4", "engine"):
        lines = (ROOT / "records" / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
        (folder / f"{name}.jsonl").write_bytes(b"".join(lines[:4]))


def _read_records(folder: Path) -> None:
    known = KEPT.setdefault("records", {})
    for line in RecordStore(folder).lines():
        if not line.fault:
            digest = line.record["digest"]
            if known.setdefault(digest, line.record) != line.record:
                raise SilentlyWrong("a record with the digest of another")
    list(doubts(RecordStore(folder).lines()))
    read_lines(folder / "engine.jsonl")


def _presets(folder: Path) -> None:
    text = "width = 8\nprojection = 8\nepochs = 3\nlr = 0.001\ntemperature = 0.5\n"
    (folder / "mine.toml").write_text(
        text + "drop_edges = [0.2, 0.3]\nmask_features = [0.2, 0.3]\n"
    )


def _read_presets(folder: Path) -> None:
    make_ready(Plan.make("grace", str(folder / "mine.toml"), device="cpu"), small_graph())


# words ------------------------------------------------------------------------------------------

OPTIONS = (
    "--method", "--preset", "--set", "--epochs", "--seed", "--device", "--backend", "--capture",
    "--protocol", "--splits", "--split-seed", "--features", "--labels", "--label-column",
    "--id-column", "--source", "--target", "--weight", "--data-root", "--seeds",
)  # fmt: skip
KEYS = ("width", "projection", "lr", "temperature", "drop_edges", "layers", "epochs", "activation")


def _options(folder: Path) -> None:
    rng = random.Random((folder / "number").read_text())
    words = ["run", str(folder / "edges.csv"), "--method", "sgc", "--no-report", "--quiet"]
    words += ["--splits", "1", "--out", str(folder / "run")]
    for option in rng.sample(OPTIONS, rng.choice((1, 1, 2, 3))):
        value = strange_word(rng)
        if option == "--set":
            value = f"{rng.choice(KEYS)}={value}"
        if option == "--method" and rng.random() < 0.5:
            value = rng.choice(list(METHODS))
            words += ["--epochs", "1"]
        words += [option, value]
    err = io.StringIO()
    with redirect_stderr(err):
        status = command_line(words)
    told = err.getvalue().strip().splitlines()
    if status not in (0, 2):
        raise SilentlyWrong(f"status {status}: {told[-1:]}")
    if status == 2 and (not told or not told[-1].startswith("muxgcl: ")):
        raise SilentlyWrong(f"status 2 without a line: {told[-3:]}")


def _words(folder: Path) -> None:
    (folder / "edges.csv").write_text("\n".join(f"{i},{(i * 7 + 1) % 30}" for i in range(30)))


# published files --------------------------------------------------------------------------------


def _planetoid(folder: Path) -> None:
    write_tiny(folder)


def _wikics(folder: Path) -> None:
    links = [[(i + 1) % 9, (i * 2) % 9] for i in range(9)]
    raw = {"features": [[i / 9, 1.0] for i in range(9)], "labels": [i % 3 for i in range(9)]}
    (folder / "data.json").write_text(json.dumps({**raw, "links": links}))


def _raw(name: str) -> Callable[[Path], None]:
    def read(folder: Path) -> None:
        data = read_raw(DATASETS[name], folder)
        edges = data.edge_index
        if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < data.num_nodes:
            raise SilentlyWrong("edges outside of the graph")
        if len(data.y) != data.num_nodes:
            raise SilentlyWrong("labels that are not one a node")

    return read


TARGETS = (
    Target("csv", 0.05, _csv, sane, everything),
    Target("parquet", 0.04, _parquet, sane, everything),
    Target("arrow", 0.02, _arrow, sane, everything),
    Target("npz of nodes", 0.05, _numpy, sane, everything, inside=True),
    Target("npz of a graph", 0.05, _benchmark, _only("*.npz"), everything, inside=True),
    Target("graphml", 0.03, _xml("graphml"), _only("*.graphml"), everything),
    Target("gexf", 0.03, _xml("gexf"), _only("*.gexf"), everything),
    Target("run folder", 0.08, _run_folder, _read_run, everything, keep=_keep_run),
    Target("half a run", 0.04, _half_a_run, _resumed, everything),
    Target("study", 0.03, _study, _go_on_with_study, everything),
    Target("records", 0.03, _records, _read_records, everything),
    Target("preset", 0.03, _presets, _read_presets, everything),
    Target("options", 0.03, _words, _options, lambda folder: []),
    Target("planetoid", 0.05, _planetoid, _raw("pubmed"), everything),
    Target("benchmark", 0.03, _benchmark, _raw("photo"), everything, inside=True),
    Target("wikics", 0.02, _wikics, _raw("wikics"), everything),
    *USES,
)
