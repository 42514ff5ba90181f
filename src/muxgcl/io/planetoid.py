"""The pickles of Planetoid, read without Python's `pickle`: data in, data out, nothing is called.

The files are pickles of protocol 2. This reader knows the opcodes that they use and no others. A
name in a file (`numpy.ndarray`, `scipy.sparse.csr.csr_matrix`, ...) is looked up in a short list of
words and stands for a shape of data, never for a class or a function. Arrays hold plain numbers; a
size that does not match the bytes is refused.
"""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from muxgcl.errors import UserError
from muxgcl.io.safety import check_file

RECONSTRUCT = "numpy.core.multiarray._reconstruct"
ARRAY = "numpy.ndarray"
DTYPE = "numpy.dtype"
MATRIX = "scipy.sparse.csr.csr_matrix"
DEFAULTS = "collections.defaultdict"
LIST = "__builtin__.list"
NAMES = {RECONSTRUCT, ARRAY, DTYPE, MATRIX, DEFAULTS, LIST}
NUMBERS = {b"b1", b"i1", b"u1", b"i2", b"u2", b"i4", b"u4", b"i8", b"u8", b"f4", b"f8"}


@dataclass(frozen=True, slots=True)
class _Name:
    """A word of the list above."""

    name: str


@dataclass(slots=True)
class _Kind:
    """Which numbers an array holds, and in which order their bytes are."""

    code: bytes
    order: str = "="

    def numpy(self) -> np.dtype[Any]:
        return np.dtype(self.order + self.code.decode())


@dataclass(slots=True)
class _Array:
    """An array that is still to be filled."""

    value: np.ndarray[Any, np.dtype[Any]] | None = None


@dataclass(slots=True)
class _Matrix:
    """A sparse matrix that is still to be filled."""

    parts: dict[bytes, Any] = field(default_factory=dict)


def read_pickle(path: Path) -> Any:
    """An array, a sparse matrix in CSR, or a dict of lists of integers."""
    check_file(path)
    return _finished(_Reader(path.read_bytes()).read())


def _finished(value: Any) -> Any:
    if isinstance(value, _Array):
        return _filled(value)
    if isinstance(value, _Matrix):
        return _csr(value.parts)
    if isinstance(value, dict):
        return value
    raise UserError("it holds neither an array, a matrix nor a graph")


def _filled(array: Any) -> np.ndarray[Any, np.dtype[Any]]:
    if not isinstance(array, _Array) or array.value is None:
        raise UserError("an array in it is not filled")
    return array.value


def _csr(parts: dict[bytes, Any]) -> csr_array:
    shape = parts.get(b"_shape")
    if not (isinstance(shape, tuple) and len(shape) == 2 and all(map(_is_size, shape))):
        raise UserError(f"a matrix in it has the shape {shape!r}")
    data, indices, indptr = (_filled(parts.get(name)) for name in (b"data", b"indices", b"indptr"))
    if {data.ndim, indices.ndim, indptr.ndim} != {1} or len(indptr) != shape[0] + 1:
        raise UserError("a matrix in it has parts of the wrong shape")
    if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise UserError("a matrix in it has indices that are no integers")
    matrix = csr_array((data, indices, indptr), shape=shape)
    matrix.check_format(full_check=True)  # an index outside would be read outside of memory
    return matrix


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < 2**40


