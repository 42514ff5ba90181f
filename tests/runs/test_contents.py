"""What each field of a run folder's files may be: its bounds are taken, what lies beyond is not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from muxgcl.errors import UserError
from muxgcl.io.schema import Check
from muxgcl.runs import contents

LARGEST = 2**63 - 1


def nested(path: str, value: Any) -> Any:
    """A table with a value at a path such as `data.nodes`."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


BOUNDS = [
    *((contents.CONFIG, f"run.{n}", 1, LARGEST) for n in ("members", "output_width", "anchors")),
    (contents.CONFIG, "run.keys", 1, LARGEST),
    (contents.CONFIG, "run.seed", 0, LARGEST),
    (contents.CONFIG, "train.epochs", 0, LARGEST),
    *((contents.CONFIG, f"data.{n}", 0, LARGEST) for n in ("nodes", "edges", "features")),
    (contents.CONFIG, "data.classes", 0, LARGEST),
    (contents.scores, "a.b.n", 1, LARGEST),
    (contents.scores, "a.per_split.split_seed", 0, LARGEST),
    *((contents.DIAGNOSTICS, n, 0, 1e308) for n in ("seconds", "epoch_ms", "peak_mib")),
]


@pytest.mark.parametrize(("check", "path", "low", "high"), BOUNDS)
def test_a_number_may_be_its_bounds_and_nothing_beyond(
    check: Check, path: str, low: int, high: int
) -> None:
    if path == "a.b.n":
        table = lambda value: {"a": {"b": {"mean": 0.0, "n": value}}}  # noqa: E731
    elif path.endswith("split_seed"):
        table = lambda value: {"a": {"per_split": {"split_seed": value}}}  # noqa: E731
    else:
        table = lambda value: nested(path, value)  # noqa: E731
    for value in (low, high):
        check(table(value), "file")
    for value in (low - 1, high + 1 if high == LARGEST else float("inf")):
        with pytest.raises(UserError, match=f"file: {path} must be a .* number"):
            check(table(value), "file")


LINES = [
    (contents.METRICS, {"epoch": 1, "loss": 0.0}, "epoch", (1, LARGEST), (0, LARGEST + 1)),
    (contents.METRICS, {"epoch": 1, "loss": 0.0, "ms": 0}, "ms", (0, 5.5), (-1e-9,)),
    (contents.METRICS, {"epoch": 1, "loss": 0.0}, "loss", (-1e308, 1e308), (float("nan"), "1")),
    (
        contents.OBSERVED,
        {"epoch": 0, "split_seed": 0, "accuracy": []},
        "epoch",
        (0, LARGEST),
        (-1, LARGEST + 1),
    ),
    (
        contents.OBSERVED,
        {"epoch": 0, "split_seed": 0, "accuracy": []},
        "split_seed",
        (0, LARGEST),
        (-1, LARGEST + 1),
    ),
    (
        contents.OBSERVED,
        {"epoch": 0, "split_seed": 0, "accuracy": []},
        "accuracy",
        ([0, 100], [0.5, 99.5]),
        ([-0.1], [100.1], 50.0),
    ),
    (contents.FACTS, {"epoch": 0}, "epoch", (0, LARGEST), (-1, LARGEST + 1, 1.0)),
]


@pytest.mark.parametrize(("check", "line", "field", "good", "bad"), LINES)
def test_a_line_may_hold_its_bounds_and_nothing_beyond(
    check: Check, line: dict[str, Any], field: str, good: tuple, bad: tuple
) -> None:
    for value in good:
        check({**line, field: value}, "file")
    for value in bad:
        with pytest.raises(UserError, match=rf"file: {field}\S* must be"):
            check({**line, field: value}, "file")


@pytest.mark.parametrize(
    ("check", "line"),
    [
        (contents.METRICS, {"epoch": 1, "loss": 0.0}),
        (contents.OBSERVED, {"epoch": 0, "split_seed": 0, "accuracy": []}),
        (contents.FACTS, {"epoch": 0}),
        (contents.ENCODING, {"numbers": {}, "categories": {}}),
    ],
)
def test_a_field_that_is_needed_is_missed_by_name(check: Check, line: dict[str, Any]) -> None:
    check(line, "file")
    for name in line:
        rest = {key: value for key, value in line.items() if key != name}
        with pytest.raises(UserError, match=f"file: {name} is missing"):
            check(rest, "file")


