"""Which clusterings of one cell came about in two ways: k-means has changed on large tables."""

from collections.abc import Sequence

from muxgcl.evaluate.clustering import LARGE
from muxgcl.io import DATASETS
from muxgcl.nn.readout import Readout
from muxgcl.reproduce.job import Job
from muxgcl.reproduce.paper import LABELS, TITLES
from muxgcl.reproduce.records import Found

# commits before a23268c, from which on starts on a large table are compared on a sample of its rows
ON_ALL_ROWS = ("21b0996", "8b664b4", "b8dbf04", "f9b4431", "34097ef")


def two_ways(found: Found, cells: Sequence[list[Job]]) -> str:
    """A sentence on every cell of which some seeds are older than that change; or nothing."""
    told = []
    for jobs in cells:
        if not jobs or _size(jobs[0]) <= LARGE:
            continue
        records = found.of(jobs)
        before = [r["seed"] for r in records if r["commit"][:7] in ON_ALL_ROWS]
        since = [r["seed"] for r in records if r["seed"] not in before]
        if before and since:
            method, dataset = jobs[0].method, jobs[0].dataset
            told.append(
                f" {LABELS[method]} on {TITLES.get(dataset, dataset)} mixes two ways of k-means: "
                f"{_span(before)} compared its starts on all rows, {_span(since)} on a "
                f"sample, as is done since a23268c with tables of more than {LARGE:,} numbers."
            )
    return "".join(told)


def _size(job: Job) -> int:
    """Numbers in the table that is clustered, where scales are read out; others are far smaller."""
    cfg, data = job.plan().settings, DATASETS[job.dataset]
    if not hasattr(cfg, "readout"):
        return 0
    read = Readout.of(cfg, last=cfg.hops if hasattr(cfg, "hops") else cfg.layers)
    beside = (bool(read.features) + bool(read.raw)) * data.features
    return data.nodes * (len(read.scales) * int(cfg.width) + beside)


def _span(seeds: Sequence[int]) -> str:
    return f"seeds {min(seeds)} to {max(seeds)}" if len(seeds) > 1 else f"seed {seeds[0]}"
