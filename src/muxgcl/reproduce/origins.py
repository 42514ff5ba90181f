"""Whose settings a cell of a table has: marks, and the sentence that explains them."""

from muxgcl.runs.settings import origin, source

MARKS = {"official": "", "mixed": " †", "ours": " ‡"}
ORIGINS = "† the authors' in part, the rest ours; ‡ ours; no mark: the authors' own"


def mark(method: str, preset: str, dataset: str) -> str:
    """The mark of a method's settings for a dataset."""
    return MARKS[origin(method, preset, dataset)]


def is_searched(method: str, preset: str, dataset: str) -> bool:
    """Whether the settings say that they were chosen on the development half."""
    return "development half" in source(method, preset, dataset)
