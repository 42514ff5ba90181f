"""What a person sees while a command works, and how it ends when asked to stop."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cli_cases import FAST, TINY, ask, command_line
from rich.console import Console
from rich.progress import Progress

from muxgcl import __version__
from muxgcl.app import screen as screens
from muxgcl.app.screen import Screen
from muxgcl.app.show import info_rows, say
from muxgcl.cli import _told_after, progress
from muxgcl.runs.environment import human_time
from muxgcl.runs.folder import Run
from muxgcl.runs.loop import Epoch

SOURCE = str(Path(__file__).resolve().parents[2] / "src")


def interrupted(*given: Any, **more: Any) -> Any:
    raise KeyboardInterrupt


def terminated(*given: Any, **more: Any) -> Any:
    signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize(
    ("place", "phase", "resumable"),
    [
        ("muxgcl.app.source.load", "loading", False),
        ("muxgcl.app.members.make_ready", "preparing", False),
        ("muxgcl.methods.grace.Grace.prepare", "preparing the first epoch", True),
        ("muxgcl.app.judge.score", "scoring", True),
        ("muxgcl.app.judge.score_controls", "scoring controls", True),
        ("muxgcl.report.write_report", "writing the report", True),
    ],
)
@pytest.mark.parametrize(("stop", "status"), [(interrupted, 130), (terminated, 143)])
def test_a_signal_is_told_in_every_phase_with_how_to_go_on(
    place: str, phase: str, resumable: bool, stop: Any, status: int,
    own: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    words = ["run", *own, "--method", "grace", *FAST, "--out", str(tmp_path / "run")]
    monkeypatch.setattr(sys, "argv", ["muxgcl", *words])
    with monkeypatch.context() as patch:
        patch.setattr(place, stop)
        ended, _, err = ask(capsys, *words)
    assert ended == status
    line = err.splitlines()[-1]
    assert line.startswith(f"muxgcl: stopped while {phase}; ")
    assert ("continue with: muxgcl run " in line) == resumable
    assert ("nothing was written" in line) != resumable
    if resumable:
        assert line.endswith("--resume")
        assert ask(capsys, *words, "--resume", "--no-report")[0] == 0
    else:
        assert not (tmp_path / "run" / "config.toml").exists()


def test_sigterm_ends_training_after_an_epoch_with_status_143(
    own: list[str], tmp_path: Path
) -> None:
    words = ["train", *own, "--method", "grace", *TINY, "--epochs", "100000", "--device", "cpu"]
    out = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-m", "muxgcl", *words, "--out", str(out)],
        env={**os.environ, "PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        while len(Run(out).metrics() if out.is_dir() else ()) < 3 and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 143
    assert "stopping at the end of this epoch" in err
    epoch = Run(out).checkpoint()[1]["epoch"]
    assert f"stopped after epoch {epoch} of 100000; continue with: muxgcl train" in err
    assert len(Run(out).metrics()) == epoch


def test_without_a_terminal_there_is_a_line_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()
    monkeypatch.setattr(screens, "console", Console(file=told, force_terminal=False))
    monkeypatch.setattr(screens, "FIRST_LINE", 0.01)
    monkeypatch.setattr(screens, "NEXT_LINES", 0.01)
    with Screen() as screen:
        screen.phase("loading")
        wait_for(lambda: "loading the graph ..." in told.getvalue())
        screen.phase("training")
        screen.epochs([Epoch(3, {"a": 2.5}, 2.0)], 10)
        line = "training: epoch 3 of 10, loss 2.50, 2.0 s an epoch, 14.0 s left"
        wait_for(lambda: line in " ".join(told.getvalue().split()))
    said = told.getvalue()
    time.sleep(0.05)
    assert told.getvalue() == said  # the end is the end


def test_a_quick_or_quiet_command_says_nothing_of_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()
    monkeypatch.setattr(screens, "console", Console(file=told, force_terminal=False))
    with Screen() as screen:
        screen.phase("loading")
    monkeypatch.setattr(screens, "FIRST_LINE", 0.0)
    with Screen(quiet=True) as screen:
        screen.phase("loading")
        time.sleep(0.05)
    assert told.getvalue() == ""


def test_on_a_terminal_a_phase_shows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()
    monkeypatch.setattr(screens, "console", Console(file=told, force_terminal=True, width=100))
    with Screen() as screen:
        screen.phase("loading")
        assert "loading the graph" in told.getvalue()
        screen.phase("training")
        screen.step(3, 7)
        screen.epochs([Epoch(10, {"a": 2.5}, 2.8)], 10)
    seen = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", told.getvalue())
    assert "10/10 loss 2.50 2.8 s an epoch" in seen
    assert "?" not in seen  # of what has no number there is none


def test_the_time_that_is_left_is_called_so() -> None:
    column, bar = screens.TimeLeft(compact=True), Progress()
    bar.add_task("training", total=100)
    (task,) = bar.tasks
    assert str(column.render(task)) == ""
    now = iter(range(100))
    task.get_time = lambda: float(next(now))
    bar.start_task(task.id)
    for done in (10, 20, 30):
        bar.update(task.id, completed=done)
    assert re.fullmatch(r"\d\d:\d\d left", str(column.render(task)))


def test_sentences_break_between_words_and_paths_stay_whole() -> None:
    path = "/a/folder/of/a/very/long/name/" + "x" * 40 + ".csv"
    sentence = f"the quick brown fox reads the file {path} and goes on"
    for terminal in (True, False):
        told = io.StringIO()
        say(sentence, Console(file=told, force_terminal=terminal, width=30, highlight=False))
        lines = [line.strip() for line in told.getvalue().splitlines()]
        assert " ".join(lines) == sentence
        assert lines == [sentence] or (path in lines and len(lines) == 4)
        assert (len(lines) > 1) == terminal


def test_a_signal_elsewhere_has_its_status_too(
    trained: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for stop, status in ((interrupted, 130), (terminated, 143)):
        monkeypatch.setattr("muxgcl.cli.use.run_info", stop)
        assert ask(capsys, "info", str(trained)) == (status, "", "muxgcl: stopped\n")
        monkeypatch.setattr("muxgcl.report.read_run", stop)
        line = "muxgcl: stopped while writing the report; nothing was written\n"
        assert ask(capsys, "report", str(trained)) == (status, "", line)


def test_the_version_is_told_without_what_takes_seconds_to_load() -> None:
    code = (
        "import sys; from muxgcl.cli import main; sys.argv = ['muxgcl', '--version']\n"
        "try: main()\n"
        "finally: print(sorted({'torch', 'typer', 'numpy'} & set(sys.modules)))"
    )
    env = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout == f"muxgcl {__version__}\n[]\n"


def test_a_terminal_shows_that_libraries_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        with _told_after(0.01):
            time.sleep(0.2)
        told = "loading PyTorch ...\r\x1b[K" if stream.isatty() else ""
        assert stream.getvalue() == told
        with _told_after(60.0):
            pass
        assert stream.getvalue() == told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_libraries_are_loaded_is_one_line(number: signal.Signals) -> None:
    code = (
        "import signal, sys; from muxgcl.cli import main\n"
        "class Stop:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == 'muxgcl.cli.commands': signal.raise_signal({int(number)})\n"
        "sys.meta_path.insert(0, Stop()); sys.argv = ['muxgcl', 'methods']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (128 + number, "")
    assert done.stderr == "muxgcl: stopped\n"


def test_a_search_without_a_terminal_prints_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = io.StringIO()
    plain = Console(file=told, force_terminal=False)
    monkeypatch.setattr(screens, "console", plain)
    monkeypatch.setattr(progress, "console", plain)
    monkeypatch.setattr(screens, "FIRST_LINE", 0.01)
    monkeypatch.setattr(screens, "NEXT_LINES", 0.01)
    with progress.search_bar(3, ["a note"]) as bar:
        bar.trial(0, "")
        wait_for(lambda: "tuning: 0 of 3 trials done" in told.getvalue())
        bar.block([Epoch(4, {"a": 2.5}, 2.0)])
        wait_for(lambda: "done, trial 1: epoch 4, loss 2.500\n" in told.getvalue())
        bar.trial(1, "best 80")
        wait_for(lambda: "1 of 3 trials done, best 80, about " in told.getvalue())
        bar.trial(3, "best 81")
        wait_for(lambda: "3 of 3 trials done, best 81, scoring controls" in told.getvalue())
    assert told.getvalue().startswith("a note\n")
    said = told.getvalue()
    time.sleep(0.05)
    assert told.getvalue() == said


def test_clusters_of_controls_stand_beside_the_methods(
    own: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "run")
    words = ["run", *own, "--method", "sgc", "--splits", "2", "--no-report", "--out", out]
    assert ask(capsys, *words)[0] == 0
    status, text, _ = ask(capsys, "cluster", out, "--repeats", "2")
    assert status == 0
    names = [line.split("  ")[1] for line in text.splitlines() if line.startswith("  ")]
    assert names == ["sgc", "raw features", "A X", "A^2 X", "X|AX|A^2X"]
    kept = Run(tmp_path / "run").scores()
    assert kept["clustering"]["clusters"] == 3
    status, text, err = ask(capsys, "cluster", out, "--clusters", "2")
    assert status == 0
    assert "raw" not in text  # not as many
    assert "not kept in scores.json: the graph has 3 classes" in err
    assert Run(tmp_path / "run").scores() == kept


def wait_for(true: Any) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0278, "27.8 ms"), (0.9994, "999 ms"), (0.9996, "1.0 s"), (2.78, "2.8 s"),
        (99.94, "99.9 s"), (99.96, "1 min 40 s"), (125, "2 min 5 s"), (7322, "2 h 2 min"),
    ],
)  # fmt: skip
def test_times_come_in_the_unit_that_a_person_would_use(seconds: float, words: str) -> None:
    assert human_time(seconds) == words


def test_scores_are_on_standard_output_with_the_method_and_controls_by_name(
    own: list[str], trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "run")
    words = ["run", *own, "--method", "grace", *FAST, "--no-report", "--out", out]
    commands = (words, ["evaluate", str(trained), "--splits", "2"], ["info", str(trained)])
    for command in commands:
        status, text, err = ask(capsys, *command)
        assert status == 0
        rows = [line for line in text.splitlines() if line[:2] == "  " and line[2] != " "]
        names = [line.split("  ")[1] for line in rows]
        assert names[:7] == [
            "grace", "raw features", "A X", "A^2 X", "X|AX|A^2X", "untrained encoder",
            "majority class",
        ]  # fmt: skip
        assert "training " in text.splitlines()[-1]
        assert "accuracy" not in err
    status, text, err = ask(capsys, *words, "--overwrite", "--no-controls", "--json")
    assert "controls" not in json.loads(text)["scores"]
    assert json.loads(text)["verdict"] is None
    assert "accuracy" in err  # standard output is JSON alone


def test_info_of_a_run_is_told_or_printed_as_json(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, text, _ = ask(capsys, "info", str(trained), "--json")
    assert status == 0
    found = json.loads(text)
    assert (found["method"], found["epochs_done"], found["finished"]) == ("grace", 2, True)
    status, text, _ = ask(capsys, "info", str(trained))
    assert "2 of 2, loss " in text
    assert "all columns that are read out" in text
    rows = dict(info_rows({**found, "output_width": 1024}))
    assert rows["width"] == "1,024 columns"
    counts = f"{found['nodes']} nodes, {found['edges'] // 2} edges, {found['features']} features"
    assert rows["graph"] == f"edges: {counts}, {found['classes']} classes"
    directed = dict(info_rows({**found, "directed": True}))["graph"]
    assert f"{found['edges'] // 2} pairs of nodes with directed edges" in directed
    assert ask(capsys, "info", str(tmp_path))[0] == 2


def test_labels_can_be_given_later(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = ["train", str(files / "edges.csv"), "--method", "grace", *TINY, "--epochs", "2"]
    assert command_line([*words, "--quiet", "--device", "cpu", "--out", str(out)]) == 0
    labels = ["--labels", str(files / "nodes.csv"), "--label-column", "topic"]
    status, text, err = ask(capsys, "evaluate", str(out), *labels, "--splits", "2", "--json")
    assert status == 0, err
    assert json.loads(text)["scores"]["holdout"]["accuracy"]["n"] == 2


@pytest.mark.parametrize(("given", "want"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_sleep_while_they_wait_unless_told_otherwise(
    given: str | None, want: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before torch is loaded: it reads the variable once."""
    code = (
        "import os, sys, muxgcl; assert 'torch' not in sys.modules\n"
        "print(os.environ['OMP_WAIT_POLICY'])"
    )
    monkeypatch.setenv("PYTHONPATH", SOURCE)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_WAIT_POLICY", given)
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split()[-1] == want
