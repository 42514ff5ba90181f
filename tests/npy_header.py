"""The first bytes of a `.npy`, honest or not."""

import struct


def npy_header(shape: tuple[int, ...]) -> bytes:
    """What a `.npy` of float64 in this shape begins with, without its data."""
    text = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    text += b" " * (63 - (10 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
