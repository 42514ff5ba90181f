"""The run folder from the command line: begun, stopped, gone on with, replaced, left alone."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from cli_cases import FAST, TINY, ask, command_line

from muxgcl.evaluate import PaperProtocol
from muxgcl.runs.folder import Run


def test_several_seeds_make_several_runs(
    own: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", *own, "--method", "grace", *FAST, "--no-report", "--seeds", "2", "--json"]
    status, text, _ = ask(capsys, *words, "--out", str(tmp_path))
    assert status == 0
    runs = json.loads(text)["runs"]
    assert [run["seed"] for run in runs] == [0, 1]
    means = [run["scores"]["holdout"]["accuracy"]["mean"] for run in runs]
    over = json.loads(text)["scores"]["holdout"]["accuracy"]
    assert over == {"mean": np.mean(means), "std": np.std(means, ddof=1), "n": 2}
    assert (tmp_path / "seed1" / "embeddings.npz").is_file()


def test_a_finished_run_resumes_to_itself(
    own: list[str], trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Run(trained).embeddings()[1]
    lines = Run(trained).metrics()
    words = ["run", *own, "--method", "grace", *FAST, "--no-report", "--resume", "--json"]
    status, text, _ = ask(capsys, *words, "--out", str(trained))
    assert status == 0
    assert np.array_equal(Run(trained).embeddings()[1], before)
    told = json.loads(text)  # what was measured stays
    assert told["loss"] == lines[-1]["loss"]
    assert told["epoch_ms"] == round(float(np.median([line["ms"] for line in lines])), 4)
    assert json.loads((trained / "diagnostics.json").read_text())["seconds"] > 0


@pytest.fixture
def done(own: list[str], tmp_path: Path) -> tuple[list[str], Path]:
    """A finished run of one's own to spoil, and the words that made it."""
    out = tmp_path / "run"
    words = ["run", *own, "--method", "grace", *FAST, "--no-report", "--out", str(out)]
    assert command_line(words) == 0
    return words, out


