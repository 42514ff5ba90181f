"""Labels: any integers or words as classes 0, 1, ...; -1 where there is none."""

import numpy as np
from numpy.typing import NDArray

from muxgcl.io.ids import Ids, as_text
from muxgcl.io.table import MISSING, is_number

LONGEST_NUMBER = 1000  # characters; longer ones are words


def classes(labels: Ids) -> tuple[NDArray[np.int64], list[str]]:
    """The class of each node, and the classes' names: integers by size, words by their letters.

    Whole numbers are integers however they are written: `1.0` is what is left of 1 in a column that
    once had a gap.
    """
    texts = ["" if text in MISSING else text for text in as_text(labels)]
    different = set(texts) - {""}
    whole = {text: value for text in different if (value := _whole(text)) is not None}
    if whole.keys() == different:
        rank = {value: number for number, value in enumerate(sorted(set(whole.values())))}
        order = [str(value) for value in rank]
        code = {text: rank[value] for text, value in whole.items()}
    else:
        order = sorted(different)
        code = {text: number for number, text in enumerate(order)}
    return np.array([code.get(text, -1) for text in texts], dtype=np.int64), order


def _whole(text: str) -> int | None:
    if not is_number(text):
        return None
    if len(text) > LONGEST_NUMBER:
        return None
    if text.lstrip("-").isdecimal():
        return int(text)
    value = float(text)
    return int(value) if value.is_integer() else None
