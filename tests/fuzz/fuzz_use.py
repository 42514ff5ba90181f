"""What is fuzzed beside graphs and single runs: folders of arrays, searches, uses of a trained run.

A committee's files (members, map to fewer columns, diagnostics, encoding), new nodes, labels that
come later, pairs to score, and the journal that many workers share.
"""

import csv
import gzip
import io
import json
import random
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fuzz_mutations import mutated
from fuzz_target import KEPT, SilentlyWrong, Target, everything, sane, small_graph
from safetensors import SafetensorError

sys.path.insert(0, str(Path(__file__).parents[1]))

from cli_cases import write_files

import muxgcl
from muxgcl import LoadOptions, NodeEmbedder
from muxgcl.cli.app import run as command_line
from muxgcl.errors import UserError
from muxgcl.io.sbm import Sbm, make_sbm
from muxgcl.report import read_run
from muxgcl.report.scores import flatten
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan

TRAIN = [
    "--label-column", "topic", "--method", "mux-hop", "--preset", "quick", "--set", "width=8",
    "--set", "hidden=8", "--set", "affinity=none", "--epochs", "2", "--splits", "1", "--quiet",
    "--no-report", "--no-controls", "--device", "cpu",
]  # fmt: skip
COMMITTEE = [*TRAIN, "--members", "2", "--output-width", "6"]
NODES = 30


# folders of arrays ------------------------------------------------------------------------------


def _ogb_tables() -> dict[str, Any]:
    chance = np.random.default_rng(0)
    return {
        "edge": chance.integers(0, NODES, (40, 2)),
        "node-feat": chance.normal(size=(NODES, 4)).astype(np.float32),
        "node-label": np.arange(NODES) % 3,
        "num-node-list": np.array([NODES]),
    }


