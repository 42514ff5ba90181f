"""Small files in the layout of Planetoid's: pickles of protocol 2 as Python 2 wrote them."""

import struct
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

ARRAY = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"


def integer(value: int) -> bytes:
    if 0 <= value < 256:
        return b"K" + bytes([value])
    return (
        b"M" + struct.pack("<H", value) if 0 <= value < 65536 else b"J" + struct.pack("<i", value)
    )


def text(value: bytes) -> bytes:
    if len(value) < 256:
        return b"U" + bytes([len(value)]) + value
    return b"T" + struct.pack("<i", len(value)) + value


def array(
    value: np.ndarray, shape: tuple[int, ...] | None = None, code: str | None = None
) -> bytes:
    """The opcodes of an array; shape and kind may lie."""
    sizes = b"".join(map(integer, shape or value.shape))
    sizes += b"\x85" if len(shape or value.shape) == 1 else b"\x86"
    kind = (code or value.dtype.str[1:]).encode()
    dtype = b"cnumpy\ndtype\n" + text(kind) + b"K\x00K\x01\x87R"
    dtype += b"(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    return ARRAY + b"(K\x01" + sizes + dtype + b"\x89" + text(value.tobytes()) + b"tb"


def matrix(value: csr_array, **changed: bytes) -> bytes:
    """The opcodes of a sparse matrix; its parts may be others."""
    parts = {
        "_shape": b"".join(map(integer, value.shape)) + b"\x86",
        "data": array(value.data),
        "indices": array(value.indices.astype("i4")),
        "indptr": array(value.indptr.astype("i4")),
        **changed,
    }
    items = b"".join(text(name.encode()) + part for name, part in parts.items())
    return b"cscipy.sparse.csr\ncsr_matrix\n)\x81}(" + items + b"ub"


def links(neighbours: dict[int, list[int]]) -> bytes:
    items = b"".join(
        integer(node) + b"](" + b"".join(map(integer, others)) + b"e"
        for node, others in neighbours.items()
    )
    return b"ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(" + items + b"u"


def pickled(opcodes: bytes) -> bytes:
    return b"\x80\x02" + opcodes + b"."


def tiny(nodes: int = 520, words: int = 6) -> dict[str, bytes]:
    """All eight files of a small graph, by what comes after `ind.NAME.`."""
    rng = np.random.default_rng(0)
    x = csr_array((rng.random((nodes, words)) < 0.3).astype("f4"))
    y = np.eye(3, dtype="i4")[np.arange(nodes) % 3]
    test = np.arange(nodes - 4, nodes)[::-1]
    around = {node: [(node + 1) % nodes, (node * 7) % nodes] for node in range(nodes)}
    return {
        "x": pickled(matrix(x[:10])),
        "tx": pickled(matrix(x[test])),
        "allx": pickled(matrix(x[:-4])),
        "y": pickled(array(y[:10])),
        "ty": pickled(array(y[test])),
        "ally": pickled(array(y[:-4])),
        "graph": pickled(links(around)),
        "test.index": "\n".join(map(str, test)).encode(),
    }


def write_tiny(folder: Path, name: str = "pubmed") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, content in tiny().items():
        (folder / f"ind.{name}.{part}").write_bytes(content)
    return folder
