"""Files written whole or not at all, logs of one JSON object a line, and a lock.

Nothing here follows a link that stands where a lock or a temporary file should, and nothing is
emptied by opening it.
"""

import errno
import fcntl
import json
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from muxgcl.errors import UserError

LOCK = ".lock"  # the file by which a folder is held
PART = (".muxgcl.", ".part")  # how the name of a temporary file begins and ends
HOUR = 3600.0  # seconds after which a temporary file without a lock is nobody's
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


def write_atomically(
    path: Path,
    write: Callable[[IO[bytes]], object],
    *,
    before_rename: Callable[[], object] | None = None,
) -> None:
    """Write to a temporary name beside `path`, then rename: readers never see half a file.

    Args:
        path: the file.
        write: writes its content.
        before_rename: called once the content is on the disk, just before the file gets its name.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent, older_than=HOUR)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=PART[0], suffix=PART[1])
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # while it is held it is in use
            write(file)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), new_file_mode())
            if before_rename is not None:
                before_rename()
            os.replace(name, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        Path(name).unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Wait until a folder's new names are on the disk, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_leftovers(folder: Path, older_than: float = 0.0) -> None:
    """Remove temporary files whose writer was killed: nobody holds their lock any more.

    Args:
        folder: where to look, not in folders inside it.
        older_than: seconds; younger ones are left to a writer that has not locked its file yet.
    """
    with suppress(OSError):
        for file in folder.glob(f"{PART[0]}*{PART[1]}"):
            with suppress(OSError):
                _remove_if_free(file, older_than)


def _remove_if_free(file: Path, older_than: float) -> None:
    handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return
        if older_than and time.time() - os.fstat(handle).st_mtime < older_than:
            return
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.unlink(missing_ok=True)
    finally:
        os.close(handle)


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
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(path, flags, 0o666)
    except ValueError as error:  # a zero byte
        raise UserError(f"cannot write to {str(shown)!r}: {error}") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UserError(f"{path} is a link; expected a file of muxgcl, or none") from None
        if path.name == LOCK and shown.is_file():
            raise UserError(f"{shown} is a file; expected a folder") from None
        raise UserError(f"cannot write to {shown}: {error.strerror or error}") from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UserError(f"{path} is not a regular file")
        _hold(handle, shown)
        yield
    finally:
        os.close(handle)


def _hold(handle: int, shown: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in NO_LOCKS:
            raise UserError(
                f"{shown} lies on a file system without locks ({error.strerror}), so a second "
                "process could not be kept away: choose a folder on another one"
            ) from None
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise UserError(f"{shown} is being written by another process") from None
        raise UserError(f"{shown} cannot be locked: {error.strerror or error}") from error


def json_lines(lines: Iterable[Mapping[str, Any]]) -> str:
    """Objects as text, one a line."""
    return "".join(json.dumps(line) + "\n" for line in lines)


def append_lines(path: Path, lines: Iterable[Mapping[str, Any]], *, sync: bool = False) -> None:
    """Append objects to a log; half a line left by a kill or by a full disk is cut off first.

    Args:
        path: the log; it need not exist.
        lines: one object a line.
        sync: wait until the disk has it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b", buffering=0) as file:
            content = _mend_end(file) + json_lines(lines).encode()
            while content:  # a disk that fills up takes a part before it says so
                content = content[file.write(content) :]
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


def sync(file: Path) -> None:
    """Wait until what was written to a file is on the disk; where there is none, do nothing."""
    if not file.is_file():
        return
    try:
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror or error}") from error


def parsed(text: bytes) -> dict[str, Any] | None:
    """The JSON object in a line, or None where there is none."""
    try:
        value = json.loads(text.decode())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