def _text(path: Path, table: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as file:
        np.savetxt(file, table, delimiter=",", fmt="%.6g")


def _split(folder: Path) -> None:
    for part, rows in {"train": range(12), "valid": range(12, 18), "test": range(18, 30)}.items():
        _text(folder / "split" / "time" / f"{part}.csv.gz", np.array(rows))


def _ogb_text(folder: Path) -> None:
    for name, table in _ogb_tables().items():
        _text(folder / "raw" / f"{name}.csv.gz", table)
    _split(folder)


def _ogb_arrays(folder: Path) -> None:
    tables, raw = _ogb_tables(), folder / "raw"
    raw.mkdir()
    np.savez(raw / "node-label.npz", node_label=tables["node-label"].astype(np.float32)[:, None])
    np.savez_compressed(
        raw / "data.npz",
        edge_index=tables["edge"].T,
        node_feat=tables["node-feat"].astype(np.float16),
        num_nodes_list=tables["num-node-list"],
    )
    _split(folder)


def _read_ogb(folder: Path) -> None:
    found = sane(folder).tensors
    for name in ("train_mask", "val_mask", "test_mask"):
        if name in found and len(found[name]) != len(found.x):
            raise SilentlyWrong(f"{name} of another length")


def _array_folder(folder: Path) -> None:
    make_sbm(folder / "graph", Sbm(nodes=40, classes=3, features=20))


def _read_array_folder(folder: Path) -> None:
    found = sane(folder / "graph")
    if "y" in found.tensors and len(found.tensors.y) != len(found.ids):
        raise SilentlyWrong("labels that are not one a node")


# a trained run ----------------------------------------------------------------------------------


def _asked(*words: str) -> tuple[int, list[str]]:
    """Status, and the lines on standard error."""
    with redirect_stderr(io.StringIO()) as err, redirect_stdout(io.StringIO()):
        return command_line(list(words)), err.getvalue().splitlines()


def _trained(*words: str) -> Callable[[Path], None]:
    """Files of a graph without its last nodes, these nodes beside it, and a run on the former."""

    def write(folder: Path) -> None:
        files = folder / "files"
        files.mkdir()
        write_files(files)
        rows = _rows(files / "nodes.csv")
        links = _rows(files / "edges.csv")
        new = {row[0] for row in rows[-4:]}
        _table(files / "nodes.csv", rows[:-4])
        _table(files / "edges.csv", [row for row in links if not new & set(row)])
        _table(folder / "new.csv", [rows[0], *rows[-4:]])
        _table(folder / "links.csv", [links[0], *(row for row in links if new & set(row))])
        _table(folder / "labels.csv", [["id", "kind"], *([r[0], r[-1]] for r in rows[1:-4])])
        _table(folder / "pairs.csv", _rows(files / "edges.csv")[:20])
        assert _asked("run", str(files), *words, "--out", str(folder / "run"))[0] == 0

    return write


def _table(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def _rows(path: Path) -> list[list[str]]:
    """Lines of a table as Python's own reader has them, without spaces around and empty lines."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        return [[cell.strip() for cell in row] for row in csv.reader(file) if any(row)]


def _run_files(folder: Path) -> list[Path]:
    return everything(folder / "run")


def _plain_files(folder: Path) -> dict[str, bytes]:
    """Files in which an edited number is taken as it is."""
    names = ("config.toml", "encoding.json")
    files = {name: folder / "run" / name for name in names}
    return {name: file.read_bytes() for name, file in files.items() if file.is_file()}


def _keep_committee(whole: Path) -> None:
    KEPT["plain"] = _plain_files(whole)
    KEPT["embedded"] = muxgcl.embed(whole / "run", whole / "files").table


def _read_committee(folder: Path) -> None:
    run = Run(folder / "run")
    plan = Plan.from_tables(run.config())
    for k in range(plan.members):
        Run(run.path, k).metrics()
    flatten(read_run(run.path).scores)
    muxgcl.run_info(run.path)
    found = muxgcl.embed(run.path, folder / "files").table
    assert found is not None
    if not np.isfinite(found).all():
        raise SilentlyWrong("an embedding that is not finite")
    if _plain_files(folder) == KEPT["plain"] and not np.array_equal(found, KEPT["embedded"]):
        raise SilentlyWrong("another embedding")
    NodeEmbedder.load(run.path)


def _forge(content: bytes, rng: random.Random) -> bytes:
    """Weights or facts changed by someone who also mends the checksum."""
    from safetensors.torch import load

    from muxgcl.runs.folder import CHECKSUM, _tensors

    size = int.from_bytes(content[:8], "little")
    facts = json.loads(content[8 : 8 + size]).get("__metadata__", {})
    facts = {name: json.loads(text) for name, text in facts.items() if name != CHECKSUM}
    tensors, name = load(content), rng.choice(["", *load(content)])
    if not name:
        facts = json.loads(mutated(json.dumps(facts).encode(), rng))
        return _tensors(tensors, facts if isinstance(facts, dict) else {})
    old = tensors.pop(name)
    change = rng.choice(_FORGERIES)
    new = change(old)
    if new is not None:
        tensors[rng.choice((name, name, name, "x", ""))] = new.contiguous()
    return _tensors(tensors, facts)


_FORGERIES: tuple[Callable[[Any], Any], ...] = (
    lambda t: None,
    lambda t: t.double() if t.is_floating_point() else t.float(),
    lambda t: t.long() if t.is_floating_point() else t.to(torch.int16),
    lambda t: t[:1] if t.ndim else t[None],
    lambda t: t[..., :0] if t.ndim else t[None][:0],
    lambda t: t.T if t.ndim == 2 else t[None],
    lambda t: torch.full_like(t, torch.nan if t.is_floating_point() else 0),
    lambda t: torch.full_like(t, 3e38 if t.is_floating_point() else 1),
    lambda t: torch.zeros_like(t),
    lambda t: torch.zeros(()),
)


def _read_forged(folder: Path) -> None:
    """The `number` says how one of the files is to be forged."""
    rng = random.Random((folder / "number").read_text())
    file = rng.choice(sorted((folder / "run").glob("*.safetensors")))
    try:
        file.write_bytes(_forge(file.read_bytes(), rng))
    except (ValueError, RecursionError, SafetensorError):  # no such file can be made
        return
    refused = None
    for use in (
        lambda: muxgcl.embed(folder / "run", folder / "files"),
        lambda: NodeEmbedder.load(folder / "run"),
        lambda: muxgcl.export_onnx(folder / "run", folder / "f.onnx"),
        lambda: _resume(folder),
    ):
        try:
            use()
        except UserError as error:
            refused = refused or error
    if refused is not None:
        raise refused


def _resume(folder: Path) -> None:
    words = ["run", str(folder / "files"), *COMMITTEE, "--resume", "--out", str(folder / "run")]
    status, err = _asked(*words)
    if status not in (0, 2) or (status and not err[-1].startswith("muxgcl: ")):
        raise SilentlyWrong(f"status {status}: {err[-3:]}")
    if status:
        raise UserError(err[-1])


def _read_new_nodes(folder: Path) -> None:
    new, links = folder / "new.csv", folder / "links.csv"
    found = muxgcl.embed(folder / "run", new_nodes=new, new_edges=links)
    assert found.table is not None
    if len(found.ids) != len(found.table) or not np.isfinite(found.table).all():
        raise SilentlyWrong("rows that are not one a new node, or not finite")
    old = {row[0] for row in _rows(folder / "files" / "nodes.csv")}
    if len({str(i) for i in found.ids}) != len(found.ids) or old & {str(i) for i in found.ids}:
        raise SilentlyWrong("new nodes that are old ones, or the same one twice")


def _read_labels(folder: Path) -> None:
    load = LoadOptions(labels=folder / "labels.csv", label_column="kind", id_column="id")
    found = muxgcl.evaluate_run(folder / "run", load=load, splits=1, controls=False)
    if not 0 <= found.scores["holdout"]["accuracy"]["mean"] <= 100:
        raise SilentlyWrong("an accuracy that cannot be")
    run = Run(folder / "run")
    nodes, ids = run.nodes(), run.embeddings()[0]
    names = [*nodes["label_names"].tolist(), ""]  # -1 is none
    got = {i: names[k] for i, k in zip(ids.tolist(), nodes["label"].tolist(), strict=True)}
    rows = _rows(folder / "labels.csv")
    at = [rows[0].index(name) for name in ("id", "kind")]
    want = dict.fromkeys(ids.tolist(), "") | {row[at[0]]: row[at[1]] for row in rows[1:]}
    if got != want:
        raise SilentlyWrong(f"other labels: {set(got.items()) ^ set(want.items())}")


def _read_pairs(folder: Path) -> None:
    found = muxgcl.score_links(folder / "run", folder / "pairs.csv")
    if not len(found.source) == len(found.target) == len(found.score):
        raise SilentlyWrong("scores that are not one a pair")
    pairs = [list(pair) for pair in zip(found.source, found.target, strict=True)]
    rows = _rows(folder / "pairs.csv")
    if pairs not in (rows, rows[1:]):  # without a header, or with one
        raise SilentlyWrong("other pairs")
    ids, z = Run(folder / "run").embeddings()
    unit = z.astype(np.float64) / np.linalg.norm(z.astype(np.float64), axis=1, keepdims=True)
    place = {name: at for at, name in enumerate(ids.tolist())}
    want = [unit[place[one]] @ unit[place[two]] for one, two in pairs]
    if not np.allclose(found.score, want, atol=1e-5):
        raise SilentlyWrong("other cosines")


def _only(*names: str) -> Callable[[Path], list[Path]]:
    return lambda folder: [folder / name for name in names]


# a search of many workers -----------------------------------------------------------------------


class _Hill:
    figures = ("height",)
    words = mark = "hill"

    def __call__(self, plan: Plan, **_: Any) -> dict[str, float]:
        return {"height": -abs(plan.settings.temperature - 0.7)}


def _tuned(folder: Path, trials: int, measure: Any) -> Any:
    """A search in a journal, in which the waits for other workers are short."""
    from muxgcl.tune import shared, tune

    shared.BEAT, shared.GRACE, shared.WAIT, shared.LOOK = 0.02, 0.2, 0.05, 0.02
    how = {"storage": str(folder / "j"), "method": "grace", "device": "cpu"}
    return tune(small_graph(), measure, "s", trials=trials, **how)


class _Stops(_Hill):
    def __call__(self, plan: Plan, **_: Any) -> dict[str, float]:
        raise KeyboardInterrupt


def _journal(folder: Path) -> None:
    """Two trials, and one that was stopped, so that its point is in the queue."""
    _tuned(folder, 2, _Hill())
    with suppress(KeyboardInterrupt):
        _tuned(folder, 3, _Stops())


def _search(folder: Path) -> None:
    if len(_tuned(folder, 4, _Hill()).tried) < 4:
        raise SilentlyWrong("fewer trials than were asked for")


USES = (
    Target("ogb text", 0.05, _ogb_text, _read_ogb, everything, inside=True),
    Target("ogb arrays", 0.04, _ogb_arrays, _read_ogb, everything, inside=True),
    Target("array folder", 0.05, _array_folder, _read_array_folder, everything),
    Target("forged weights", 0.02, _trained(*COMMITTEE), _read_forged, lambda folder: []),
    Target("committee", 0.06, _trained(*COMMITTEE), _read_committee,
           _run_files, keep=_keep_committee),
    Target("new nodes", 0.05, _trained(*TRAIN), _read_new_nodes, _only("new.csv", "links.csv")),
    Target("labels", 0.04, _trained(*TRAIN), _read_labels, _only("labels.csv")),
    Target("pairs", 0.04, _trained(*TRAIN), _read_pairs, _only("pairs.csv")),
    Target("journal", 0.04, _journal, _search, _only("j")),
)  # fmt: skip
