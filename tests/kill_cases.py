"""Every command that writes files: what it needs, how it is asked, what must come out the same."""

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import optuna
import pytest
from cli_cases import command_line, write_files
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

import muxgcl.cli.reproduce
import muxgcl.runs.checkpoint
from muxgcl.io import planted
from muxgcl.reproduce.records import RecordStore
from muxgcl.reproduce.runner import Runner
from muxgcl.runs.folder import Run
from muxgcl.tune import shared
from muxgcl.tune.study import START, counts

TRAIN = [
    "--method", "grace", "--preset", "quick", "--set", "width=8", "--set", "projection=8",
    "--epochs", "3", "--quiet", "--device", "cpu",
]  # fmt: skip
HOP = [
    "--method", "mux-hop", "--preset", "quick", "--set", "width=8", "--set", "hidden=8", "--set",
    "affinity=none", "--epochs", "2", "--quiet", "--device", "cpu",
]  # fmt: skip
COMMANDS = (
    "run", "run --overwrite", "train", "embed", "embed to FAISS", "embed --new-nodes", "export",
    "evaluate", "evaluate --labels", "predict", "cluster", "links", "report", "tune",
    "tune --storage", "reproduce", "make",
)  # fmt: skip
NEEDS_A_RUN = {*COMMANDS} - {"run", "train", "tune", "tune --storage", "reproduce", "make"}
PACKAGES = {"embed to FAISS": "faiss", "export": "onnx"}  # that a command needs beside our own
MADE = {
    "embed": "z.csv", "embed to FAISS": "z.faiss", "embed --new-nodes": "z.csv", "export": "f.onnx",
    "predict": "predictions.csv", "cluster": "clusters.csv", "links": "links.csv",
}  # fmt: skip


def quietly(words: list[str]) -> tuple[int, list[str]]:
    """Status and lines on standard error."""
    err = io.StringIO()
    with redirect_stderr(err), redirect_stdout(io.StringIO()):
        status = command_line(words)
    return status, err.getvalue().splitlines()


