"""Writing files whole or not at all, and logs of one JSON object a line."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from muxgcl.errors import UserError


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


def append_lines(file: Path, lines: list[dict[str, Any]]) -> None:
    """Append objects to a log, one a line."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    try:
        with file.open("a", encoding="utf-8") as opened:
            opened.write(text)
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}") from error


def sync(file: Path) -> None:
    """Wait until what was written to a file is on the disk; where there is none, do nothing."""
    if not file.is_file():
        return
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
