"""The one exception for a mistake that a user can mend, and words that messages share."""

from collections.abc import Iterable
from difflib import get_close_matches

FEW = 10  # names that fit in a line


class UserError(ValueError):
    """What was expected and what came, in one line; the command line prints it and exits with 2."""


def reason_of(error: BaseException) -> str:
    """What an exception says, in one line; its type where it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """One line with the nearest known name; with all of them if they are few or none is near."""
    known = list(known)
    near = get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    advice = [f"did you mean {name}?" for name in near]
    if not near or len(known) <= FEW:
        advice.append(f"there are {', '.join(known)}")
    shown = name if len(name) <= 60 else name[:60] + "..."
    return f"unknown {what} {shown!r}; {' '.join(advice)}"