class _Reader:
    """A stack of values, and those to come back to."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def read(self) -> Any:
        if self.take(2) != b"\x80\x02":
            raise UserError("it is no pickle of protocol 2")
        while (code := self.take(1)) != b".":
            step = STEPS.get(code)
            if step is None:
                raise UserError(f"it holds the opcode {code!r}, which no data file needs")
            step(self)
        if len(self.stack) != 1 or self.marks:
            raise UserError("it ends in the middle of something")
        return self.stack[0]

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.content):
            raise UserError("it is cut short")
        found = self.content[self.at : self.at + count]
        self.at += count
        return found

    def number(self, layout: str) -> int:
        return int(struct.unpack(layout, self.take(struct.calcsize(layout)))[0])

    def pop(self, kind: type[Any] | None = None) -> Any:
        low = self.marks[-1] if self.marks else 0
        if len(self.stack) <= low:
            raise UserError("it takes more than it has put down")
        value = self.stack.pop()
        if kind is not None and not isinstance(value, kind):
            raise UserError(f"it holds {type(value).__name__}, where no data file does")
        return value

    def top(self, kind: type[Any]) -> Any:
        value = self.pop(kind)
        self.stack.append(value)
        return value

    def since_mark(self) -> list[Any]:
        if not self.marks:
            raise UserError("it closes what it has not opened")
        start = self.marks.pop()
        found = self.stack[start:]
        del self.stack[start:]
        return found

    # one method an opcode that is more than a value ---------------------------------------------

    def name(self) -> None:
        words = []
        for _ in range(2):
            end = self.content.find(b"\n", self.at, self.at + 200)
            if end < 0:
                raise UserError("it is cut short")
            words.append(self.content[self.at : end].decode("latin-1"))
            self.at = end + 1
        if (name := ".".join(words)) not in NAMES:
            raise UserError(f"it asks for {name[:80]}, which no data file needs")
        self.stack.append(_Name(name))

    def group(self, count: int) -> None:
        self.stack.append(tuple(self.pop() for _ in range(count))[::-1])

    def recall(self) -> None:
        at = self.number("<B")
        if at not in self.memo:
            raise UserError("it comes back to what was not there")
        self.stack.append(self.memo[at])

    def keep(self, layout: str) -> None:
        at = self.number(layout)
        self.memo[at] = self.top(object)

    def apply(self) -> None:
        given, name = self.pop(tuple), self.pop(_Name).name
        if name == RECONSTRUCT and given == (_Name(ARRAY), (0,), b"b"):
            self.stack.append(_Array())
        elif name == DTYPE and len(given) == 3 and given[0] in NUMBERS and given[1:] == (0, 1):
            self.stack.append(_Kind(given[0]))
        elif name == DEFAULTS and given == (_Name(LIST),):
            self.stack.append({})
        else:
            raise UserError(f"it asks for {name} in a way that no data file needs")

    def make(self) -> None:
        given, name = self.pop(tuple), self.pop(_Name).name
        if name != MATRIX or given:
            raise UserError(f"it asks for a new {name}, which no data file needs")
        self.stack.append(_Matrix())

    def fill(self) -> None:
        state, value = self.pop(), self.pop()
        if isinstance(value, _Matrix) and isinstance(state, dict):
            value.parts = {key: part for key, part in state.items() if isinstance(key, bytes)}
        elif isinstance(value, _Kind) and isinstance(state, tuple) and len(state) == 8:
            orders = {b"<": "<", b">": ">", b"|": "|", b"=": "="}
            if state[0] != 3 or state[1] not in orders or state[2:5] != (None, None, None):
                raise UserError("it holds numbers of a kind that no data file needs")
            value.order = orders[state[1]]
        elif isinstance(value, _Array) and isinstance(state, tuple) and len(state) == 5:
            value.value = _numbers(*state)
        else:
            raise UserError("it fills something in a way that no data file needs")
        self.stack.append(value)

    def add(self, values: list[Any]) -> None:
        self.top(list).extend(values)

    def set_items(self) -> None:
        values = self.since_mark()
        table = self.top(dict)
        if len(values) % 2:
            raise UserError("it holds a name without a value")
        for key, value in zip(values[::2], values[1::2], strict=True):
            if not isinstance(key, bytes | int):
                raise UserError("it holds a name that is neither text nor a number")
            table[key] = value


def _numbers(version: Any, shape: Any, kind: Any, fortran: Any, content: Any) -> Any:
    """An array from its bytes, of which there must be exactly as many as its shape declares."""
    good = version == 1 and isinstance(shape, tuple) and all(map(_is_size, shape))
    if not (good and isinstance(kind, _Kind) and isinstance(content, bytes)):
        raise UserError("it holds an array of something else than numbers")
    dtype = kind.numpy()
    if math.prod(shape) * dtype.itemsize != len(content):
        raise UserError(f"it declares an array of shape {shape!r}, but holds {len(content)} bytes")
    array = np.frombuffer(content, dtype)
    return (array.reshape(shape[::-1]).T if fortran is True else array.reshape(shape)).copy()


STEPS: dict[bytes, Callable[[_Reader], Any]] = {
    b"(": lambda r: r.marks.append(len(r.stack)),
    b")": lambda r: r.stack.append(()),
    b"}": lambda r: r.stack.append({}),
    b"]": lambda r: r.stack.append([]),
    b"N": lambda r: r.stack.append(None),
    b"\x88": lambda r: r.stack.append(True),
    b"\x89": lambda r: r.stack.append(False),
    b"K": lambda r: r.stack.append(r.number("<B")),
    b"M": lambda r: r.stack.append(r.number("<H")),
    b"J": lambda r: r.stack.append(r.number("<i")),
    b"U": lambda r: r.stack.append(r.take(r.number("<B"))),
    b"T": lambda r: r.stack.append(r.take(r.number("<i"))),
    b"\x85": lambda r: r.group(1),
    b"\x86": lambda r: r.group(2),
    b"\x87": lambda r: r.group(3),
    b"t": lambda r: r.stack.append(tuple(r.since_mark())),
    b"c": _Reader.name,
    b"q": lambda r: r.keep("<B"),
    b"r": lambda r: r.keep("<I"),
    b"h": _Reader.recall,
    b"R": _Reader.apply,
    b"\x81": _Reader.make,
    b"b": _Reader.fill,
    b"a": lambda r: r.add([r.pop()]),
    b"e": lambda r: r.add(r.since_mark()),
    b"u": _Reader.set_items,
}
