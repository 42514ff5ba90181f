"""NumPy's `.npy` and `.npz` with pickle disabled, headers checked against the bytes that follow.

Left alone, numpy allocates what a header declares before it looks for the data, and a compressed
`.npz` of a few kilobytes may unfold to any size.
"""

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array

from muxgcl.errors import UserError
from muxgcl.io.safety import check_file, check_size, in_words, listed, parsing, quoted
from muxgcl.shapes import Array

MAPPED = 256 << 20  # bytes of an array, from which it is mapped
LONGEST_HEADER = 10_000  # bytes; numpy itself refuses longer ones
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_LAYOUTS = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}


def read_npy(path: Path, mapped_from: int | None = None) -> Array:
    """One array; a large one is mapped into memory, and read from the disk where it is looked at.

    The map is private: nobody writes to the file through it.
    """
    check_file(path)
    with parsing(path, "NumPy"), path.open("rb") as file:
        size = path.stat().st_size
        least = MAPPED if mapped_from is None else mapped_from
        if size < least or _header(file, size, str(path))[1].kind == "U":
            file.seek(0)
            return _read_array(file, size, str(path))
        mapped: Array = np.load(path, mmap_mode="c", allow_pickle=False)
        return mapped


class Npz:
    """The arrays of one `.npz`, read one at a time and only when asked for."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path, self.archive = path, archive
        self.names = [name.removesuffix(".npy") for name in archive.namelist()]

    @classmethod
    @contextmanager
    def open(cls, path: Path, kind: str | None = "an .npz archive") -> Iterator[Self]:
        """Open it, once its members together are known to fit in memory."""
        check_file(path)
        with parsing(path, kind), zipfile.ZipFile(path) as archive:
            check_size(str(path), sum(member.file_size for member in archive.infolist()))
            yield cls(path, archive)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def read(self, name: str) -> Array:
        """One array by name."""
        if name not in self.names:
            raise UserError(f"{self.path} has no array {quoted(name)}; it has {listed(self.names)}")
        member = self.archive.getinfo(self.archive.namelist()[self.names.index(name)])
        with self.archive.open(member) as file:
            return _read_array(file, member.file_size, f"{self.path}, array {quoted(name)}")

    def sparse(self, prefix: str = "") -> csr_array:
        """A sparse matrix as scipy saves it, each of its arrays under `prefix` and its name."""
        name = f"{self.path}, {prefix}*" if prefix else str(self.path)
        shape = self.read(f"{prefix}shape")
        if shape.shape != (2,) or shape.dtype.kind not in "iu" or min(shape.tolist()) < 0:
            raise UserError(f"{name}: shape must be two sizes, got {quoted(str(shape.tolist()))}")
        rows, columns = shape.tolist()
        check_size(name, 8 * (rows + columns))  # a pointer for each row, a weight for each column
        layout = "csr"
        if f"{prefix}format" in self:
            layout = str(self.read(f"{prefix}format").astype("U").item())
        if layout not in _LAYOUTS:
            raise UserError(f"{name} is in scipy's layout {quoted(layout)}; save it as CSR")
        data = self._list(f"{prefix}data", "biuf").astype(np.float32)
        first, second = (self._list(f"{prefix}{part}", "iu") for part in _LAYOUTS[layout])
        if layout == "coo":
            return coo_array((data, (first, second)), shape=(rows, columns)).tocsr()
        kind = csr_array if layout == "csr" else csc_array
        matrix = kind((data, first, second), shape=(rows, columns))
        matrix.check_format(full_check=True)  # an index outside would be read outside of memory
        matrix = matrix.tocsr()
        matrix.sum_duplicates()
        return matrix

    def _list(self, name: str, kinds: str) -> Array:
        array = self.read(name)
        if array.ndim != 1 or array.dtype.kind not in kinds:
            what = "integers" if kinds == "iu" else "numbers"
            raise UserError(
                f"{self.path}: {quoted(name)} must be a list of {what}, "
                f"got {array.dtype} of shape {list(array.shape)}"
            )
        return array


def _read_array(file: IO[bytes] | zipfile.ZipExtFile, size: int, name: str) -> Array:
    """Read an array of `size` bytes in all, header included."""
    _, dtype = _header(file, size, name)
    file.seek(0)
    array = np.lib.format.read_array(file, allow_pickle=False)
    if dtype.kind == "U" and not _is_unicode(array):
        raise UserError(f"{name} holds text that is not Unicode")
    return array


def _header(
    file: IO[bytes] | zipfile.ZipExtFile, size: int, name: str
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type, once they are known to fit the bytes that follow."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise UserError(f"{name} is in version {version[0]}.{version[1]} of NumPy's format")
    width = 2 * version[0]  # of the field that holds the header's length
    length = int.from_bytes(file.read(width), "little")
    if length > LONGEST_HEADER:
        raise UserError(f"{name} has a header of {in_words(length)}; expected less than 10 kB")
    file.seek(-width, 1)
    shape, _, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise UserError(
            f"{name} holds Python objects, which are never unpickled; save it as numbers"
        )
    if dtype.kind not in "biufUS":
        raise UserError(f"{name} holds {dtype}; expected numbers or text")
    declared, present = math.prod(shape) * dtype.itemsize, size - file.tell()
    if declared != present:
        raise UserError(
            f"{name} declares {in_words(declared)} of data, but holds {in_words(present)}"
        )
    return shape, dtype


def _is_unicode(texts: Array) -> bool:
    """Whether every character is one: there are none past U+10FFFF, and surrogates are halves."""
    if not texts.size or not texts.dtype.itemsize:
        return True
    codes = np.ascontiguousarray(texts).view(texts.dtype.byteorder.replace("|", "=") + "u4")
    return not ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes <= 0xDFFF))).any()
