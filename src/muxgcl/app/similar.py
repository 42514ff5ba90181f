"""What a run's embeddings say of single nodes and pairs: nearest nodes, scores of links."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from muxgcl.app.options import LoadOptions
from muxgcl.errors import UserError
from muxgcl.evaluate.link import similarities
from muxgcl.evaluate.nearest import nearest
from muxgcl.io.edges import place_among
from muxgcl.io.files import write_atomically
from muxgcl.io.ids import as_array, from_array, ids_of, positions
from muxgcl.io.roles import EdgeColumns, NodeColumns
from muxgcl.io.save import harmless, write_csv
from muxgcl.io.sources import read_graph
from muxgcl.runs.folder import Run
from muxgcl.shapes import Array

PAIRS = 4_096  # that are scored at once


def neighbours(run: Path | str, nodes: Any, k: int = 10) -> dict[Any, list[tuple[Any, float]]]:
    """The nodes most similar to each of some nodes, with their cosines.

    Args:
        run: a run folder.
        nodes: ids, or one.
        k: how many for each of them.

    Returns:
        for each node a list of (id, cosine), the most similar first.

    Example:
        >>> found = neighbours("runs/mine", ["n0"], k=2)
        >>> [(other, round(cosine, 2)) for other, cosine in found["n0"]]
        [('n39', 0.94), ('n27', 0.93)]
    """
    ids, z = Run(Path(run)).embeddings()
    nodes = [nodes] if isinstance(nodes, str | int | np.integer) else list(nodes)
    rows = positions(ids_of(nodes), from_array(ids))
    if len(unknown := np.flatnonzero(rows < 0)):
        raise UserError(f"{run} has no node {str(nodes[unknown[0]])!r}")
    near, cosine = nearest(z, rows, k)
    return {
        ids[row].item(): list(zip(ids[others].tolist(), values.tolist(), strict=True))
        for row, others, values in zip(rows, near, cosine, strict=True)
    }


@dataclass(frozen=True, slots=True, eq=False)
class ScoredLinks:
    """Pairs of nodes and the cosine of their embeddings, in the order they came."""

    source: Array
    target: Array
    score: Array
    path: Path | None  # of the file that was written


def score_links(
    run: Path | str,
    pairs: Any,
    *,
    load: LoadOptions | None = None,
    out: Path | str | None = None,
) -> ScoredLinks:
    """How similar the two ends of given pairs are: the higher, the more likely a link.

    Args:
        run: a run folder.
        pairs: an edge list: a file (.csv, .tsv, .parquet), a frame, or an array [2, pairs].
        load: names of columns.
        out: a .csv file to write; none by default.

    Example:
        >>> found = score_links("runs/mine", [("n0", "n39"), ("n0", "n1")])
        >>> found.score.round(2).tolist()
        [0.94, 0.63]
    """
    load = load or LoadOptions()
    path = None if out is None else Path(out)
    if path is not None and path.suffix != ".csv":
        raise UserError(f"scores of links are written as .csv, got {path.name!r}")
    ids, z = Run(Path(run)).embeddings()
    columns = EdgeColumns(load.source_column, load.target_column, load.weight_column)
    listed, _ = read_graph(pairs, columns, NodeColumns(), load.header)
    ends = np.stack(place_among(listed, from_array(ids), str(run), one="a pair"), 1)
    parts = [similarities(z, ends[start : start + PAIRS]) for start in range(0, len(ends), PAIRS)]
    scores = np.concatenate(parts) if parts else np.empty(0)
    source, target = as_array(listed.source), as_array(listed.target)
    if path is not None:
        lists = (one.tolist() for one in (source, target, scores))
        rows = ([*map(harmless, row)] for row in zip(*lists, strict=True))
        names = ["source", "target", "score"]
        write_atomically(path, lambda file: write_csv(file, names, rows))
    return ScoredLinks(source, target, scores, path)
