"""What a file of ours must hold: each value is checked, and the first misfit is named.

A check is a function of a value and of its place (`run/scores.json: holdout.accuracy`). It returns
nothing, or raises one line with the place, what was expected and what came. Checks are built from
checks: `table_of(list_of(number()))`.
"""

import json
import math
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from muxgcl.errors import UserError
from muxgcl.io.safety import TEXT_GROWTH, check_file, is_unicode, parsing

Check = Callable[[Any, str], None]
DEEPEST = 20  # tables and lists inside each other


def refuse(value: Any, place: str, expected: str) -> UserError:
    """The one line about a value that does not fit."""
    shown = repr(value)
    return UserError(
        f"{place} must be {expected}, got {shown if len(shown) <= 60 else shown[:60] + '...'}"
    )


def text(value: Any, place: str) -> None:
    """Text that UTF-8 can hold."""
    if not isinstance(value, str):
        raise refuse(value, place, "text")
    if not is_unicode(value):
        raise refuse(value, place, "Unicode text (no lone surrogates, no bytes outside UTF-8)")


def flag(value: Any, place: str) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise refuse(value, place, "true or false")


def number(low: float = -math.inf, high: float = math.inf) -> Check:
    """A finite number within bounds."""

    def check(value: Any, place: str) -> None:
        good = isinstance(value, int | float) and not isinstance(value, bool)
        if not (good and abs(value) <= 1e308 and low <= value <= high):
            raise refuse(value, place, "a finite number" + _between(low, high))

    return check


def whole(low: float = -math.inf, high: float = math.inf) -> Check:
    """A whole number within bounds."""

    def check(value: Any, place: str) -> None:
        good = isinstance(value, int) and not isinstance(value, bool)
        if not (good and low <= value <= high):
            raise refuse(value, place, "a whole number" + _between(low, high))

    return check


def _between(low: float, high: float) -> str:
    if low > -math.inf and high < math.inf:
        return f" from {low:g} to {high:g}" if max(abs(low), high) < 1e6 else f" from {low} on"
    return f" of at least {low:g}" if low > -math.inf else ""


def plain(value: Any, place: str, depth: int = 0) -> None:
    """Anything that JSON and TOML share: text, finite numbers, true, false, lists and tables."""
    if depth > DEEPEST:
        raise UserError(f"{place} is nested more than {DEEPEST} deep")
    if isinstance(value, dict):
        for key, inner in value.items():
            text(key, f"{place}: a name")
            plain(inner, _inside(place, key), depth + 1)
    elif isinstance(value, list | tuple):
        for at, inner in enumerate(value):
            plain(inner, f"{place}[{at}]", depth + 1)
    elif isinstance(value, str):
        text(value, place)
    elif value is not None and not isinstance(value, bool):
        number()(value, place)


def list_of(kind: Check, length: int | None = None) -> Check:
    """A list, each entry of one kind."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, list) or length not in (None, len(value)):
            raise refuse(value, place, "a list" if length is None else f"a list of {length}")
        for at, inner in enumerate(value):
            kind(inner, f"{place}[{at}]")

    return check


def table_of(kind: Check) -> Check:
    """Names and values, each value of one kind."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise refuse(value, place, "a table of names and values")
        for key, inner in value.items():
            text(key, f"{place}: a name")
            kind(inner, _inside(place, key))

    return check


def fields(known: Mapping[str, Check], *required: str, others: Check = plain) -> Check:
    """A table with known fields, some of them required; what else it holds must be `others`."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise refuse(value, place, "a table of names and values")
        for name in required:
            if name not in value:
                raise UserError(f"{_inside(place, name)} is missing")
        for key, inner in value.items():
            text(key, f"{place}: a name")
            known.get(key, others)(inner, _inside(place, key))

    return check


def _inside(place: str, key: str) -> str:
    """`file: table.key`; names of any length and alphabet stay one short word."""
    key = key if len(key) <= 40 else key[:40] + "..."
    return f"{place}.{key}" if ": " in place else f"{place}: {key}"


def read_json(path: Path, check: Check) -> Any:
    """The JSON value in a file, once it has passed the check."""
    check_file(path, TEXT_GROWTH)
    with parsing(path, None):
        value = json.loads(path.read_bytes().decode())
        check(value, str(path))
    return value


def read_toml(path: Path, check: Check) -> dict[str, Any]:
    """The tables in a TOML file, once they have passed the check."""
    check_file(path, TEXT_GROWTH)
    with parsing(path, None):
        tables = tomllib.loads(path.read_bytes().decode())
        check(tables, str(path))
    return tables


ANY_TABLE = table_of(plain)


def read_lines(path: Path, check: Check = ANY_TABLE) -> list[dict[str, Any]]:
    """The lines of a log; nothing where there is none.

    A last line without its line break was cut short by a kill and is left out, unless it is whole.
    Any other line that is no JSON, or does not pass the check, is an error that names it.
    """
    if not path.exists():
        return []
    if path.is_file() and not path.stat().st_size:
        return []
    check_file(path, TEXT_GROWTH)
    found = []
    with parsing(path, None):
        *whole_lines, rest = path.read_bytes().split(b"\n")
        for at, line in enumerate(whole_lines, start=1):
            found.append(_line(path, at, line, check))
        if rest and (last := _cut_short(rest)) is not None:
            check(last, f"{path}, line {len(whole_lines) + 1}")
            found.append(last)
    return found


def _line(path: Path, at: int, line: bytes, check: Check) -> Any:
    try:
        value = json.loads(line.decode())
    except (ValueError, RecursionError) as fault:
        reason = " ".join(str(fault).split())[:80]
        raise UserError(f"{path}, line {at:,} is damaged: it is no JSON ({reason})") from None
    check(value, f"{path}, line {at}")
    return value


def _cut_short(rest: bytes) -> Any:
    try:
        return json.loads(rest.decode())
    except (ValueError, RecursionError):
        return None
