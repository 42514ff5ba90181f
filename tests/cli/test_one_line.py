"""One line, always: whatever is typed, whatever is unreadable, whenever it is stopped."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_cases import FAST, ask

import muxgcl
from muxgcl.errors import UserError
from muxgcl.io import planted
from muxgcl.io.load import load

MAIN = "from muxgcl.cli import main; main()"


def line_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command says that ends with status 2: one line, and nothing on standard output."""
    status, text, err = ask(capsys, *words)
    assert (status, text) == (2, ""), err
    assert len(err.splitlines()) == 1, err
    assert err.startswith("muxgcl: ")
    assert len(err) < 1000
    return err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--split-seed", "-1"], "--split-seed"),
        (["--split-seed", str(10**30)], "--split-seed"),
        (["--seed", "-1"], "a seed must be between"),
        (["--seed", str(10**30)], "a seed must be between"),
        (["--splits", "1000000"], "splits must be at most 10,000"),
        (["--splits", "0"], "splits must be at least 1"),
        (["--epochs", "1e20"], "--epochs"),
        (["--epochs", str(10**20)], "epochs must be at most"),
        (["--epochs", "0"], "epochs must be at least 1"),
        (["--set", "projection=inf"], "projection must be a whole number"),
        (["--set", "width=1e308"], "width must be a whole number"),
        (["--set", f"width={10**308}"], "width must be a whole number of at most"),
        (["--set", "width=" + "9" * 5000], "width must be a whole number"),
        (["--out", "a" * 300], "File name too long"),
        (["--features", "a" * 300], "File name too long"),
        (["--preset", "a" * 300 + ".toml"], "File name too long"),
        (["--features", "a\0b"], "--features"),
    ],
)
def test_options_without_sense_are_one_line(
    own: list[str], tmp_path: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    last = {"--splits": "2", "--epochs": "2"}
    base = list(FAST)
    for option in last:
        if option in words:
            at = base.index(option)
            del base[at : at + 2]
    assert said in line_of(capsys, "run", own[0], "--method", "grace", *base, *words)


def test_a_graph_with_a_name_of_300_bytes_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "File name too long" in line_of(capsys, "run", "a" * 300 + ".csv")
    assert "File name too long" in line_of(capsys, "embed", "é" * 200)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seed", "-1"], "--seed"),
        (["--seed", str(2**32)], "--seed"),
        (["--repeats", "0"], "repeats must be from 1"),
        (["--repeats", "1000000000"], "repeats must be from 1"),
        (["--clusters", "-3"], "clusters"),
    ],
)
def test_clustering_without_sense_is_one_line(
    trained: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in line_of(capsys, "cluster", str(trained), *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bench", "epoch", "--epochs", "0"], "epochs must be at least 1, got 0"),
        (["bench", "epoch", "random-99999999999"], "would take"),
        (["bench", "epoch", "random-" + "9" * 40], "unknown dataset"),
        (["reproduce", "table1", "--splits", "1000000"], "from 1 to 10,000"),
        (["reproduce", "table1", "--seeds", "1000000000"], "from 1 to 10,000"),
        (["tune", "cora", "--splits", "1000000"], "from 1 to 10,000 splits"),
        (["tune", "cora", "--seeds", "100000000"], "seeds must be at most"),
    ],
)
def test_other_commands_without_sense_are_one_line(
    tmp_path: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert said in line_of(capsys, *words)


def test_labels_of_thousands_of_digits_are_words(tmp_path: Path) -> None:
    long = "9" * 5000
    rows = [f"{i},{i % 5},{long if i % 2 else '7'}" for i in range(6)]
    (tmp_path / "nodes.csv").write_text("id,size,label\n" + "\n".join(rows) + "\n")
    (tmp_path / "edges.csv").write_text("0,1\n1,2\n3,4\n4,5\n")
    found = load(tmp_path)
    assert found.tensors.y.tolist() == [0, 1, 0, 1, 0, 1]
    assert found.label_names == ["7", long]


def test_a_zero_byte_anywhere_is_refused(tmp_path: Path) -> None:
    lines = [f"node{i},node{i + 1}" for i in range(20_000)]
    lines[15_000] = "node\0,node3"
    (tmp_path / "edges.csv").write_text("\n".join(lines) + "\n")
    assert "\0" not in (tmp_path / "edges.csv").read_text()[: 1 << 16]
    with pytest.raises(UserError, match="holds zero bytes"):
        load(tmp_path)


FILES = [
    "config.toml", "metrics.jsonl", "checkpoint.safetensors", "embeddings.npz", "nodes.npz",
    "graph.safetensors", "encoding.json", "scores.json", "diagnostics.json",
]  # fmt: skip


def unreadable(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """As a file is to somebody else; the tests may run as root, who may read everything."""
    for name in ("open", "read_bytes", "read_text", "iterdir"):
        real = getattr(Path, name)

        def refuse(self: Path, *args: object, real=real, **rest: object) -> object:
            if self == path or path in self.parents:
                raise PermissionError(13, "Permission denied", str(self))
            return real(self, *args, **rest)

        monkeypatch.setattr(Path, name, refuse)
    opened = io.open

    def no(file: object, *args: object, **rest: object) -> object:  # as archives are opened
        if isinstance(file, str | Path) and Path(file) == path:
            raise PermissionError(13, "Permission denied", str(file))
        return opened(file, *args, **rest)

    monkeypatch.setattr(io, "open", no)
    monkeypatch.setattr("builtins.open", no)


@pytest.mark.parametrize("name", FILES)
def test_an_unreadable_file_of_a_run_is_one_line(
    own: list[str], trained: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    unreadable(monkeypatch, trained / name)
    refused = 0
    again = ["run", *own, "--method", "grace", *FAST, "--no-report", "--out", str(trained)]
    for words in (
        ["report", str(trained), "--out", str(tmp_path / "page.html")],
        ["embed", str(trained), *own, "--out", str(tmp_path / "z.npz")],
        ["embed", str(trained), "--out", str(tmp_path / "z.npz")],
        ["evaluate", str(trained), "--splits", "2"],
        [*again, "--resume"],
    ):
        status, _, err = ask(capsys, *words)
        assert status in (0, 2)
        assert "Traceback" not in err
        refused += status == 2
        if status:
            assert "Permission denied" in err.splitlines()[-1]
    assert refused


@pytest.mark.parametrize("which", ["edges.csv", "nodes.csv", "."])
def test_an_unreadable_graph_is_one_line(
    files: Path, which: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unreadable(monkeypatch, files / which)
    assert "Permission denied" in line_of(capsys, "run", str(files), *FAST)


def test_a_study_that_may_not_be_read_is_one_line(
    own: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "s.study").write_text("")
    unreadable(monkeypatch, tmp_path / "s.study")
    words = ["tune", *own, "--study", str(tmp_path / "s.study"), "--trials", "1"]
    assert "Permission denied" in line_of(capsys, *words)


def test_a_folder_that_may_not_be_looked_into_is_one_line_in_python_too(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "is_file", refuse)
    with pytest.raises(UserError, match=r"config\.toml cannot be read: Permission denied"):
        muxgcl.run_info(trained)


def test_a_zero_byte_in_the_name_of_a_run_is_one_line_in_python_too() -> None:
    options = muxgcl.RunOptions(method="sgc", out="a\0b", device="cpu", score=False)
    with pytest.raises(UserError, match=r"cannot write to .*null byte"):
        muxgcl.run(planted(nodes=40), options)


# as a process of its own


def python(*words: str, **rest: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", MAIN, *words], text=True, **rest)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_standard_output_on_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = python("methods", "--json", stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("muxgcl: ")
    assert line.endswith("No space left on device")


def test_a_closed_standard_output_is_no_fault(trained: Path) -> None:
    call = [sys.executable, "-c", MAIN, "info", str(trained)]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *call], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_record_on_a_full_disk_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "kernels", "--nodes", "8", "--width", "4", "--rank", "4", "--device", "cpu"]
    assert "No space left on device" in line_of(capsys, *words, "--record", "/dev/full")


def test_an_ascii_terminal_is_told_everything(trained: Path, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    for words in (["evaluate", str(trained), "--splits", "2"], ["methods"], ["datasets"]):
        done = python(*words, env=env, capture_output=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.isascii()
    out = str(tmp_path / "é😀.npz")
    done = python("embed", str(trained), "--out", out, env={**env, "PYTHONUTF8": "1"},
                  capture_output=True)  # fmt: skip
    assert (done.returncode, Path(out).is_file()) == (0, True), done.stderr


def test_no_home_and_no_entry_for_the_user_is_no_fault(tmp_path: Path) -> None:
    program = (
        "import pwd, os\n"
        "def nobody(*_): raise KeyError('uid not found')\n"
        "pwd.getpwuid = nobody\n" + MAIN
    )
    env = {
        k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME", "MUXGCL_DATA")
    }
    words = ["run", "cora", "--method", "sgc", "--splits", "1", "--no-report", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words, "--out", str(tmp_path / "run")],
        env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = subprocess.run(
        [sys.executable, "-c", program, "run", "pubmed"], env=env, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "there is no home folder" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("wait", [0.15, 0.5, 1.0])
def test_ctrl_c_while_the_program_loads_is_one_line(wait: float) -> None:
    words = [sys.executable, "-c", "print('begun', flush=True); " + MAIN, "methods", "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, text=True, **pipes) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == "begun\n"
        time.sleep(wait)
        child.send_signal(signal.SIGINT)
        out, err = child.stdout.read(), child.stderr.read()
        status = child.wait(60)
    if status == 0:  # it was done already
        assert out.startswith("{")
        return
    assert (status, len(err.splitlines())) == (130, 1), err
    assert err.startswith("muxgcl: ")


BUSY = """
import threading, time
from muxgcl.cli import app, main
def stopped(words):
    threading.Thread(target=time.sleep, args=(600,)).start()  # a probe inside a library
    return 143
app.run = stopped
main()
"""


def test_a_stopped_command_does_not_wait_for_its_threads_nor_tear_down_what_they_use() -> None:
    done = subprocess.run([sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (143, "")
