r"""Time and memory of a run's scores: linear probe and k-means, of embedding and controls.

With n training nodes, d columns, $r = \min(n, d)$ and k classes, a split of the probe takes

$$a\,n d r + b\,r^3 + c\,n r^2 + e\,n r\,(20 k)^{3/4} + f\,m d$$

seconds on one core: inner products, their eigenvectors, a rotation (none where d > n), Newton's
method along the strengths, and predictions of m nodes. The factors were fitted on one core; a small
probe tells how slow this machine is beside it (`slowness`). A report after the scores is counted
by its nodes (`report_seconds`).
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from joblib import cpu_count
from threadpoolctl import threadpool_limits

from muxgcl.evaluate import STRENGTHS, Split, nodes_in
from muxgcl.evaluate.clustering import LARGE, MANY, SAMPLE, STARTS
from muxgcl.evaluate.logistic import fit_path
from muxgcl.evaluate.probe import TOGETHER, workspace
from muxgcl.graph import Graph
from muxgcl.runs.control_scores import CLUSTERINGS, LARGE_SPLITS
from muxgcl.runs.control_scores import LARGE as LARGE_CONTROL
from muxgcl.runs.plan import Plan
from muxgcl.runs.scoring import REPEATS, Judging, labels_of, splits_of
from muxgcl.runs.work import NUMBER, embedding_width

INNER, EIGEN, ROTATION, NEWTON, PREDICTION = 2e-11, 1.4e-10, 5e-11, 1.1e-8, 5.5e-9  # seconds
MEANS = 1.1e-9  # seconds of k-means for a number and iteration, beside CLUSTER for each cluster
CLUSTER = MEANS / 30
# seconds of a report in all, for each node that t-SNE places, for each whose similarities are
# measured (`runs/diagnostics.py`), and for each that is shown; fitted on one core
REPORT, PLACED, COMPARED, SHOWN = 0.5, 2e-3, 5e-4, 2e-4
MOST_PLACED, MOST_COMPARED, MOST_SHOWN = 3_000, 8_192, 30_000
PIECE = 800  # rows and columns of the probe that is timed
LIBRARIES = 400 << 20  # bytes: scikit-learn and scipy, and what the allocator keeps
SHARED = 0.75  # of a core's speed is left where all cores are busy


@dataclass(frozen=True, slots=True)
class Judged:
    """One table that is scored."""

    rows: int
    width: int
    splits: int
    clusterings: int

    @property
    def numbers(self) -> int:
        """How many there are in it."""
        return self.rows * self.width


def scoring(
    plan: Plan, graph: Graph, asked: Judging, slow: float | None = None
) -> tuple[float, float]:
    """Seconds of all scores of one run, and of its report; bytes of the embedding and scores."""
    slow = slowness() if slow is None else slow
    y = labels_of(asked.data)
    classes = 0 if y is None else len(np.unique(y[y >= 0]))
    seconds, most, cores = 0.0, 0.0, cpu_count()
    protocols = [name for name in asked.protocols if name != "paper"]  # that one: while training
    for protocol in protocols:
        first, *more = splits_of(asked.data, protocol, 1, 0)
        embedding, *others = judged(plan, graph, asked, protocol)
        for table in (embedding, *others):
            count = 1 + len(more) if protocol == "public" else table.splits
            room = workspace(len(first.train), table.width)
            threads = max(1, min(cores, count, TOGETHER // room))
            seconds += in_threads(split_seconds(first, table.width, classes), count, threads)
            room *= threads
            if table.clusterings and protocol == protocols[0]:
                threads = min(cores, table.clusterings)
                seconds += in_threads(means_seconds(table, classes), table.clusterings, threads)
                held = LARGE if table.rows > MANY else table.numbers
                room = max(room, NUMBER * held * (2 + threads))  # each has copies
            most = max(most, room + (0 if table is embedding else NUMBER * table.numbers))
    if asked.report:
        seconds += report_seconds(graph.num_nodes)
    read = graph.num_nodes * embedding_width(plan, graph)
    return seconds * slow, LIBRARIES + most + NUMBER * read


def judged(plan: Plan, graph: Graph, asked: Judging, protocol: str) -> Iterator[Judged]:
    """The embedding and its controls."""
    nodes, f = graph.num_nodes, graph.num_features
    width = embedding_width(plan, graph)
    yield Judged(nodes, plan.output_width or width, asked.splits, REPEATS)
    if not asked.controls:
        return
    rows = nodes
    if nodes * f > LARGE_CONTROL:
        rows = len(nodes_in(splits_of(asked.data, protocol, LARGE_SPLITS, 0)))
    for columns in (f, f, f, 3 * f, width // plan.members):
        large = rows < nodes or nodes * columns > LARGE_CONTROL
        splits = min(asked.splits, LARGE_SPLITS) if large else asked.splits
        yield Judged(rows, columns, splits, 0 if large else CLUSTERINGS)


def split_seconds(split: Split, width: int, classes: int) -> float:
    """One split of the probe on one core."""
    n, r = len(split.train), min(len(split.train), width)
    parts = (split.train, split.val, split.test, split.uncounted)
    seen = sum(len(part) for part in parts if part is not None)
    turned = INNER * n * width * r + EIGEN * r**3 + (ROTATION * n * r**2 if width <= n else 0.0)
    solved: float = NEWTON * n * r * float(len(STRENGTHS) * classes) ** 0.75
    return turned + solved + PREDICTION * seen * width


def means_seconds(table: Judged, clusters: int) -> float:
    """One k-means on one core, from all its starts."""
    each, rounds = MEANS + CLUSTER * clusters, 20 + clusters / 2
    if table.rows > MANY:
        sample, some = (min(table.numbers, most) for most in (SAMPLE, LARGE))
        return each * (STARTS * rounds * sample + 10 * some) + PREDICTION * table.numbers
    if table.numbers > LARGE:
        return each * (STARTS * rounds * SAMPLE + 12 * table.numbers)
    return each * STARTS * rounds * table.numbers


def report_seconds(nodes: int) -> float:
    """A page about the run and what it draws, on one core: most of it is t-SNE, of a sample."""
    each = {MOST_PLACED: PLACED, MOST_COMPARED: COMPARED, MOST_SHOWN: SHOWN}
    return REPORT + sum(seconds * min(nodes, most) for most, seconds in each.items())


def in_threads(seconds: float, count: int, threads: int) -> float:
    """The time of equal pieces in several threads."""
    return seconds * -(-count // threads) / (SHARED if threads > 1 else 1)


def slowness() -> float:
    """How long a small probe takes on a core of this machine, over what it is counted as."""
    rng = np.random.default_rng(0)
    y = np.arange(PIECE) % 3
    x = rng.normal(size=(PIECE, PIECE)) / PIECE**0.5
    x[:, :3] += 0.1 * np.eye(3)[y]
    split = Split(np.arange(PIECE), y[:0], y[:0])
    found = []
    with threadpool_limits(limits=1, user_api="blas"):
        for _ in range(2):  # the first warms up
            begin = time.perf_counter()
            fit_path(x, y, STRENGTHS)
            found.append(time.perf_counter() - begin)
    return min(found) / split_seconds(split, PIECE, 3)
