"""How often does a nominal 95 % interval cover the true difference? By simulation.

A paired difference at seed i and split j is simulated as mean + seed effect + split effect + rest,
all normal. The shares of the three variances are a few plain ones, and those of the records that
Table I shows (protocol `holdout`, the report half) for MUX-GCL minus GRACE and minus propagation.
`t` is what `paired_difference` gives today; `bootstrap` is what it gave before: percentiles of
means over seeds and splits drawn again with replacement. Appends one JSON line for each pattern,
number of seeds and interval.

    python benchmarks/coverage.py --out records/coverage.jsonl
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from muxgcl.evaluate import paired_difference
from muxgcl.io.files import append_lines
from muxgcl.reproduce.artefacts import Scope
from muxgcl.reproduce.numbers import scores
from muxgcl.reproduce.records import Found, RecordStore
from muxgcl.runs.environment import commit, versions

Array = np.ndarray
Interval = Callable[[Array], tuple[float, float] | None]

SPLITS = 20
PLAIN = {  # variances of seeds, splits and rest
    "noise alone": (0.0, 0.0, 1.0),
    "seeds dominate": (1.0, 0.01, 0.05),
    "splits dominate": (0.01, 1.0, 0.05),
    "seeds and splits alike": (1.0, 1.0, 1.0),
    "a little of the seed": (0.03, 0.0, 1.0),
    "a little of both": (0.1, 0.1, 1.0),
}


def components(differences: Array) -> tuple[float, float, float]:
    """Variances of seeds, splits and rest by the mean squares; a negative one is zero."""
    seeds, splits = differences.shape
    rows, columns = differences.mean(1), differences.mean(0)
    rest = differences - rows[:, None] - columns + differences.mean()
    within = float((rest**2).sum() / ((seeds - 1) * (splits - 1)))
    by_seed = float(rows.var(ddof=1)) - within / splits
    by_split = float(columns.var(ddof=1)) - within / seeds
    return max(0.0, by_seed), max(0.0, by_split), within


def recorded_patterns(folder: Path) -> Iterator[tuple[str, tuple[float, float, float]]]:
    """What the records that Table I shows say of differences to MUX-GCL."""
    found, scope = Found(RecordStore(folder).lines()), Scope(chief_seeds=10)
    for other in ("grace", "sgc"):
        for graph in scope.columns("table1"):
            ours = np.array(scores(found.of(scope.scored("mux-gcl", graph))))
            theirs = np.array(scores(found.of(scope.scored(other, graph))))  # SGC has one seed
            seeds = len(ours) if len(theirs) == 1 else min(len(ours), len(theirs))
            yield f"mux-gcl minus {other} on {graph}", components(ours[:seeds] - theirs[:seeds])


def bootstrap(draws: int = 1000) -> Interval:
    """Percentiles of the mean, seeds and splits drawn again with replacement."""
    drawn: dict[tuple[int, int], tuple[Array, ...]] = {}

    def counts(shape: tuple[int, int]) -> tuple[Array, ...]:
        """How often each seed and each split is drawn; the same draws for every table."""
        rng = np.random.default_rng(0)
        if shape not in drawn:
            drawn[shape] = tuple(rng.multinomial(n, np.full(n, 1 / n), draws) for n in shape)
        return drawn[shape]

    def interval(values: Array) -> tuple[float, float]:
        rows, columns = counts(values.shape)
        means = ((rows @ values) * columns).sum(1) / values.size
        low, high = np.quantile(means, [0.025, 0.975])
        return float(low), float(high)

    return interval


def by_t(values: Array) -> tuple[float, float] | None:
    """What `paired_difference` says; None where it gives no interval."""
    found = paired_difference(values, np.zeros_like(values))
    return None if found.low is None or found.high is None else (found.low, found.high)


def coverage(
    interval: Interval, variances: tuple[float, float, float], seeds: int, count: int, seed: int
) -> float | None:
    """The share of simulated tables whose interval holds the true mean, zero."""
    rng = np.random.default_rng(seed)
    of_seed, of_split, of_rest = np.sqrt(variances)
    held = 0
    for _ in range(count):
        values = of_rest * rng.normal(size=(seeds, SPLITS))
        values += of_seed * rng.normal(size=(seeds, 1)) + of_split * rng.normal(size=SPLITS)
        if (ends := interval(values)) is None:
            return None
        held += ends[0] <= 0 <= ends[1]
    return held / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=Path, default=Path("records"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 3, 5, 10])
    parser.add_argument("--count", type=int, default=2000, help="tables of each kind")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    patterns = PLAIN | dict(recorded_patterns(args.records))
    for pattern, variances in patterns.items():
        for seeds in args.seeds:
            for name, interval in (("bootstrap", bootstrap()), ("t", by_t)):
                found = coverage(interval, variances, seeds, args.count, seed=seeds)
                row = {
                    "kind": "coverage",
                    "pattern": pattern,
                    "variances": dict(zip(("seed", "split", "rest"), variances, strict=True)),
                    "seeds": seeds,
                    "splits": SPLITS,
                    "interval": name,
                    "nominal": 0.95,
                    "coverage": found,
                    "tables": args.count,
                    "versions": versions(),
                    "commit": commit(),
                }
                append_lines(args.out, [row])
                said = "no interval" if found is None else f"{100 * found:.1f} %"
                print(f"{pattern}, {seeds} seeds, {name}: {said}", flush=True)


if __name__ == "__main__":
    main()
