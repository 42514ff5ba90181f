"""Memory that a training step frees stays with the process, for the next step.

By default glibc gives a large block back to the system as soon as it is freed. A step asks for the
same tables over and over, and each time the system fills their pages with zeros first, which is
much of an epoch on a CPU. Other C libraries, and memory on a GPU, are left alone.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4  # malloc.h
_LARGE = 1 << 30  # bytes of a block that is given back all the same
_KEPT = (1 << 31) - 1  # bytes at the end of the heap that are kept, at most
_DEFAULT, _DEFAULT_MAPS = 128 << 10, 65536  # bytes and blocks, as glibc begins with


@contextmanager
def reused_memory(device: torch.device) -> Iterator[None]:
    """Keep what is freed inside, if this is a CPU; give it back in the end."""
    libc = _glibc() if device.type == "cpu" else None
    if libc is None:
        yield
        return
    libc.mallopt(_TRIM_THRESHOLD, _KEPT)
    if not libc.mallopt(_MMAP_THRESHOLD, _LARGE):  # older versions know a largest value
        libc.mallopt(_MMAP_MAX, 0)
    try:
        yield
    finally:
        libc.mallopt(_TRIM_THRESHOLD, _DEFAULT)
        libc.mallopt(_MMAP_THRESHOLD, _DEFAULT)
        libc.mallopt(_MMAP_MAX, _DEFAULT_MAPS)
        give_back()


def give_back() -> None:
    """Give the system what is free: after a training, once its tables are gone as well."""
    libc = _glibc()
    if libc is not None:
        libc.malloc_trim(0)


@cache
def _glibc() -> ctypes.CDLL | None:
    """The C library of this process, if it is glibc."""
    try:
        libc = ctypes.CDLL(None)
    except (OSError, TypeError):
        return None
    return libc if hasattr(libc, "gnu_get_libc_version") else None
