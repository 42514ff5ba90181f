"""Node ids: integers where every one is written as an integer, else text.

`7` and `"7"` are the same id, so a graph does not depend on how its file stores them.
"""

import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muxgcl.errors import UserError
from muxgcl.io.safety import LONGEST_NAME, check_size, quoted

Ids = NDArray[np.int64] | list[str]
Positions = NDArray[np.int64]
_WHOLE = re.compile(r"(-?[1-9][0-9]*|0)\.0+")


def read_ids(texts: list[str]) -> Ids:
    """Integers if each text is one in plain writing (`7`, not `07`, `+7` or `7.0`)."""
    try:
        numbers = np.array(texts, dtype=np.int64)
    except (ValueError, OverflowError):
        return texts
    return numbers if list(map(str, numbers.tolist())) == texts else texts


def whole(ids: Ids) -> Ids:
    """Integers where every id is written as `7.0`, as pandas writes a column that had gaps."""
    if not isinstance(ids, list) or not all(_WHOLE.fullmatch(one) for one in ids):
        return ids
    return read_ids([one.split(".")[0] for one in ids])


def why_text(ids: list[str]) -> str | None:
    """The first id that keeps all of them text, and why; None where no id looks like an integer."""
    if not any(one.isdecimal() for one in ids):
        return None
    for one in ids:
        if not _is_plain(one):
            return f"{quoted(one)} is not a plain integer"
        if not -(2**63) <= int(one) < 2**63:
            return f"{quoted(one)} does not fit in 64 bits"
    return None


def _is_plain(text: str) -> bool:
    try:
        return str(int(text)) == text
    except ValueError:
        return False


def ids_of(values: Sequence[Any]) -> Ids:
    """Any values as ids: whole floats are integers, what is missing is blank."""
    return read_ids([_written(value) for value in values])


def is_missing(value: object) -> bool:
    """Whether a value is None, NaN, or what pandas has in their place."""
    if value is None or isinstance(value, (float, np.floating)):
        return value is None or bool(np.isnan(value))
    pandas = sys.modules.get("pandas")
    return pandas is not None and (value is pandas.NA or value is pandas.NaT)


def _written(value: Any) -> str:
    if is_missing(value):
        return ""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def as_text(ids: Ids) -> list[str]:
    """Every id as it is written."""
    return ids if isinstance(ids, list) else list(map(str, ids.tolist()))


def alike(*parts: Ids) -> list[Ids]:
    """All integers, or all text."""
    if any(isinstance(part, list) for part in parts):
        return [as_text(part) for part in parts]
    return list(parts)


def join(parts: list[Ids]) -> Ids:
    """One list of ids from several."""
    parts = alike(*parts)
    if isinstance(parts[0], list):
        return [one for part in parts for one in part]
    return np.concatenate(parts)


def in_order(ids: Ids) -> Ids:
    """Each id once: integers by size, text by its characters."""
    if isinstance(ids, list):
        return sorted(set(ids))
    ids = np.sort(ids)  # np.unique's hash table is slower by far
    return ids[np.concatenate([[True], ids[1:] != ids[:-1]])] if len(ids) else ids


def positions(wanted: Ids, nodes: Ids) -> Positions:
    """Where each wanted id stands among the nodes; -1 where it does not."""
    wanted, nodes = alike(wanted, nodes)
    if isinstance(nodes, list):
        place = {node: position for position, node in enumerate(nodes)}
        return np.array([place.get(one, -1) for one in wanted], dtype=np.int64)
    if not len(nodes):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(nodes, kind="stable")
    slot = np.searchsorted(nodes, wanted, sorter=order)
    found = order[np.minimum(slot, len(nodes) - 1)]
    return np.where(nodes[found] == wanted, found, -1)


def first_repeat(ids: Ids) -> tuple[int, int] | None:
    """The first position whose id came before, and where that was."""
    if len(in_order(ids)) == len(ids):
        return None
    seen: dict[str, int] = {}
    for position, one in enumerate(as_text(ids)):
        if one in seen:
            return position, seen[one]
        seen[one] = position
    raise AssertionError("unreachable: an id comes twice")


def as_array(ids: Ids) -> NDArray[Any]:
    """What a user gets back: int64, or unicode of the longest id's length."""
    if not isinstance(ids, list):
        return ids
    longest = max(map(len, ids), default=1)
    if longest > LONGEST_NAME:
        raise UserError(f"an id has {longest:,} characters; at most {LONGEST_NAME:,} are kept")
    check_size("the list of ids", 4 * longest * len(ids))
    return np.array(ids, dtype=f"<U{max(longest, 1)}")


def from_array(ids: NDArray[Any]) -> Ids:
    """The ids in an array that `as_array` made."""
    return ids if ids.dtype.kind in "iu" else ids.tolist()
