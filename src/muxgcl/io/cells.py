"""What a column of text may stand for: numbers with commas, spaces or a unit, or dates.

Both become columns of numbers, whatever the file's format. The whole column decides: one cell that
does not fit, and all of it stays text. Among numbers or dates a mark such as `?` is a missing one.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from scipy.sparse import csr_array, hstack

from muxgcl.io.safety import listed, quoted
from muxgcl.io.table import Block, Matrix, Place, check_finite, is_number, lean

_DECIMAL = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
_POINTED = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d*)?")
_SPACED = re.compile(r"[+-]?[1-9]\d{0,2}([ \u00a0\u202f'\u2019]\d{3})+([.,]\d*)?")
_UNIT = re.compile(
    r"([$\u20ac\u00a3\u00a5]?) ?([+-]?\d[\d.,]*|[+-]?[.,]\d+)\s?(\D{0,12}[^\d\s.,]|)"
)
_ISO = re.compile(r"\d{4}-\d\d(-\d\d([ T]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:?(\d\d)?)?)?)?")
_DOTS = re.compile(r"(\d\d?)\.(\d\d?)\.(\d{4})")
_SLASHES = re.compile(r"(\d\d?)/(\d\d?)/(\d{4})")
DAY = 86_400.0  # seconds
TELEPHONE = len("555 123 456")
MARKS = frozenset({"?", "-", "--", "\u2013", "\u2014", ".", "..", "*", "n.a.", "n/a", "na"})

COMMAS = "decimal commas"

Meaning = dict[str, float]  # what each text of a column stands for


def looks_numeric(cell: str) -> bool:
    """Whether a cell is a number, whichever way its commas and points are meant."""
    written = (_DECIMAL, _GROUPED, _POINTED)
    return is_number(cell) or any(pattern.fullmatch(cell) for pattern in written)


def read_texts(
    rows: Block,
    order: list[str],
    table: str,
    place: Place,
    left: frozenset[str] = frozenset(),
) -> tuple[Block, tuple[str, ...]]:
    """Text that stands for numbers as numbers, at its place in the order; the notes say so."""
    told: dict[str, list[str]] = {}  # the columns that a line is about
    found = {}
    for name, cells in rows.text.items():
        if name in left:
            continue
        texts = set(cells) - {""}
        meaning, how = _meaning(texts)
        if how is not None:
            told.setdefault(how, []).append(name)
        if meaning is not None:
            absent = {"", *(texts & MARKS)}
            meaning |= dict.fromkeys(absent, float("nan"))
            with np.errstate(over="ignore"):
                column = np.array([meaning[cell] for cell in cells], dtype=np.float32)
            given = np.array([cell not in absent for cell in cells])
            check_finite(column[:, None], [name], table, place, where=given[:, None])
            found[name] = column
    if any(COMMAS in how for how in told) and (doubtful := _with_points(rows)):
        told["decimal points, beside decimal commas; is 1.234 a thousand there? write 1234"] = (
            doubtful
        )
    notes = tuple(
        f"{'column' if len(names) == 1 else 'columns'} {listed(names)}: {how}"
        for how, names in told.items()
    )
    if not found:
        return rows, notes
    names = [*rows.number_names, *found]
    numbers = _beside(rows.numbers, np.stack(list(found.values()), 1))
    rank = {name: at for at, name in enumerate(order)}
    by_rank = sorted(range(len(names)), key=lambda at: rank[names[at]])
    changed = replace(
        rows,
        text={name: cells for name, cells in rows.text.items() if name not in found},
        numbers=lean(numbers[:, by_rank]),
        number_names=[names[at] for at in by_rank],
    )
    return changed, notes


def _with_points(rows: Block) -> list[str]:
    """The columns that were read as numbers at once and are not whole."""
    if isinstance(rows.numbers, csr_array):
        return []
    parts = np.nan_to_num(rows.numbers) % 1 != 0
    return [name for name, some in zip(rows.number_names, parts.any(0), strict=True) if some]


def _beside(one: Matrix, two: Matrix) -> Matrix:
    if isinstance(one, csr_array):
        return hstack([one, csr_array(two)], format="csr")
    return np.hstack([one, two])


def _meaning(texts: set[str]) -> tuple[Meaning | None, str | None]:
    """The number of each text, if all have one that is no mark of a missing one, and a line."""
    marks = sorted(texts & MARKS)
    if marks and (given := texts - MARKS) and all(map(is_number, given)):
        return {
            text: float(text) for text in given
        }, f"numbers, {listed(marks)} where one is missing"
    dates = (_iso_dates, _dates_with_dots, _dates_with_slashes)
    for read in (_with_commas, _with_spaces, *dates, _with_unit):
        meaning, how = read(texts - MARKS)
        if how is not None:
            missing = f", {listed(marks)} where one is missing" if marks and meaning else ""
            return meaning, how + missing
    return None, None


def _with_commas(texts: set[str]) -> tuple[Meaning | None, str | None]:
    commas = {text for text in texts if "," in text}
    points = {text for text in texts if "." in text}
    if not commas or not all(map(is_number, texts - commas - points)):
        return None, None
    if all(map(_GROUPED.fullmatch, commas)) and all(map(is_number, points - commas)):
        return {text: float(text.replace(",", "")) for text in texts}, "commas between thousands"
    if all(map(_DECIMAL.fullmatch, commas - points)) and all(map(_POINTED.fullmatch, points)):
        how = COMMAS + ", points between thousands" * bool(points)
        return {text: float(text.replace(".", "").replace(",", ".")) for text in texts}, how
    return None, None


def _with_spaces(texts: set[str]) -> tuple[Meaning | None, str | None]:
    """`12 345`, `12'345`: also the spaces that do not break a line.

    Texts that all look like `555 123 456` are more likely numbers of telephones.
    """
    spaced = {text for text in texts if _SPACED.fullmatch(text)}
    if not spaced or {len(text) for text in texts} == {TELEPHONE}:
        return None, None
    closed = {text: re.sub(r"[^\d.,+-]", "", text) if text in spaced else text for text in texts}
    marks = "apostrophes" if any("'" in text or "\u2019" in text for text in spaced) else "spaces"
    return _through(closed, f"{marks} between thousands")


def _with_unit(texts: set[str]) -> tuple[Meaning | None, str | None]:
    """`12 kg`, `3 %`, `$5`: numbers that all have the same unit, a currency's sign in front."""
    found = {text: match for text in texts if (match := _UNIT.fullmatch(text))}
    units = {(match[1], match[3]) for match in found.values()}
    if not texts or len(found) < len(texts) or len(units) > 1 or units == {("", "")}:
        return None, None
    plain = {text: match[2] for text, match in found.items()}
    return _through(plain, f"numbers with {quoted(''.join(units.pop()))}")