def test_a_run_that_was_stopped_is_embedded_from_its_checkpoint(
    done: tuple[list[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out = done
    want = Run(out).embeddings()[1]
    (out / "embeddings.npz").unlink()
    assert ask(capsys, "embed", str(out), "--out", str(tmp_path / "z.npy"))[0] == 0
    assert np.array_equal(np.load(tmp_path / "z.npy"), want)


def test_the_runs_own_embeddings_and_clusters_need_no_other_file(
    own: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = tmp_path / "files"
    shutil.copytree(Path(own[0]).parent, files)
    mine = [word.replace(str(Path(own[0]).parent), str(files)) for word in own]
    out = tmp_path / "run"
    words = ["run", *mine, "--method", "grace", *FAST, "--no-report", "--out", str(out)]
    assert ask(capsys, *words)[0] == 0
    nodes = (files / "nodes.csv").read_text().splitlines(keepends=True)
    (files / "nodes.csv").write_text("".join([*nodes[:-1], nodes[-1].replace("1.0", "0.0")]))
    assert ask(capsys, "evaluate", str(out), "--splits", "2")[0] == 0  # the folder keeps its graph
    (out / "graph.safetensors").unlink()
    status, _, err = ask(capsys, "evaluate", str(out))
    assert (status, "another graph than its files hold now" in err) == (2, True)
    shutil.rmtree(files)
    status, _, err = ask(capsys, "embed", str(out), "--features", "x.csv")
    assert (status, "--features belongs to a new graph" in err) == (2, True)
    assert ask(capsys, "embed", str(out), "--out", str(tmp_path / "z.npy"))[0] == 0
    assert np.array_equal(np.load(tmp_path / "z.npy"), Run(out).embeddings()[1])
    status, text, _ = ask(capsys, "cluster", str(out))
    assert status == 0
    assert "NMI" in text  # to standard output: it was asked for


def test_a_start_that_fails_can_be_tried_again(
    own: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", *own, "--method", "grace", *FAST, "--no-report", "--out", str(tmp_path / "run")]
    status, _, err = ask(capsys, *words, "--set", "temperature=1e-300")
    assert (status, "not a finite number at epoch 1" in err) == (2, True), err
    assert ask(capsys, *words)[0] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--method", "mux-gcl"], "begun with method = "),
        (["--method", "grace", "--seed", "5"], "begun with seed = 0; 5 was asked for"),
        (["--method", "grace", "--set", "temperature=0.9"], "begun with temperature = "),
    ],
)
def test_a_folder_of_another_run_is_not_resumed(
    own: list[str], trained: Path, change: list[str], message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    words = ["run", *own, *FAST, *change, "--resume", "--out", str(trained)]
    status, _, err = ask(capsys, *words)
    assert (status, len(err.splitlines())) == (2, 1)
    assert message in err


def test_a_run_is_not_overwritten_unasked(
    own: list[str], trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = ask(capsys, "run", *own, "--method", "grace", *FAST, "--out", str(trained))
    assert status == 2
    assert "--resume" in err


@pytest.mark.parametrize("more", [[], ["--resume"], ["--overwrite"]])
def test_a_folder_with_other_things_is_left_alone(
    own: list[str], tmp_path: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    words = ["run", *own, "--method", "grace", *FAST, "--out", str(tmp_path), *more]
    status, _, err = ask(capsys, *words)
    assert (status, len(err.splitlines())) == (2, 1)
    assert "holds no run (there is thesis.txt)" in err
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
    assert len(list(tmp_path.iterdir())) == 1  # not even a lock was left


def test_protocol_paper_survives_a_stop(
    own: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("muxgcl.runs.checkpoint.CHECKPOINT_SECONDS", -1.0)
    words = ["run", *own, "--method", "grace", *TINY, "--epochs", "5", "--quiet", "--no-report"]
    words += ["--splits", "2", "--device", "cpu", "--protocol", "paper", "--json"]
    status, text, _ = ask(capsys, *words, "--out", str(tmp_path / "whole"))
    assert status == 0
    want = json.loads(text)["scores"]["paper"]
    observe = PaperProtocol.observe

    def breaks(self: PaperProtocol, epoch: int, z: np.ndarray) -> tuple[float, ...]:
        if epoch == 4:
            raise RuntimeError("the power went off")
        return observe(self, epoch, z)

    stopped = [*words, "--out", str(tmp_path / "stopped")]
    monkeypatch.setattr(PaperProtocol, "observe", breaks)
    with pytest.raises(RuntimeError, match="power"):
        ask(capsys, *stopped)
    seen = []

    def looks(self: PaperProtocol, epoch: int, z: np.ndarray) -> tuple[float, ...]:
        seen.append(epoch)
        return observe(self, epoch, z)

    monkeypatch.setattr(PaperProtocol, "observe", looks)
    status, text, _ = ask(capsys, *stopped, "--resume")
    assert status == 0
    assert seen == [4, 5]
    assert json.loads(text)["scores"]["paper"] == want
    assert want["unselected"]["n"] == 5 * 3
    (tmp_path / "stopped" / "observed.jsonl").unlink()  # as if it had been run without
    status, _, err = ask(capsys, *stopped, "--resume")
    assert (status, len(err.splitlines())) == (2, 1)
    assert "every epoch from 1 on" in err
    other_splits = [*words, "--out", str(tmp_path / "whole"), "--split-seed", "7", "--resume"]
    status, _, err = ask(capsys, *other_splits)
    assert (status, "on these splits" in err) == (2, True)


def test_a_corrupted_checkpoint_is_one_line(
    done: tuple[list[str], Path], own: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words, out = done
    file = out / "checkpoint.safetensors"
    file.write_bytes(file.read_bytes()[:100])
    for again in ([*words, "--resume"], ["embed", str(out), *own]):
        status, _, err = ask(capsys, *again)
        assert (status, len(err.splitlines())) == (2, 1)
        assert "damaged" in err
