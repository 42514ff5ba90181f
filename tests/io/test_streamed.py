"""Tables from Parquet and Arrow files come block by block: memory holds the table and one block."""

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch
from scipy.sparse import csr_array, vstack

from muxgcl.errors import UserError
from muxgcl.io import arrow_text, parquet, table
from muxgcl.io.load import load
from muxgcl.io.table import Block, ReadAgain, gather

ROWS, COLUMNS = 20_000, 80
TABLE = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).astype(np.float32)  # 6.4 MB
EDGES = torch.tensor([[*range(39)], [*range(1, 40)]])
GROUP = 2_000  # rows that a file has together


def columns(numbers: np.ndarray[Any, Any]) -> pyarrow.Table:
    named = {f"x{k}": numbers[:, k] for k in range(numbers.shape[1])}
    return pyarrow.table({"id": np.arange(len(numbers)), **named})


def as_parquet(path: Path, numbers: np.ndarray[Any, Any], **options: Any) -> Path:
    file = path / "nodes.parquet"
    pyarrow.parquet.write_table(columns(numbers), file, row_group_size=GROUP, **options)
    return file


def as_arrow(path: Path, numbers: np.ndarray[Any, Any], compression: str | None = None) -> Path:
    file, whole = path / "nodes.arrow", columns(numbers)
    how = pyarrow.ipc.IpcWriteOptions(compression=compression)
    with pyarrow.ipc.new_file(file, whole.schema, options=how) as writer:
        writer.write_table(whole, max_chunksize=GROUP)
    return file


def as_lz4(path: Path, numbers: np.ndarray[Any, Any]) -> Path:
    return as_arrow(path, numbers, "lz4")


def as_csv(path: Path, numbers: np.ndarray[Any, Any]) -> Path:
    pyarrow.csv.write_csv(columns(numbers), path / "nodes.csv")
    return path / "nodes.csv"


@pytest.mark.parametrize("write", [as_parquet, as_arrow, as_lz4, as_csv])
@pytest.mark.parametrize("scale", [False, True])
def test_memory_holds_the_table_and_one_block(
    write: Callable[[Path, np.ndarray[Any, Any]], Path],
    scale: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arrow_text, "PIECE", 1 << 18)
    file = write(tmp_path, TABLE)
    load(EDGES, features=file, scale=scale)  # imports, and what is kept between calls
    pool = pyarrow.proxy_memory_pool(pyarrow.default_memory_pool())
    before = pyarrow.default_memory_pool()
    pyarrow.set_memory_pool(pool)
    tracemalloc.start()
    try:
        x = load(EDGES, features=file, scale=scale).tensors.x
        ours = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        pyarrow.set_memory_pool(before)
    block = GROUP * COLUMNS * 4
    first = 5e6 if write is as_csv else 0  # bytes of 809 rows as text, to judge columns by
    assert ours < 1.25 * TABLE.nbytes + 2 * block + first
    if write is not as_csv:  # which is read ahead
        assert pool.max_memory() < 3 * block  # pyarrow's own: one group of rows
    want = load(EDGES, features=TABLE, scale=scale).tensors.x
    assert torch.allclose(x, want, atol=1e-6)
    if not scale:
        np.testing.assert_array_equal(x.numpy(), TABLE)


def test_a_parquet_file_is_asked_for_few_rows_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    batches = parquet._Parquet.iter_batches

    def counting(self: Any, size: int, columns: list[str]) -> Iterator[Any]:
        for batch in batches(self, size, columns):
            seen.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(parquet._Parquet, "iter_batches", counting)
    load(EDGES, features=as_parquet(tmp_path, TABLE), scale=False)
    assert sum(seen) == ROWS
    assert max(seen) * COLUMNS <= 2 * table.CELLS
    assert len(seen) >= ROWS // GROUP


@pytest.mark.parametrize("write", [as_parquet, as_arrow, as_lz4])
def test_a_file_that_is_damaged_in_the_middle_is_one_line(
    write: Callable[[Path, np.ndarray[Any, Any]], Path], tmp_path: Path
) -> None:
    file = write(tmp_path, TABLE)
    content = bytearray(file.read_bytes())
    middle = len(content) // 2
    content[middle - 40_000 : middle + 40_000] = b"\xff" * 80_000
    file.write_bytes(content)
    with pytest.raises(UserError) as caught:
        load(EDGES, features=file)
    assert "\n" not in str(caught.value)
    kind = "Parquet" if write is as_parquet else "Arrow"
    told = str(caught.value)
    assert f"cannot be read as {kind}" in told or "holds NaN" in told or "expected" in told


