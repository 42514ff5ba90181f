"""Large tables of features stay on the disk: they are mapped into memory, not copied."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from muxgcl.errors import UserError
from muxgcl.graph import Graph, features_of
from muxgcl.io import npz
from muxgcl.io.load import load

TABLE = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
EDGES = torch.tensor([[*range(39)], [*range(1, 40)]])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(npz, "MAPPED", 1)
    np.save(tmp_path / "x.npy", TABLE)
    return tmp_path / "x.npy"


def is_mapped(path: Path) -> bool:
    return str(path) in Path("/proc/self/maps").read_text()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
def test_features_that_are_kept_as_they_are_are_read_from_the_file(file: Path) -> None:
    loaded = load(EDGES, features=file, scale=False)
    graph = Graph.from_data(loaded.tensors)
    assert is_mapped(file)
    assert isinstance(graph.features, torch.Tensor)
    assert graph.features.data_ptr() == loaded.tensors.x.data_ptr()
    np.testing.assert_array_equal(graph.features.numpy(), TABLE)
    graph.features[0] = 7  # is nobody's but this process's
    np.testing.assert_array_equal(np.load(file), TABLE)


@pytest.mark.parametrize("kind", [np.float64, np.int32, np.float16, np.bool_])
def test_other_numbers_are_what_they_are_in_memory(file: Path, kind: type) -> None:
    np.save(file, (4 * TABLE).astype(kind))
    mapped = load(EDGES, features=file).tensors.x
    held = load(EDGES, features=(4 * TABLE).astype(kind)).tensors.x
    assert torch.equal(mapped, held)


def test_scaled_features_are_those_of_the_table_in_memory(file: Path) -> None:
    assert torch.equal(load(EDGES, features=file).tensors.x, load(EDGES, features=TABLE).tensors.x)
    np.testing.assert_array_equal(np.load(file), TABLE)


def test_a_file_that_was_cut_or_holds_nan_is_one_line(file: Path) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[:-5])
    with pytest.raises(UserError, match="declares 960 bytes of data, but holds 955 bytes"):
        load(EDGES, features=file)
    wrong = TABLE.copy()
    wrong[3, 2] = np.nan
    np.save(file, wrong)
    with pytest.raises(UserError, match="row 3: column '2' holds NaN"):
        load(EDGES, features=file)


@pytest.mark.filterwarnings("error")
def test_a_read_only_map_of_the_users_own_is_taken_as_it_is(file: Path) -> None:
    mapped = np.load(file, mmap_mode="r")
    x = load(EDGES, features=mapped, scale=False).tensors.x
    assert x.data_ptr() == mapped.ctypes.data
    np.testing.assert_array_equal(x.numpy(), TABLE)


class Widest(TorchDispatchMode):
    """The most numbers that one operation has made."""

    most = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and func is not torch.ops.aten.slice.Tensor:
            self.most = max(self.most, out.numel())
        return out


def test_a_mapped_table_is_looked_at_in_blocks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = np.random.default_rng(1).normal(size=(20_000, 80)).astype(np.float32)  # 6.4 MB
    np.save(file, large)
    tracemalloc.start()
    try:
        x = load(EDGES, features=file, scale=False).tensors.x
        assert tracemalloc.get_traced_memory()[1] < large.nbytes / 4
    finally:
        tracemalloc.stop()
    monkeypatch.setattr("muxgcl.graph.LOOK", 8000)
    with Widest() as seen:
        assert features_of(x) is x
    assert 0 < seen.most <= 8000
    x[17_003, 4] = torch.inf
    with pytest.raises(UserError, match="node 17003 has NaN or infinity"):
        features_of(x)
