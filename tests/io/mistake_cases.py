"""Mistakes by name, and small files to make them with."""

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from muxgcl.io.load import load

Mistake = Callable[[pytest.MonkeyPatch], object]


class Mistakes(dict[str, Mistake]):
    """Functions that load something wrong, under the name that the documentation has for it."""

    def add(self, name: str) -> Callable[[Mistake], Mistake]:
        def keep(function: Mistake) -> Mistake:
            self[name] = function
            return function

        return keep


def edges(text: str, **options: object) -> object:
    Path("edges.csv").write_text(text)
    return load("edges.csv", **options)


def nodes(text: str, **options: object) -> object:
    Path("nodes.csv").write_text(text)
    return edges("a,b\nb,c\n", features="nodes.csv", **options)


def npz(name: str = "x.npz", **arrays: object) -> str:
    np.savez_compressed(name, **arrays)
    return name


def features(source: str) -> object:
    return edges("0,1\n1,2\n", features=source)


def npy_header(shape: tuple[int, ...]) -> bytes:
    """What a `.npy` of float64 in this shape begins with, without its data."""
    text = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    text += b" " * (63 - (10 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