def block(numbers: Any, text: dict[str, list[str]] | None = None) -> Block:
    names = [f"x{k}" for k in range(numbers.shape[1])]
    ids = np.arange(numbers.shape[0])
    return Block(kept={"id": ids}, text=text or {}, numbers=numbers, number_names=names)


@pytest.mark.parametrize("kinds", ["d", "ddd", "dddddddddd", "s", "dds", "sdd", "dsd"])
def test_blocks_are_stacked_in_order_dense_or_sparse(kinds: str) -> None:
    rng = np.random.default_rng(1)
    parts: list[Any] = []
    for kind in kinds:
        dense = rng.normal(size=(rng.integers(1, 50), 70)).astype(np.float32)
        few = dense * (rng.random(dense.shape) < 0.01)
        parts.append(csr_array(few) if kind == "s" else dense)
    copies = [part.copy() for part in parts]
    found = gather(lambda as_text: iter([block(part) for part in parts]))
    assert found is not None
    want = vstack([csr_array(part) for part in copies]).toarray()
    got = found.numbers.toarray() if isinstance(found.numbers, csr_array) else found.numbers
    np.testing.assert_array_equal(got, want)
    for part, copy in zip(parts, copies, strict=True):  # nobody's block was written to
        assert (abs(part - copy)).max() == 0
    assert len(found.kept["id"]) == len(want)


def test_a_table_grows_seldom_and_ends_without_room_to_spare(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []
    resize = table._Growing._resize

    def counting(self: Any, rows: int) -> None:
        sizes.append(rows)
        resize(self, rows)

    monkeypatch.setattr(table._Growing, "_resize", counting)
    parts = [np.full((100, 3), k, np.float32) for k in range(500)]
    found = gather(lambda as_text: iter([block(part) for part in parts]))
    assert found is not None
    assert isinstance(found.numbers, np.ndarray)
    np.testing.assert_array_equal(found.numbers, np.concatenate(parts))
    assert found.numbers.base is None
    assert len(sizes) < 100
    assert max(sizes) <= 1.08 * 50_000


def test_a_column_that_turns_into_text_late_is_read_as_text_from_the_start() -> None:
    asked: list[frozenset[str]] = []

    def read(as_text: frozenset[str]) -> Iterator[Block]:
        asked.append(as_text)
        yield block(np.ones((2, 1), np.float32), {"c": ["1", "2"]} if as_text else None)
        yield block(np.ones((2, 1), np.float32), {"c": ["a", "b"]})
        yield block(np.ones((2, 1), np.float32), {"c": ["3", "4"]} if as_text else None)

    found = gather(read)
    assert asked == [frozenset(), frozenset({"c"})]
    assert found is not None
    assert found.text == {"c": ["1", "2", "a", "b", "3", "4"]}
    assert found.numbers.shape == (6, 1)


def test_what_was_read_before_a_reader_goes_another_way_does_not_count() -> None:
    ways = [2, 1]

    def read(as_text: frozenset[str]) -> Iterator[Block]:
        for _ in range(3):
            yield block(np.full((2, 1), len(ways), np.float32))
            if ways:
                ways.pop()
                raise ReadAgain

    found = gather(read)
    assert found is not None
    np.testing.assert_array_equal(found.numbers, np.zeros((6, 1)))
    assert len(found.kept["id"]) == 6


def test_features_are_written_over_numbers_that_nobody_else_holds(tmp_path: Path) -> None:
    """A user's own table stays as it was, and a report shows what the file holds."""
    mine = 3 * TABLE[:50] + 7
    loaded = load(EDGES, features=mine)
    np.testing.assert_array_equal(mine, 3 * TABLE[:50] + 7)
    file = as_parquet(tmp_path, mine)
    assert torch.allclose(load(EDGES, features=file).tensors.x, loaded.tensors.x, atol=1e-5)
    narrow = load(EDGES, features=as_parquet(tmp_path, mine[:, :5]))
    for k in range(5):
        np.testing.assert_array_equal(narrow.columns[f"x{k}"], mine[:, k])
    assert abs(float(narrow.tensors.x.mean())) < 1e-5
