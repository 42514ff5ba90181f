"""A hostile file runs no code, fills no memory and keeps nobody waiting."""

import os
import pickle
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from mistake_cases import npy_header

from muxgcl.errors import UserError
from muxgcl.io.load import load
from muxgcl.io.safety import check_size, in_words, memory_limit, parsing

EDGES = torch.tensor([[0, 1], [1, 2]])


class Payload:
    """Unpickling this makes a folder."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("made by a pickle",)


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_nothing_is_unpickled(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    array = np.array([Payload()] * 3, dtype=object)
    if name == "x.npy":
        np.save(name, array, allow_pickle=True)
    else:
        np.savez(name, x=array)
    with pytest.raises(UserError, match="never unpickled"):
        load((EDGES, name))
    assert not Path("made by a pickle").exists()
    pickle.loads(pickle.dumps(Payload()))
    assert Path("made by a pickle").exists()  # the payload does work


def peak_of(path: Path) -> int:
    """Bytes allocated at most while a file is refused."""
    tracemalloc.start()
    try:
        with pytest.raises(UserError):
            load((EDGES, path))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_zip_bomb_is_refused_before_it_unfolds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUXGCL_MAX_BYTES", "20000000")
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for member in range(3):  # each within the limit, together beyond it
            archive.writestr(f"{member}.npy", npy_header((3, 400_000)) + bytes(9_600_000))
    assert peak_of(tmp_path / "x.npz") < 1_000_000


@pytest.mark.parametrize("shape", [(10**9,), (3, 10**9), (2**40, 2**40), (0, -3), (10**30,)])
def test_no_memory_is_taken_for_what_a_header_claims(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    (tmp_path / "x.npy").write_bytes(npy_header(shape) + bytes(64))
    assert peak_of(tmp_path / "x.npy") < 1_000_000
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", npy_header(shape) + bytes(64))
    assert peak_of(tmp_path / "x.npz") < 1_000_000


def test_the_limit_is_half_of_the_memory_at_most_or_as_stated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MUXGCL_MAX_BYTES", raising=False)
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < memory_limit() <= total // 2
    monkeypatch.setenv("MUXGCL_MAX_BYTES", "5000")
    assert memory_limit() == 5000
    check_size("this", 5000)
    with pytest.raises(UserError, match=r"this would take 5\.0 kB of memory"):
        check_size("this", 5001)
    monkeypatch.setenv("MUXGCL_MAX_BYTES", "much")
    with pytest.raises(UserError, match="must be a number of bytes, got 'much'"):
        memory_limit()


def test_sizes_are_said_in_words() -> None:
    sizes = [999, 1500, 2_500_000, 10**10, 3 * 10**13]
    assert list(map(in_words, sizes)) == ["999 bytes", "1.5 kB", "2.5 MB", "10.0 GB", "30.0 TB"]


@pytest.mark.parametrize(
    ("fault", "said"), [(RuntimeError("two\n  lines"), "two lines"), (KeyError(), "KeyError")]
)
def test_a_parsers_fault_becomes_one_line(fault: Exception, said: str) -> None:
    with pytest.raises(UserError) as error, parsing(Path("g.x"), "XML"):
        raise fault
    assert str(error.value) == f"g.x cannot be read as XML: {said}"


def test_an_interrupt_is_no_fault_of_the_file() -> None:
    with pytest.raises(KeyboardInterrupt), parsing(Path("g.x"), "XML"):
        raise KeyboardInterrupt


def test_text_and_npz_need_neither_pandas_nor_pyarrow(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("0,1\n1,2\n")
    np.savez(tmp_path / "nodes.npz", x=np.eye(3))
    program = (
        "import sys\n"
        "for name in ('pandas', 'pyarrow'): sys.modules[name] = None\n"
        "from muxgcl.io.load import load\n"
        f"print(load({str(tmp_path)!r}).data)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "Data(x=[3, 3], edge_index=[2, 4])\n", done.stderr
