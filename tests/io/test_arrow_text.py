"""Text read by pyarrow is the text that Python's csv reads: same tables, same lines of mistakes."""

import csv
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muxgcl.errors import UserError
from muxgcl.io import arrow_text, delimited
from muxgcl.io.roles import EdgeColumns, NodeColumns

CELL = st.one_of(
    st.integers(-20, 20).map(str),
    st.floats(width=32).map(str),
    st.sampled_from(
        ["", "NA", " 7", "7 ", "07", "+7", "1_0", "true", "nan", "inf", "1e400", "1,5"]
    ),
    st.text("ab é#\t.", max_size=3),
    st.text('a",\n ', max_size=3),
)


def read(path: Path, columns: EdgeColumns | NodeColumns, small: int, **options: Any) -> Any:
    """A table as plain lists, or the one line that says why there is none."""
    before, arrow_text.SMALL = arrow_text.SMALL, small
    try:
        table = delimited.read_delimited(path, columns, **options)
    except UserError as fault:
        return str(fault)
    finally:
        arrow_text.SMALL = before
    rows = table.rows
    kept = {name: (type(ids).__name__, list(ids)) for name, ids in rows.kept.items()}
    numbers = np.asarray(rows.numbers).tobytes()
    places = [table.place(row) for row in range(len(rows.numbers))]
    return table.columns, table.headless, kept, rows.text, rows.number_names, numbers, places


def both(path: Path, columns: EdgeColumns | NodeColumns, **options: Any) -> Any:
    with_arrow, without = read(path, columns, 0, **options), read(path, columns, 1 << 40, **options)
    assert with_arrow == without
    return with_arrow


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.integers(2, 4).flatmap(
        lambda width: st.lists(
            st.lists(CELL, min_size=width, max_size=width), min_size=1, max_size=12
        )
    ),
    separator=st.sampled_from([",", ";", "\t", " "]),
    end=st.sampled_from(["\n", "\r\n"]),
    header=st.sampled_from([None, True, False]),
    comments=st.sampled_from(["", "# made by hand\n", "\ufeff# one\n\n# two\n"]),
    quoting=st.sampled_from([None, csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    nodes=st.booleans(),
)
def test_random_text_is_the_same_table_with_and_without_pyarrow(
    rows: list[list[str]],
    separator: str,
    end: str,
    header: bool | None,
    comments: str,
    quoting: Any,
    nodes: bool,
    tmp_path: Path,
) -> None:
    path = tmp_path / "table.txt"
    if quoting is None:
        text = "".join(separator.join(row) + end for row in rows)
    else:
        written = StringIO()
        csv.writer(written, delimiter=separator, quoting=quoting, lineterminator=end).writerows(
            rows
        )
        text = written.getvalue()
    path.write_bytes((comments + text).encode())
    both(path, NodeColumns() if nodes else EdgeColumns(), header=header)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("id,age\na,1\nb,2,3\n", "line 3: 3 fields, but line 1 has 2"),
        ("id,age\na,1\n\nb,inf\n", "line 4: column 'age' holds infinity"),
        ("0,0,0,inf\n0,0,inf,0\n", "line 1: column '4' holds inf"),  # the first in the file
        ("# x\nid,age\na,inf\n", "line 3: column 'age' holds inf"),
        ("id,age\na,1\nb,\xe9\n".encode("latin1"), "not UTF-8 text: it holds the byte 0xe9"),
        ("id,age\na," + "x" * 140_000 + "\n", "line 2: field larger than field limit (131072)"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str | bytes, line: str, tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert line in both(path, NodeColumns())


@pytest.mark.parametrize(
    "text",
    [
        'a,b\n"c, d",e\n',
        'a,b\n"c""d",e\n',
        'a,b\nc"d,e\n',
        'a,b\n"c"d,e\n',
        'a,b\n"c\nd",e\n',
        'a,b\n "c",e\n',
        'a,b\nc,"d',
        "a b\nc  d\n",  # runs of spaces
        "a b\n c d\n",
        "a,b\rc,d\re,f\n",  # lone carriage returns
        "a,b\n\n \nc,d\n",
        "a,b,3\nc,d,4\ne,f,x\n",
    ],
)
def test_what_pyarrow_would_read_otherwise_is_read_without_it(text: str, tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_bytes(text.encode())
    both(path, EdgeColumns(), header=False)
    both(path, NodeColumns(), header=False)


def test_large_plain_files_are_pyarrows_and_small_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    found = arrow_text.ArrowReader.blocks
    monkeypatch.setattr(
        arrow_text.ArrowReader,
        "blocks",
        lambda self, *rest: asked.append(self.path) or found(self, *rest),
    )
    for name, rows in (("small.csv", 10), ("large.csv", 200_000)):
        path = tmp_path / name
        path.write_text("".join(f"{row},{row + 1}\n" for row in range(rows)))
        table = delimited.read_delimited(path, EdgeColumns())
        assert table.rows.kept["1"].tolist() == list(range(rows))
        assert table.place(rows - 1) == f"line {rows:,}"
    assert asked == [tmp_path / "large.csv"]


def test_quoted_cells_of_one_line_are_plain_and_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_text, "SMALL", 0)
    monkeypatch.setattr(arrow_text, "PIECE", 3)  # pieces end at every place in turn
    path = tmp_path / "t.csv"
    for text, plain in {
        'a,b\n"c, d",""\n': True,
        '"a","b"\r\n"c""d","e"\r\n': True,
        '"""",b\n': True,
        'a"b,c\n': False,
        '"a"b,c\n': False,
        '"a\nb",c\n': False,
        'a, "b"\n': False,
        'a,"b': False,
        "a\rb\n": False,
    }.items():
        path.write_bytes(text.encode())
        assert arrow_text.is_plain(path, ",") == plain, text


def test_a_late_word_makes_a_column_of_a_large_file_text(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    cells = [*map(str, range(300_000)), "none of these"]
    path.write_text("id,x\n" + "".join(f"{row},{cell}\n" for row, cell in enumerate(cells)))
    assert delimited.read_delimited(path, NodeColumns()).rows.text == {"x": cells}