class Case:
    """A command, what it needs, and what must be the same in the end."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.files = name, folder / "files"
        self.files.mkdir(parents=True)
        write_files(self.files)
        self.more = folder / "more"
        self.more.mkdir()
        rows = (self.files / "nodes.csv").read_text().splitlines()
        new = rows[1].replace("n0,", "new,", 1)
        for name, lines in {
            "pairs": ["from,to", "n1,n2", "n3,n9"],
            "new": [rows[0], new],
            "new-edges": ["from,to", "new,n1", "n4,new"],
            "labels": ["id,kind", *(f"n{i},{'ab'[i % 2]}" for i in range(60))],
        }.items():
            (self.more / f"{name}.csv").write_text("\n".join(lines) + "\n")

    def prepare(self, out: Path) -> None:
        if self.name in NEEDS_A_RUN:
            train = HOP if self.name == "export" else TRAIN
            seed = "1" if self.name == "run --overwrite" else "0"
            words = ["run", *self.graph, *train, "--no-report", "--splits", "1", "--seed", seed]
            words += ["--out", str(out)]
            assert quietly(words)[0] == 0

    @property
    def graph(self) -> list[str]:
        return [str(self.files), "--label-column", "topic"]

    def words(self, out: Path, again: bool = False) -> list[str]:
        run = [*self.graph, *TRAIN, "--out", str(out)]
        more = ["--resume"] if again and (out / "config.toml").is_file() else []
        return {
            "run": ["run", *run, "--splits", "1", "--no-report", *more],
            "run --overwrite": ["run", *run, "--splits", "1", "--no-report", "--overwrite"],
            "train": ["train", *run, *more],
            "embed": ["embed", str(out), *self.graph, "--out", str(out / "z.csv")],
            "embed to FAISS": ["embed", str(out), *self.graph, "--out", str(out / "z.faiss")],
            "embed --new-nodes": [
                "embed", str(out), "--new-nodes", str(self.more / "new.csv"),
                "--new-edges", str(self.more / "new-edges.csv"), "--out", str(out / "z.csv"),
            ],
            "export": ["export", str(out), "--out", str(out / "f.onnx")],
            "evaluate": ["evaluate", str(out), "--splits", "1"],
            "evaluate --labels": [
                "evaluate", str(out), "--splits", "1", "--labels", str(self.more / "labels.csv"),
                "--label-column", "kind",
            ],
            "predict": ["predict", str(out)],
            "cluster": ["cluster", str(out), "--repeats", "1"],
            "links": ["links", str(out), str(self.more / "pairs.csv")],
            "report": ["report", str(out)],
            "tune": [
                "tune", *self.graph, "--method", "grace", "--trials", "2", "--epochs", "1",
                "--splits", "1", "--set", "width=8", "--device", "cpu", "--quiet",
                "--study", str(out / "s.study"),
            ],
            "tune --storage": [
                "tune", *self.graph, "--method", "grace", "--trials", "2", "--epochs", "1",
                "--splits", "1", "--set", "width=8", "--device", "cpu", "--quiet",
                "--study", "s", "--storage", str(out / "j"), "--out", str(out / "s.toml"),
            ],
            "reproduce": [
                "reproduce", "table1", "--datasets", "cora", "--methods", "raw,grace", "--seeds",
                "2", "--splits", "1", "--epochs", "1", "--device", "cpu",
                "--records", str(out / "records"), "--out", str(out / "tables"),
            ],
            "make": ["datasets", "make", "sbm", "--nodes", "80", "--out", str(out / "graph")],
        }[self.name]  # fmt: skip

    def done(self, out: Path) -> bool:
        """A graph is made once: a second `make` is refused."""
        return self.name == "make" and (out / "graph").exists()

    def loss(self, out: Path, *, began: bool = True) -> str | None:
        """What `--overwrite` has cost: the old run is whole until the new one has begun."""
        if self.name != "run --overwrite":
            return None
        run, old = Run(out), Run(out.parent / "old")
        if not old.exists:
            self.prepare(old.path)
        if began and (not run.exists or run.config()["run"]["seed"] != 1):
            return None
        if not run.exists or run.config()["run"]["seed"] != 1:
            return "the old run is gone, and no new one has begun"
        mine, theirs = run.embeddings()[1], old.embeddings()[1]
        same = mine.tobytes() == theirs.tobytes() and run.metrics() and run.checkpoint_file.exists()
        return None if same else "the old run is not whole, and no new one has begun"

    def result(self, out: Path) -> Any:
        """All that must be the same, however often it was stopped."""
        if self.name == "tune":
            return (out / "s.toml").read_text().replace(str(out), "")
        if self.name == "tune --storage":  # points are drawn anew; the first is the same
            assert (out / "s.toml").is_file()
            ended = [trial for trial in _trials(out / "j") if counts(trial)]
            return [len(ended), *(t.user_attrs["figures"] for t in ended if START in t.user_attrs)]
        if self.name == "make":
            return {file.name: file.read_bytes() for file in (out / "graph").iterdir()}
        if self.name == "reproduce":
            lines = RecordStore(out / "records").lines()
            kept = ("method", "protocol", "seed", "hash", "result")
            records = [
                [line.file, line.fault, *(line.record.get(k) for k in kept)] for line in lines
            ]
            return records, {file.name: file.read_text() for file in (out / "tables").iterdir()}
        run = Run(out)
        ids, z = run.embeddings()
        lines = [(line["epoch"], line["loss"], line["terms"]) for line in run.metrics()]
        found = [ids.tolist(), z.tolist(), lines, run.scores()]
        if self.name == "evaluate --labels":
            found += [run.nodes()[name].tolist() for name in ("label", "label_names")]
        made = MADE.get(self.name)
        return [*found, (out / made).read_bytes()] if made else found


def _trials(journal: Path) -> list[Any]:
    backend = JournalFileBackend(str(journal))
    study = optuna.load_study(storage=optuna.storages.JournalStorage(backend), study_name="s")
    found: list[Any] = study.get_trials()
    return found


@contextmanager
def quick(folder: Path) -> Iterator[None]:
    """A checkpoint every epoch, and small graphs under the names of large ones."""

    def small(name: str, root: Path | None) -> Any:
        return planted(nodes=60, classes=3, features=16, seed=len(name))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))  # what a kill leaves there goes with it
        patch.setattr(muxgcl.runs.checkpoint, "CHECKPOINT_SECONDS", -1.0)
        patch.setattr(muxgcl.cli.reproduce, "Runner", partial(Runner, open_graph=small))
        for name, seconds in {"GRACE": 0.3, "WAIT": 0.1, "LOOK": 0.05}.items():
            patch.setattr(shared, name, seconds)  # a dead worker's trial is taken over soon
        lock = partial(JournalFileOpenLock, grace_period=0.3)  # a dead worker's lock, too
        patch.setattr(shared, "JournalFileOpenLock", lock)
        patch.setattr(shared.Shared, "_begin_to_beat", lambda *_: None)  # writes by the clock
        yield
