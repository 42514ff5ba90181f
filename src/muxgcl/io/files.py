"""Files written whole or not at all, logs of one JSON object a line, and a lock."""

import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from muxgcl.errors import UserError

LOCK = ".lock"  # the file by which a folder is held


def write_atomically(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write to a temporary name beside `path`, then rename: readers never see half a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, new_file_mode())
        os.replace(name, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        Path(name).unlink(missing_ok=True)


def new_file_mode() -> int:
    """Of a new file, as the user's umask has it: a temporary one is its owner's alone."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def write_text(path: Path, text: str) -> None:
    """A whole text file, or none."""
    write_atomically(path, lambda file: file.write(text.encode()))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file, or a folder by its file `.lock`: a second process gets one clear line."""
    shown = path.parent if path.name == LOCK else path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    except OSError as error:
        raise UserError(f"cannot write to {shown}: {error.strerror or error}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"{shown} is being written by another process") from None
        yield


def json_lines(lines: Iterable[Mapping[str, Any]]) -> str:
    """Objects as text, one a line."""
    return "".join(json.dumps(line) + "\n" for line in lines)


def append_lines(path: Path, lines: Iterable[Mapping[str, Any]], *, sync: bool = False) -> None:
    """Append objects to a log with one write; half a line left by a kill is cut off first.

    Args:
        path: the log; it need not exist.
        lines: one object a line.
        sync: wait until the disk has it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b", buffering=0) as file:
            file.write(_mend_end(file) + json_lines(lines).encode())
            if sync:
                os.fsync(file.fileno())
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


def _mend_end(file: IO[bytes]) -> bytes:
    """Cut off half a line; the line break that a whole last line lacks."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 1, 0))
    if size == 0 or file.read(1) == b"\n":
        return b""
    file.seek(0)
    rest = file.read().rpartition(b"\n")[2]
    if parsed(rest) is not None:
        return b"\n"
    file.truncate(size - len(rest))
    return b""


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a log; a last one cut short by a kill is left out."""
    found: list[dict[str, Any]] = []
    for text in path.read_bytes().splitlines() if path.is_file() else ():
        if (line := parsed(text)) is None:
            break
        found.append(line)
    return found


def parsed(text: bytes) -> dict[str, Any] | None:
    """The JSON object in a line, or None where there is none."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
