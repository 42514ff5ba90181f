"""Tables written block by block: what arrives, and what is left when something fails."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas
import pytest

from muxgcl.errors import UserError
from muxgcl.io.save import save_blocks, save_table

TABLE = np.random.default_rng(0).normal(size=(23, 3)).astype(np.float32)
IDS = np.arange(100, 123)


def blocks() -> Iterator[np.ndarray]:
    for start in range(0, 23, 5):
        yield TABLE[start : start + 5]


def read(path: Path) -> np.ndarray:
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            np.testing.assert_array_equal(arrays["id"], IDS)
            return arrays["embedding"]
    frame = pandas.read_csv(path) if path.suffix == ".csv" else pandas.read_parquet(path)
    np.testing.assert_array_equal(frame.pop("id"), IDS)
    assert list(frame) == ["z0", "z1", "z2"]
    return frame.to_numpy(np.float32)


@pytest.mark.parametrize("ending", [".npy", ".npz", ".parquet", ".csv"])
def test_blocks_become_the_file_that_the_whole_table_becomes(ending: str, tmp_path: Path) -> None:
    one, whole = tmp_path / f"blocks{ending}", tmp_path / f"whole{ending}"
    assert save_blocks(one, IDS, blocks()) == 3
    save_table(whole, IDS, TABLE)
    for path in (one, whole):
        np.testing.assert_array_equal(read(path), TABLE)
    if ending == ".npy":  # what numpy itself writes
        np.save(tmp_path / "numpy.npy", TABLE)
        assert (tmp_path / "numpy.npy").read_bytes() == one.read_bytes()


@pytest.mark.parametrize("ending", [".npy", ".npz", ".parquet", ".csv"])
def test_a_disk_that_fills_while_blocks_are_written_leaves_the_old_file_and_one_line(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"z{ending}"
    path.write_bytes(b"before")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def filling() -> Iterator[np.ndarray]:
        yield from blocks()
        raise full  # as a write to a full disk would

    with pytest.raises(UserError, match=f"cannot write .*z{ending}: No space left on device"):
        save_blocks(path, IDS, filling())
    assert path.read_bytes() == b"before"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("ending", [".npy", ".npz", ".parquet", ".csv"])
def test_a_device_that_is_full_is_told_in_one_line(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel itself refuses: the temporary file is opened on a device without room."""
    opened = os.fdopen

    def on_full_device(handle: int, mode: str) -> object:
        os.close(handle)
        return opened(os.open("/dev/full", os.O_WRONLY), mode, buffering=16)

    monkeypatch.setattr("muxgcl.io.files.os.fdopen", on_full_device)
    with pytest.raises(UserError, match="No space left on device"):
        save_blocks(tmp_path / f"z{ending}", IDS, blocks())
    assert list(tmp_path.iterdir()) == []


def test_a_block_that_is_not_a_number_leaves_nothing(tmp_path: Path) -> None:
    wrong = [TABLE[:20], np.full((3, 3), np.nan, np.float32)]
    with pytest.raises(UserError, match="NaN or infinity"):
        save_blocks(tmp_path / "z.npy", IDS, wrong)
    assert list(tmp_path.iterdir()) == []