def _through(plain: dict[str, str], how: str) -> tuple[Meaning | None, str | None]:
    """The numbers of texts that are plain once something is taken out of them."""
    if all(map(is_number, plain.values())):
        return {text: float(one) for text, one in plain.items()}, how
    meaning, commas = _with_commas({*plain.values()})
    if meaning is None:
        return None, None
    return {text: meaning[one] for text, one in plain.items()}, f"{how}, {commas}"


DATES = "dates, as days since 1970-01-01"


def _days(texts: set[str], date: Callable[[str], datetime]) -> tuple[Meaning | None, str | None]:
    try:
        return {text: date(text).timestamp() / DAY for text in texts}, DATES
    except ValueError:  # a thirteenth month
        return None, None


def _iso_dates(texts: set[str]) -> tuple[Meaning | None, str | None]:
    if not texts or not all(map(_ISO.fullmatch, texts)):
        return None, None
    return _days(texts, _iso)


def _iso(text: str) -> datetime:
    moment = datetime.fromisoformat(text if len(text) > 7 else f"{text}-01")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _dates_with_dots(texts: set[str]) -> tuple[Meaning | None, str | None]:
    found = {text: match.groups() for text in texts if (match := _DOTS.fullmatch(text))}
    if not texts or len(found) < len(texts):
        return None, None
    return _days(texts, lambda text: _day_first(*found[text]))


def _dates_with_slashes(texts: set[str]) -> tuple[Meaning | None, str | None]:
    found = {text: match.groups() for text in texts if (match := _SLASHES.fullmatch(text))}
    if not texts or len(found) < len(texts):
        return None, None
    day_first = any(int(one) > 12 for one, _, _ in found.values())
    month_first = any(int(two) > 12 for _, two, _ in found.values())
    if day_first and not month_first:
        return _days(texts, lambda text: _day_first(*found[text]))
    if month_first and not day_first:
        return _days(texts, lambda text: _month_first(*found[text]))
    return None, "dates read as text: day or month first? write them as 2021-12-31"


def _day_first(day: str, month: str, year: str) -> datetime:
    return datetime(int(year), int(month), int(day), tzinfo=UTC)


def _month_first(month: str, day: str, year: str) -> datetime:
    return datetime(int(year), int(month), int(day), tzinfo=UTC)
