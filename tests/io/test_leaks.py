"""Columns that give the label away, or number the nodes, are pointed out."""

import numpy as np
import pandas as pd
import pytest

from muxgcl.io.load import Loaded, load

RING = pd.DataFrame(
    {"source": [f"n{k}" for k in range(24)], "target": [f"n{(k + 1) % 24}" for k in range(24)]}
)


def table(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({"id": [f"n{k}" for k in range(24)], **columns})


def leaks(graph: Loaded) -> list[str]:
    return [note for note in graph.notes if "leak" in note or "identifier" in note]


def test_a_column_that_gives_the_label_away_is_pointed_out() -> None:
    label = ["red", "blue", "green"] * 8
    code = [{"red": 2, "blue": 9, "green": 4}[one] for one in label]
    shade = [f"{one} {'dark' if k < 12 else 'light'}" for k, one in enumerate(label)]
    graph = load(
        RING,
        features=table(
            copy=label,
            code=code,
            shade=shade,
            is_red=[one == "red" for one in label],
            age=np.arange(24) % 5,
            name=[f"person {k}" for k in range(24)],
            label=label,
        ),
    )
    assert leaks(graph) == [
        "possible leak: column 'copy' is the label (--exclude leaves it out)",
        "possible leak: column 'shade' determines the label: each of its 6 values has one "
        "(--exclude leaves it out)",
        "possible leak: column 'code' is the label in other words (--exclude leaves it out)",
        "possible leak: column 'is_red' tells one class from all others (--exclude leaves it out)",
    ]


def test_a_column_that_almost_gives_the_label_away_is_not_pointed_out() -> None:
    label = ["red", "blue", "green"] * 8
    near = ["blue", *label[1:]]
    assert leaks(load(RING, features=table(near=near, label=label))) == []
    assert leaks(load(RING, features=table(near=label))) == []  # no labels, nothing to give away


@pytest.mark.parametrize("values", [np.arange(24), 1000 - np.arange(24)])
def test_a_column_that_numbers_the_nodes_is_pointed_out(values: np.ndarray) -> None:
    graph = load(RING, features=table(row=values, age=np.arange(24) % 5))
    assert leaks(graph) == [
        "column 'row' looks like an identifier (24 numbers, one for each node): "
        "--exclude leaves it out"
    ]


def test_different_numbers_are_an_identifier_by_name_alone() -> None:
    numbers = np.random.default_rng(0).permutation(10_000)[:24]
    assert leaks(load(RING, features=table(wage=numbers))) == []
    assert len(leaks(load(RING, features=table(customer_id=numbers)))) == 1
