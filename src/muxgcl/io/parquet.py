"""Parquet, read in batches; needs pyarrow (the `io` extra)."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muxgcl.errors import UserError
from muxgcl.io.columnar import is_text, read_columns
from muxgcl.io.roles import EdgeColumns, NodeColumns
from muxgcl.io.safety import check_file, parsing
from muxgcl.io.table import Table

SUFFIXES = (".parquet", ".pq")
CELL_BYTES = 4


def read_parquet(path: Path, columns: EdgeColumns | NodeColumns) -> Table:
    """Read the columns that are asked for; nulls are missing values."""
    check_file(path)
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as missing:
        raise UserError(f"{path}: reading Parquet needs pyarrow; pip install pyarrow") from missing
    # text stays coded by a dictionary until its length is known: a word of a megabyte that a file
    # holds once may stand in every row
    with parsing(path, "Parquet"), ParquetFile(path) as plain:
        texts = [field.name for field in plain.schema_arrow if is_text(field.type)]
    with parsing(path, "Parquet"), ParquetFile(path, read_dictionary=texts) as file:
        return read_columns(_Parquet(file), path, columns)


@dataclass(frozen=True, slots=True)
class _Parquet:
    """What `read_columns` asks of a file."""

    file: Any

    @property
    def schema_arrow(self) -> Any:
        return self.file.schema_arrow

    def unpacked(self, wanted: set[str]) -> int:
        """Bytes once decompressed; run-length coding makes rows free, so their cells count too."""
        metadata, total, rows = self.file.metadata, 0, int(self.file.metadata.num_rows)
        for group in range(metadata.num_row_groups):
            for at in range(metadata.num_columns):
                column = metadata.row_group(group).column(at)
                if column.path_in_schema.split(".")[0] in wanted:
                    total += max(0, column.total_uncompressed_size)
        return max(total, CELL_BYTES * rows * len(wanted))

    def iter_batches(self, size: int, columns: list[str]) -> Iterator[Any]:
        return iter(self.file.iter_batches(size, columns=columns))
