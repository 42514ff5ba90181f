"""`--overwrite` replaces a run once the new one has trained, and not before."""

import shutil
import signal
from pathlib import Path

import pytest
from cli_cases import FAST, ask, write_files

from muxgcl import NodeEmbedder, UserError
from muxgcl.app.screen import Screen
from muxgcl.io import files as files_module
from muxgcl.io import planted
from muxgcl.runs.folder import Run
from muxgcl.runs.loop import Epoch, Trainer

NARROW = ["--method", "grace", *FAST, "--no-report", "--no-controls"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from muxgcl.cli.app import run as command_line

    folder = tmp_path_factory.mktemp("overwrite")
    write_files(folder)
    words = ["run", str(folder), "--label-column", "topic", *NARROW, "--log", "tensorboard"]
    assert command_line([*words, "--out", str(folder / "run")]) == 0
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made / "run", tmp_path / "run")
    return tmp_path / "run"


def content(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file() and file.name != ".lock")
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def overwrite(capsys: pytest.CaptureFixture[str], graph: Path, run: Path, *more: str) -> str:
    words = ["run", str(graph), "--label-column", "topic", *NARROW, *more]
    status, _, err = ask(capsys, *words, "--overwrite", "--out", str(run))
    assert status == 2, err
    last = err.splitlines()[-1]
    assert last.startswith("muxgcl: ")
    return last


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--set", "wdth=8"], "wdth"),
        (["--set", "width=-1"], "width"),
        (["--set", "width=9000000"], "memory"),
        (["--epochs", "-3"], "epochs"),
        (["--method", "grcae"], "grcae"),
        (["--preset", "none.toml"], "none.toml"),
        (["--device", "cuda:77"], "cuda"),
        (["--backend", "fast"], "fast"),
        (["--protocol", "public"], "public"),
        (["--splits", "0"], "splits must be at least 1"),
        (["--output-width", "999"], "from 1 to 8"),
        (["--members", "5000"], "members must be at most"),
        (["--log", "paper"], "paper"),
        (["--label-column", "nothing"], "nothing"),
        (["--features", "absent.csv"], "absent.csv"),
        (["--resume"], "ask for one of them"),
        (["--set", "lr=1e30", "--epochs", "5"], "epoch"),
        (["--set", "lr=1e20", "--epochs", "1"], "embedding is NaN or infinity"),
    ],
)
def test_a_wrong_option_costs_no_run(
    made: Path, run: Path, capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    before = content(run)
    assert words in overwrite(capsys, made, run, *more)
    assert content(run) == before


def test_an_unreadable_graph_costs_no_run(
    made: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = content(run)
    assert "absent" in overwrite(capsys, tmp_path / "absent", run)
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in ("edges.csv", "nodes.csv"):
        (broken / name).write_bytes((made / name).read_bytes()[:-1] + b"\xff\xff\n")
    assert "not UTF-8" in overwrite(capsys, broken, run)
    assert content(run) == before


@pytest.mark.parametrize("kind", [MemoryError, KeyboardInterrupt])
def test_a_first_step_that_fails_costs_no_run(
    made: Path,
    run: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: type[BaseException],
) -> None:
    def fails(*_: object) -> None:
        raise kind

    monkeypatch.setattr(Trainer, "blocks", fails)
    before = content(run)
    words = ["run", str(made), "--label-column", "topic", *NARROW, "--seed", "7", "--overwrite"]
    status, _, err = ask(capsys, *words, "--out", str(run))
    last = err.splitlines()[-1]
    assert status == (2 if kind is MemoryError else 130)
    assert last.startswith("muxgcl: ")
    assert "--resume" not in last  # it would go on with the old run
    assert content(run) == before


def test_a_run_that_is_stopped_with_a_checkpoint_has_replaced_the_old_one(
    made: Path, run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Screen.epochs

    def stop(self: Screen, block: list[Epoch], total: int) -> None:
        real(self, block, total)
        if block[-1].number == 1:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Screen, "epochs", stop)
    words = ["run", str(made), "--label-column", "topic", *NARROW, "--seed", "7"]
    status, _, err = ask(capsys, *words, "--overwrite", "--out", str(run))
    assert (status, "stopped after epoch 1 of 2" in err.splitlines()[-1]) == (130, True)
    new = Run(run)
    assert new.config()["run"]["seed"] == 7
    assert [line["epoch"] for line in new.metrics()] == [1]
    assert new.checkpoint()[1]["epoch"] == 1
    assert not new.embeddings_file.exists()


def test_a_disk_without_room_for_the_settings_costs_no_run(
    made: Path,
    run: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files_module.os, "fsync", full)
    before = content(run)
    last = overwrite(capsys, made, run, "--seed", "7")
    assert "config.toml: No space left on device" in last
    assert content(run) == before


@pytest.mark.parametrize("method", ["grace", "sgc"])
def test_a_run_that_trains_replaces_everything(
    made: Path, run: Path, capsys: pytest.CaptureFixture[str], method: str
) -> None:
    (run / "mine.txt").write_text("mine")
    words = ["train", str(made), "--label-column", "topic", "--method", method, "--quiet"]
    if method == "grace":
        words += ["--preset", "quick", "--set", "width=8", "--epochs", "1"]
    words += ["--seed", "7", "--device", "cpu", "--overwrite", "--out", str(run)]
    assert ask(capsys, *words)[0] == 0
    left = {name for name in content(run) if not name.startswith(".")}
    trained = {"metrics.jsonl"} if method == "grace" else set()
    assert left == trained | {
        "config.toml", "checkpoint.safetensors", "embeddings.npz", "nodes.npz", "encoding.json",
        "graph.safetensors", "mine.txt",
    }  # fmt: skip
    assert Run(run).config()["run"]["seed"] == 7
    assert len(Run(run).metrics()) == len(trained)


def test_a_run_that_replaces_another_is_the_one_that_it_would_be_alone(
    made: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", str(made), "--label-column", "topic", *NARROW, "--seed", "7", "--epochs", "4"]
    assert ask(capsys, *words, "--overwrite", "--out", str(run))[0] == 0
    assert ask(capsys, *words, "--out", str(tmp_path / "alone"))[0] == 0
    here, alone = Run(run), Run(tmp_path / "alone")
    assert here.embeddings()[1].tobytes() == alone.embeddings()[1].tobytes()
    assert [line["loss"] for line in here.metrics()] == [line["loss"] for line in alone.metrics()]
    assert here.scores() == alone.scores()


def test_an_estimator_that_cannot_be_saved_costs_no_run(run: Path) -> None:
    settings = {"preset": "quick", "params": {"width": 8, "projection": 8}, "epochs": 1}
    one = NodeEmbedder("grace", **settings, device="cpu").fit(planted(nodes=30))
    before = content(run)
    one.trained_.embedding[3, 0] = float("nan")
    with pytest.raises(UserError, match="NaN"):
        one.save(run, overwrite=True)
    assert content(run) == before
