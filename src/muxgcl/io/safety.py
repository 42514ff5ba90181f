"""What a user's file must pass before anything is made from it.

Nothing is ever unpickled. No size that a file declares is believed before it is compared with the
file itself and with this machine's memory. A parser's fault reaches the user as one line.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muxgcl.errors import UserError

TEXT_GROWTH = 4  # bytes in memory per byte of CSV, at most: "1,2\n" becomes two int64
XML_GROWTH = 20  # the same for networkx's dictionaries per byte of XML
LONGEST_NAME = 1000  # characters of a node's id
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def memory_limit() -> int:
    """Bytes that one input may fill: `$MUXGCL_MAX_BYTES`, or half of this machine's memory."""
    stated = os.environ.get("MUXGCL_MAX_BYTES")
    if stated is not None:
        if not stated.isdecimal():
            raise UserError(f"MUXGCL_MAX_BYTES must be a number of bytes, got {stated!r}")
        return int(stated)
    total = 8 << 30  # where the system does not say
    if hasattr(os, "sysconf"):
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if _CGROUP.is_file() and (granted := _CGROUP.read_text().strip()).isdecimal():
        total = min(total, int(granted))
    return total // 2


def check_size(name: str, size: int) -> None:
    """Refuse what would fill more memory than `memory_limit` allows, before it is allocated."""
    if size > (limit := memory_limit()):
        raise UserError(
            f"{name} would take {in_words(size)} of memory; "
            f"the limit is {in_words(limit)} (MUXGCL_MAX_BYTES sets another)"
        )


def check_file(path: Path, growth: int = 1) -> Path:
    """A regular file with something in it, small enough to read; devices and pipes never end."""
    with parsing(path):
        if not path.exists():
            raise UserError(f"{path}: no such file or folder")
        if not path.is_file():
            raise UserError(f"{path} is not a regular file")
        size = path.stat().st_size
    if size == 0:
        raise UserError(f"{path} is empty")
    check_size(str(path), size * growth)
    return path


@contextmanager
def parsing(path: Path | str, kind: str | None = "file") -> Iterator[None]:
    """Turn any fault of a parser into the one line that the user needs; no kind: a file of ours.

    Parsers of foreign formats fail on malformed bytes in ways that no list covers (numpy alone has
    seven), hence the broad `except`. It stands around reading only, never around our own steps.
    """
    try:
        yield
    except (UserError, MemoryError):
        raise
    except UnicodeDecodeError as fault:
        byte = fault.object[fault.start]
        raise UserError(
            f"{path} is not UTF-8 text: it holds the byte 0x{byte:02x}; save it as UTF-8"
        ) from fault
    except Exception as fault:
        system = isinstance(fault, OSError) and fault.strerror
        line = " ".join((system or str(fault)).split())[:200] or type(fault).__name__
        how = f"cannot be read as {kind}" if kind else "cannot be read" if system else "is damaged"
        raise UserError(f"{path} {how}: {line}") from fault


def is_unicode(text: str) -> bool:
    """Whether UTF-8 can hold a text: half of a surrogate pair stands for no character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_unicode(texts: list[str], name: str) -> None:
    """Refuse a text that could not be written to a file."""
    if not is_unicode("".join(texts)):
        wrong = next(text for text in texts if not is_unicode(text))
        raise UserError(f"{name} must be Unicode text, got {quoted(wrong)}")


def in_words(size: int) -> str:
    """A number of bytes as a person says it: `1.5 GB`."""
    for power, unit in ((12, "TB"), (9, "GB"), (6, "MB"), (3, "kB")):
        if size >= 10**power:
            return f"{size / 10**power:,.1f} {unit}"
    return f"{size} bytes"


def how_many(number: int, one: str, more: str | None = None) -> str:
    """A number and what it counts: `1 node`, `1,200 nodes`; `more` where an s is not enough."""
    return f"{number:,} {one if number == 1 else more or f'{one}s'}"


def quoted(text: object) -> str:
    """A name from a file, fit for one line of a message."""
    return repr(text if not isinstance(text, str) or len(text) <= 60 else text[:60] + "...")


def listed(names: list[str], most: int = 8) -> str:
    """Names from a file, fit for one line; `and 12 more` where there are many."""
    rest = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(quoted, names[:most])) + rest
