"""Text files as they lie on the disk: plain, or packed by gzip."""

import gzip
import io
from pathlib import Path
from typing import TextIO

from muxgcl.errors import UserError
from muxgcl.io.safety import TEXT_GROWTH, check_file, check_size, parsing

SUFFIXES = (".csv", ".tsv", ".txt", ".edges", ".edgelist")  # each may be followed by .gz


def without_gz(path: Path) -> Path:
    """The name that a text file has once it is unpacked: `edges.csv` for `edges.csv.gz`."""
    inner = path.with_suffix("")
    return inner if path.suffix.lower() == ".gz" and inner.suffix.lower() in SUFFIXES else path


def open_binary(path: Path) -> io.BufferedReader | gzip.GzipFile:
    """The bytes of a text file, unpacked on the way."""
    return path.open("rb") if without_gz(path) == path else gzip.open(path, "rb")


def open_text(path: Path) -> TextIO:
    """Its characters; a byte order mark is none of them."""
    return io.TextIOWrapper(open_binary(path), encoding="utf-8-sig", newline="")


def check_text(path: Path) -> None:
    """Refuse what is no text, and what would not fit into memory once it is unpacked."""
    check_file(path, TEXT_GROWTH)
    size = 0
    with parsing(path), open_binary(path) as file:
        while piece := file.read(1 << 20):
            size += len(piece)
            check_size(str(path), size * TEXT_GROWTH)
            if b"\0" in piece:
                raise UserError(
                    f"{path} is not text: it holds zero bytes (is it UTF-16 or binary?)"
                )