def test_a_scale_is_two_numbers_of_which_the_second_divides() -> None:
    def encoding(*pair: Any) -> dict[str, Any]:
        return {"numbers": {"age": list(pair)}, "categories": {"town": ["a"]}}

    contents.ENCODING(encoding(0, 1e-9), "file")
    contents.ENCODING(encoding(3.0, -2.0), "file")
    for pair in ((1.0, 0), (1.0,), (1.0, 2.0, 3.0), ("a", 1.0)):
        with pytest.raises(UserError, match=r"numbers\.age"):
            contents.ENCODING(encoding(*pair), "file")


def test_an_options_file_flag_is_true_or_false_and_all_else_of_a_source_is_text() -> None:
    contents.CONFIG({"source": {"header": True, "edges": "a.csv"}}, "file")
    for source in ({"header": 1}, {"edges": 1}):
        with pytest.raises(UserError, match="file: source"):
            contents.CONFIG({"source": source}, "file")


def test_a_table_that_nobody_knows_is_still_a_table_of_plain_values() -> None:
    contents.CONFIG({"later": {"a": [1, "b"]}}, "file")
    with pytest.raises(UserError, match="file: later must be a table"):
        contents.CONFIG({"later": 3}, "file")


def test_summaries_are_checked_however_deep_they_lie() -> None:
    deep = {"mean": 1.0, "std": 0.0, "inner": {"more": {"mean": "much"}}}
    with pytest.raises(UserError, match=r"file: a\.inner\.more\.mean must be a finite number"):
        contents.scores({"a": deep}, "file")
    with pytest.raises(UserError, match=r"a\.std must be a finite number of at least 0"):
        contents.scores({"a": {"mean": 1.0, "std": -0.1}}, "file")
    for bad in (-1, 101):
        with pytest.raises(UserError, match=r"a\.per_split\.accuracy\[0\] must be"):
            contents.scores({"a": {"per_split": {"accuracy": [bad]}}}, "file")
    contents.scores({"a": {"per_split": {"accuracy": [0, 100], "split_seed": None}}}, "file")


def histogram(**changes: Any) -> dict[str, Any]:
    counts = {"edges": [0.0, 0.5, 1.0], "positive": [0, 2], "negative": [1, 1], "auc": 1}
    return {"similarities": {"u-v": {**counts, **changes}}}


def test_a_histogram_has_one_edge_more_than_counts_and_they_ascend() -> None:
    contents.DIAGNOSTICS(histogram(), "file")
    contents.DIAGNOSTICS(histogram(auc=0, edges=[0, 1], positive=[3], negative=[3]), "file")
    contents.DIAGNOSTICS({"similarities": {"u-v": {}}}, "file")  # nothing was counted
    for changes, words in (
        ({"positive": [1]}, "positive must be 2 counts"),
        ({"negative": [1, 2, 3]}, "negative must be 2 counts"),
        ({"edges": [1.0], "positive": [], "negative": []}, "positive must be 0 counts"),
        ({"edges": [0.0, 0.5, 0.5]}, "edges must be ascending"),
        ({"edges": [0.0, 0.5, 0.4]}, "edges must be ascending"),
        ({"positive": [-1, 3]}, r"positive\[0\] must be"),
        ({"auc": 1.01}, "auc must be"),
        ({"auc": -0.01}, "auc must be"),
    ):
        with pytest.raises(UserError, match=words):
            contents.DIAGNOSTICS(histogram(**changes), "file")


