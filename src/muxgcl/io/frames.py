"""Tables held in pandas; NaN is a missing value there, as pandas has no other mark for it."""

import sys
from typing import Any

import numpy as np

from muxgcl.errors import UserError
from muxgcl.io.ids import Ids, ids_of
from muxgcl.io.roles import EdgeColumns, NodeColumns, check_names, numbers_rows
from muxgcl.io.safety import quoted
from muxgcl.io.table import Block, Dense, Table, check_finite, counted, settle, stripped


def is_frame(source: object) -> bool:
    """Whether this is a pandas DataFrame, without importing pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(source, pandas.DataFrame)


def is_series(source: object) -> bool:
    """Whether this is a pandas Series, without importing pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(source, pandas.Series)


def labels_frame(series: Any) -> Any:
    """A Series of labels as a frame with its index as ids; None where that counts rows."""
    if series.index.name is None and isinstance(series.index, sys.modules["pandas"].RangeIndex):
        return None
    return series.rename("label").rename_axis("id").reset_index()


def is_adjacency(frame: Any) -> bool:
    """Whether rows and columns of a frame are the same nodes: a matrix, not a list of edges."""
    size = len(frame)
    return (
        size > 3  # three edges with weights are as square
        and frame.shape[1] == size
        and all(kind.kind in "biuf" for kind in frame.dtypes)
        and frame.index.tolist() == frame.columns.tolist()
    )


def read_frame(frame: Any, columns: EdgeColumns | NodeColumns, name: str) -> Table:
    """Read the columns that are asked for; an index of nodes that says anything comes first."""
    notes: tuple[str, ...] = ()
    silent = frame.index.name is None and isinstance(frame.index, sys.modules["pandas"].RangeIndex)
    if isinstance(columns, NodeColumns) and not silent and not frame.empty:
        if frame.index.nlevels == 1 and frame.index.name is None and _numbers_rows(frame, columns):
            notes = (f"{name}: its index numbers the rows, not used",)
        else:
            frame = frame.reset_index()
    if frame.empty:
        raise UserError(f"{name} has no rows")
    names = check_names(name, [str(column) for column in frame.columns])
    frame = frame.set_axis(names, axis=1)
    choice = columns.choose(name, names)
    values = {
        column: _values(frame[column], column, name, as_text=column in columns.texts)
        for column in choice.values
    }
    kept = {column: _kept(frame[column]) for column in choice.kept}
    rows = Block.of(len(frame), kept, values)
    return Table(name=name, columns=names, rows=rows, place=counted("row"), notes=notes)


def _numbers_rows(frame: Any, columns: NodeColumns) -> bool:
    """Of an index without a name."""
    first = frame.iloc[:, 0] if frame.shape[1] else None
    texts = first is not None and first.dtype.kind not in "iufbmM" and bool(first.is_unique)
    names = [str(column).strip() for column in frame.columns]
    integers = frame.index.dtype.kind in "iu"
    return numbers_rows(columns, names, integers=integers, named=texts)


def _kept(column: Any) -> Ids:
    if column.dtype.kind == "i" and not column.isna().any():
        return column.to_numpy(dtype=np.int64)
    return ids_of(_plain(column))


def _values(column: Any, name: str, table: str, *, as_text: bool) -> Dense | list[str]:
    place, missing = counted("row"), column.isna().to_numpy()
    if column.dtype.kind in "iufb":
        with np.errstate(over="ignore"):
            numbers = column.to_numpy(dtype=np.float64, na_value=np.nan).astype(np.float32)
        check_finite(numbers[:, None], [name], table, place, where=~missing[:, None])
        return numbers
    cells = _plain(column)
    if any(isinstance(cell, list | tuple | dict | set | np.ndarray) for cell in cells):
        raise UserError(f"{table}: column {quoted(name)} holds lists; expected numbers or text")
    texts = ["" if cell is None else str(cell) for cell in cells]
    return stripped(texts) if as_text else settle(texts, name, table, place)


def _plain(column: Any) -> list[Any]:
    """Python's values, None for missing."""
    missing = column.isna()
    return [
        None if absent else value for value, absent in zip(column.tolist(), missing, strict=True)
    ]
