"""A target of the fuzzers: whole files to begin with, how one is changed, and what reads them.

A target fails if it raises anything but a `UserError`, or returns something that is not what was
written and says nothing (`SilentlyWrong`).
"""

import io
import random
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fuzz_mutations import mutated, mutated_inside

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.io.load import Loaded, load

KEPT: dict[str, Any] = {}  # what the whole files hold, read before anything was changed


class SilentlyWrong(Exception):
    """A damaged file was read as something else than what was written."""


@dataclass(frozen=True)
class Target:
    """Files to change, and what is done with them afterwards."""

    name: str
    share: float  # of all mutations
    seed: Callable[[Path], None]  # writes whole files into an empty folder
    read: Callable[[Path], object]  # of the folder in which one file was changed
    files: Callable[[Path], list[Path]]  # those that may be changed
    keep: Callable[[Path], None] | None = None  # what must come back, into `KEPT`
    inside: bool = False  # whether what is compressed is also changed before its checksum is made


def mutate(target: Target, whole: Path, work: Path, number: int) -> Path:
    """A copy of the whole files with one of them changed."""
    rng = random.Random(f"{target.name} {number}")
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(whole, work)
    files = target.files(work)
    if not files:  # nothing is changed but the words
        (work / "number").write_text(str(number))
        return work
    file = rng.choice(files)
    change = mutated_inside if target.inside and rng.random() < 0.5 else mutated
    file.write_bytes(change(file.read_bytes(), rng))
    return work


def attempt(target: Target, work: Path) -> str:
    """Read a changed folder: "refused" or "read"; any other exception is a find."""
    try:
        with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
            target.read(work)
    except UserError as error:
        if "\n" in str(error) or len(str(error)) > 2000:
            raise SilentlyWrong(f"not one line: {str(error)[:200]!r}") from None
        str(error).encode()
        return "refused"
    return "read"


def keep_whole(target: Target, whole: Path) -> None:
    """Remember what must come back, before the first change."""
    if target.keep is not None:
        target.keep(whole)


def everything(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file() and file.name != ".lock")


def sane(source: Path) -> Loaded:
    """A graph that can be: finite features, one id a node, edges between its nodes."""
    found = load(source)
    x, edges = found.tensors.x, found.tensors.edge_index
    values = x if x.layout == torch.strided else x.coalesce().values()
    if not torch.isfinite(values).all():
        raise SilentlyWrong("features that are no numbers")
    if len(np.unique(found.ids)) != len(found.ids) or len(found.ids) != x.shape[0]:
        raise SilentlyWrong("ids that are not one a node")
    if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < len(found.ids):
        raise SilentlyWrong("edges outside of the graph")
    return found


def small_graph() -> Graph:
    if "graph" not in KEPT:
        KEPT["graph"] = Graph.from_data(planted(nodes=60, seed=3))
    return KEPT["graph"]