@pytest.mark.parametrize(
    ("rows", "place"), [([[0, 1], [2]], r"\[1\]"), ([[0], [1]], r"\[0\]"), ([[-1]], r"\[0\]\[0\]")]
)
def test_a_confusion_is_a_square_of_counts(rows: list[list[int]], place: str) -> None:
    contents.DIAGNOSTICS({"confusion": [[0, 1], [2, 3]]}, "file")
    with pytest.raises(UserError, match=rf"file: confusion{place} must be"):
        contents.DIAGNOSTICS({"confusion": rows}, "file")


NODES = {"label": np.array([0, 1, -1]), "edge_index": np.array([[0, 1], [1, 2]])}


def read_nodes(path: Path, **arrays: Any) -> dict[str, Any]:
    np.savez(path, **{**NODES, **arrays})
    return contents.read_nodes(path)


def test_nodes_come_back_whole(tmp_path: Path) -> None:
    columns = {"column:age": np.array([1.5, 2.0, 3.0]), "column:town": np.array(["a", "b", "c"])}
    found = read_nodes(tmp_path / "n.npz", label_names=np.array(["x", "y"]), **columns)
    assert set(found) == {"label", "label_names", "edge_index", *columns}
    for name, array in {**NODES, **columns}.items():
        assert np.array_equal(found[name], array)
    assert len(read_nodes(tmp_path / "n.npz", label=np.array([], dtype=int))["label"]) == 0


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (
            {"edge_index": np.array([0, 1])},
            r"edge_index must be whole numbers of shape \[2, edges\]",
        ),
        ({"edge_index": np.zeros((3, 2), int)}, "edge_index must be whole numbers"),
        ({"edge_index": np.zeros((2, 2))}, "edge_index must be whole numbers"),
        ({"label": np.array([0.0, 1.0, 2.0])}, "label must be a list of values"),
        ({"label": np.zeros((3, 1), int)}, "label must be a list of values"),
        ({"label_names": np.array([1, 2])}, "label_names must be a list of values"),
        ({"column:a": np.zeros((3, 2))}, "column:a must be a list of values"),
        ({"column:a": np.zeros(2)}, "column:a must be 3 values, one a node, got 2"),
        ({"column:a": np.zeros(4)}, "label must be 4 values, one a node, got 3"),
        ({"label": np.array([0, 1, 3])}, "label must be from -1 to 2, got 3"),
        ({"label": np.array([0, -2, 1])}, "label must be from -1 to 2, got -2"),
        ({"label": np.array([0, -2, 9])}, "label must be from -1 to 2, got -2"),
        (
            {"label": np.array([0, 1, 2]), "label_names": np.array(["x", "y"])},
            "from -1 to 1, got 2",
        ),
    ],
)
def test_nodes_that_do_not_fit_each_other_are_named(
    tmp_path: Path, arrays: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        read_nodes(tmp_path / "n.npz", **arrays)


def test_the_largest_label_may_be_the_last_name_or_node(tmp_path: Path) -> None:
    read_nodes(tmp_path / "n.npz", label=np.array([0, 1, 2]))
    read_nodes(tmp_path / "n.npz", label=np.array([0, 1, 1]), label_names=np.array(["x", "y"]))


@pytest.mark.parametrize(
    ("ids", "table", "words"),
    [
        (np.arange(3), np.zeros(3), r"embedding must be numbers of shape \[nodes, width\]"),
        (np.arange(3), np.zeros((3, 2), int), "embedding must be numbers"),
        (np.arange(2), np.zeros((3, 2)), "2 ids, but 3 embeddings"),
        (np.arange(4), np.zeros((3, 2)), "4 ids, but 3 embeddings"),
        (np.zeros((3, 1), int), np.zeros((3, 2)), "id must be a list of whole numbers"),
        (np.zeros(3), np.zeros((3, 2)), "id must be a list of whole numbers"),
        (np.arange(3), np.array([[0.0], [np.inf], [0.0]]), "embedding must be finite"),
    ],
)
def test_embeddings_that_do_not_fit_their_ids_are_named(
    tmp_path: Path, ids: np.ndarray, table: np.ndarray, words: str
) -> None:
    np.savez(tmp_path / "e.npz", id=ids, embedding=table)
    with pytest.raises(UserError, match=words):
        contents.read_embeddings(tmp_path / "e.npz")
