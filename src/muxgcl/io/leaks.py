"""Columns that give the label away or number the nodes: pointed out, never left out unasked."""

import numpy as np
from numpy.typing import NDArray

from muxgcl.io.nodes import NodeTable
from muxgcl.io.roles import names_ids
from muxgcl.io.safety import how_many, quoted
from muxgcl.io.table import WIDE, to_dense

FEWEST = 20  # nodes without which nothing is obvious
TIMES = 4  # that each value of a column comes on average, lest a name determines everything

Codes = NDArray[np.int64]  # which of its values a column has at each node, -1: none


def label_leaks(nodes: NodeTable, y: Codes, names: list[str]) -> list[str]:
    """A line for every column that is the label in other words, or determines it."""
    if len(names) < 2 or (y >= 0).sum() < FEWEST:
        return []
    found = []
    for name, codes, values in _columns(nodes):
        both = (y >= 0) & (codes >= 0)
        given, label = codes[both], y[both]
        if len(given) < FEWEST or 2 * len(given) < (y >= 0).sum():
            continue
        many, classes = len(np.unique(given)), len(np.unique(label))
        if classes < 2 or many * TIMES > len(given):
            continue
        pairs = len(np.unique(given * len(names) + label))
        if pairs == many == classes:
            how = "is the label in other words" if values != names else "is the label"
        elif pairs == many:
            how = f"determines the label: each of its {many:,} values has one"
        elif many == 2 and pairs == classes:
            how = "tells one class from all others"
        else:
            continue
        found.append(f"possible leak: column {quoted(name)} {how} (--exclude leaves it out)")
    return found


def identifiers(nodes: NodeTable) -> list[str]:
    """A line for every column of numbers that only numbers the nodes."""
    if len(nodes.ids) < FEWEST or len(nodes.number_names) > WIDE:
        return []
    found = []
    for name, column in zip(nodes.number_names, to_dense(nodes.numbers).T, strict=True):
        if np.isnan(column).any() or (column != np.round(column)).any():
            continue
        different = np.unique(column)
        counted = len(different) == len(column) == different[-1] - different[0] + 1
        if counted or (names_ids(name) and 2 * len(different) > len(column)):
            many = how_many(len(different), "number")
            found.append(
                f"column {quoted(name)} looks like an identifier ({many}, "
                f"{'one for each node' if len(different) == len(column) else 'by its name'}): "
                "--exclude leaves it out"
            )
    return found


def _columns(nodes: NodeTable) -> list[tuple[str, Codes, list[str]]]:
    """Each column of a narrow table as codes, and what they stand for."""
    found = []
    for name, cells in nodes.text.items():
        values, codes = np.unique(cells, return_inverse=True)
        codes = np.where(np.asarray(cells) == "", -1, codes)
        found.append((name, codes.astype(np.int64), [value for value in values.tolist() if value]))
    if len(nodes.number_names) <= WIDE:
        for name, column in zip(nodes.number_names, to_dense(nodes.numbers).T, strict=True):
            numbers, codes = np.unique(column, return_inverse=True)
            codes = np.where(np.isnan(column), -1, codes)
            written = [f"{number:g}" for number in numbers[~np.isnan(numbers)].tolist()]
            found.append((name, codes.astype(np.int64), written))
    return found
