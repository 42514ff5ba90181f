"""`hops` as tables: methods beside the controls, the ablation, `auto` on unseen graphs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from muxgcl.evaluate import Difference, paired_difference, summarise
from muxgcl.evaluate.controls import ONE_HOP, RAW, SIDE_BY_SIDE, TWO_HOPS
from muxgcl.reproduce import numbers
from muxgcl.reproduce.artefacts import Scope
from muxgcl.reproduce.hops import ABLATION, BASELINES, EXTRA, OURS, Hops, members_of
from muxgcl.reproduce.job import BLOCKS, LARGEST_SAMPLE, LEFT_OUT, REPEATS, SAMPLED, Job
from muxgcl.reproduce.numbers import DASH, PAIRED
from muxgcl.reproduce.paper import LABELS, TITLES
from muxgcl.reproduce.readouts import AS_SET, WITH_FEATURES
from muxgcl.reproduce.records import Found, Record
from muxgcl.reproduce.shown import mark, marks_told
from muxgcl.reproduce.typeset import Table
from muxgcl.runs.settings import preset, searches, trainings

CONTROL_NAMES = {
    RAW: "features X",
    ONE_HOP: "A X",
    TWO_HOPS: "A^2 X",
    SIDE_BY_SIDE: "X, A X, A^2 X side by side",
}
CHANGES = {  # what an ablation leaves out or does otherwise
    "no-affinity": "without affinities",
    "no-multiplex": "without the multiplex contrast (scale L against itself)",
    "inside": "network inside the propagation",
    "no-dropout": "without dropout",
    "columns": "columns of features dropped, not single entries",
}
MUX_GCL = "mux-gcl"
READ_OUT = {  # MUX-GCL's trainings, read out in three ways
    "last": "last scale read out, as in the paper",
    "all": "all scales",
    AS_SET: "all scales and features",
}
OUTCOMES = {  # of searches
    "chosen": "Chosen on the development half",
    "kept": "searched for there, but none better by more than 0.1 points than preset `paper`, "
    "which was kept (beside each graph, after how many trainings)",
}
Scores = list[list[float]]  # a row for each seed, an entry for each split
JUDGED = (
    "Train and validation are a tenth of the labelled nodes each; test nodes are what these leave "
    "of the report half (protocol `holdout`). Seeds and splits are of no search. Scores on the "
    "report half were seen before the settings were final, some on these very splits: "
    "`docs/evaluation.md` tells which (What was looked at)."
)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: which trainings, read out how, at whose settings."""

    label: str
    jobs: Callable[[str], list[Job]]  # of a dataset
    table: str
    method: str = ""  # none: nothing is trained, so there are no settings to mark


def hops(found: Found, scope: Scope) -> list[Table]:
    """Everything that `hops` has to tell."""
    columns = scope.columns("hops")
    asked, header = scope.hops, ["", *(TITLES.get(name, name) for name in columns)]
    return [
        *_methods(found, asked, columns, header),
        *_features(found, asked, columns, header),
        _ablation(found, asked, columns, header),
        _left_out(found, asked, columns, header),
        _everyday(found, asked, columns, header),
    ]


def _methods(found: Found, asked: Hops, columns: Sequence[str], header: list[str]) -> list[Table]:
    """Accuracy of methods and controls; below, how well k-means finds the classes."""
    controls: list[Row] = [
        Row(label, asked.controls, name) for name, label in CONTROL_NAMES.items()
    ]
    baselines = [
        Row(LABELS[name], partial(asked.trained, name), AS_SET, name) for name in BASELINES
    ]
    beside = [
        Row(f"{LABELS[name]} and features", partial(asked.beside, name), WITH_FEATURES, name)
        for name in _with_features(found, asked, columns)
    ]
    mux_gcl = [
        Row(f"{LABELS[MUX_GCL]}, {what}", partial(asked.trained, MUX_GCL), table, MUX_GCL)
        for table, what in READ_OUT.items()
    ]
    ours = Row(LABELS[OURS], partial(asked.trained, OURS), AS_SET, OURS)
    several = f"{LABELS[OURS]}, {asked.seeds} seeds side by side"

    def body(rows: list[Row], cell: Callable[[list[Record], str, int], str]) -> list[list[str]]:
        return [
            [row.label, *(_marked(row, found, asked, d, cell) for d in columns)] for row in rows
        ]

    more = f" ({asked.own_seeds} for {LABELS[OURS]})" if asked.own_seeds > asked.seeds else ""
    clustered = [*controls, *baselines, mux_gcl[-1], ours]
    return [
        Table(
            "hops",
            f"{LABELS[OURS]}, other methods, and what needs no training: test accuracy in percent",
            header,
            body(
                [
                    *controls,
                    *baselines,
                    *beside,
                    *mux_gcl,
                    ours,
                    Row(several, asked.committee, AS_SET, OURS),
                ],
                _accuracy,
            ),
            [
                f"Mean ± standard deviation over {asked.seeds} seeds{more} by {asked.splits} "
                f"splits (n where fewer). {DASH}: not run. {JUDGED} Published figures are on other "
                "splits, so none stands here. The paper's other baselines are in Table I.",
                f"{LABELS[OURS]} reads out all scales and the features beside them, as they are "
                f"and propagated; for {LABELS[MUX_GCL]} each row says what is read out. Other "
                "methods are read out by their output alone, in the rows that say so with the "
                "same features beside it (`docs/results.md`, Features beside the embedding of "
                "other methods, has the differences). Settings "
                f"are those of preset `best`: {marks_told(BASELINES)}. {_searched(columns)}",
            ],
        ),
        Table(
            "hops-clustering",
            "The same embeddings clustered: NMI / ARI of k-means against the classes",
            header,
            body(clustered, _clusters),
            [
                f"k-means runs on all nodes; nodes of the report half are compared. Mean over "
                f"{asked.seeds} seeds{more}, fewer where the table above says so, by {REPEATS} "
                "runs of k-means. Settings are those of the table above; ours were chosen for "
                f"accuracy. {DASH}: not run."
            ],
        ),
    ]


def _marked(
    row: "Row",
    found: Found,
    asked: Hops,
    dataset: str,
    cell: Callable[[list[Record], str, int], str],
) -> str:
    jobs = row.jobs(dataset)
    text = cell(found.of(jobs), row.table, len(jobs) * asked.splits)
    return text + (mark(row.method, "best", dataset) if row.method and text != DASH else "")


def _features(found: Found, asked: Hops, columns: Sequence[str], header: list[str]) -> list[Table]:
    """What the features add to other methods and leave of our lead; nothing if not measured."""

    def row(label: str, gap: Callable[[str], Difference | None]) -> list[str]:
        return [label, *(numbers.interval(gap(dataset)) for dataset in columns)]

    def adds(name: str, dataset: str) -> Difference | None:
        jobs = asked.beside(name, dataset)
        return _difference(found, (jobs, WITH_FEATURES), (jobs, AS_SET))

    def lead(name: str, dataset: str) -> Difference | None:
        ours, jobs = asked.trained(OURS, dataset), asked.beside(name, dataset)
        return _difference(found, (ours, AS_SET), (jobs, WITH_FEATURES))

    def again(name: str, dataset: str) -> Difference | None:
        jobs = asked.beside(name, dataset)
        return _difference(found, (jobs, AS_SET), (asked.trained(name, dataset), AS_SET))

    every = {d: [job for name in BASELINES for job in asked.beside(name, d)] for d in columns}
    devices = {
        numbers.device(record["device"]) for jobs in every.values() for record in found.of(jobs)
    }
    apart = [
        f"{LABELS[name]} ({_title(dataset)})"
        for name in BASELINES
        for dataset in columns
        if (gap := again(name, dataset)) and gap.is_clear
    ]
    agree = f"they differ for {', '.join(apart)}" if apart else "no interval leaves out zero"
    groups = (
        ("{}: features add", adds),
        (f"{LABELS[OURS]} minus {{}} and features", lead),
        ("{} without features, minus its row above", again),
    )
    names = _with_features(found, asked, columns)
    table = Table(
        "hops-features",
        "Features beside the embedding of other methods: what they add, and what is left of our "
        "lead (points of accuracy)",
        header,
        [
            row(label.format(LABELS[name]), partial(gap, name))
            for label, gap in groups
            for name in names
        ],
        [
            f"The features are those that {LABELS[OURS]} has beside its scales: unit rows of "
            f"A^{BLOCKS['hops']} X times {BLOCKS['propagated']} and of X times {BLOCKS['raw']}. "
            f"They stand beside unit rows of the method's output, of weight 1. {LABELS[OURS]} has "
            "three scales beside them, of weights 1 or 0.5, so its features weigh less of the "
            "whole. These weights were not chosen for other methods, so others may do better. "
            f"Trained for these rows on: {'; '.join(sorted(devices)) or DASH}. The last rows hold "
            "these trainings, read out without features, against those of the table above, which "
            f"have the same seeds: {agree}. {DASH}: not run. {PAIRED}"
        ],
    )
    return [table] if names else []


def _with_features(found: Found, asked: Hops, columns: Sequence[str]) -> list[str]:
    """The other methods that were measured with features, on some graph."""
    return [name for name in BASELINES if any(found.of(asked.beside(name, d)) for d in columns)]


def _ablation(found: Found, asked: Hops, columns: Sequence[str], header: list[str]) -> Table:
    """The full method minus each change, on the same seeds and splits."""

    def against(label: str, other: Callable[[str], tuple[list[Job], str]]) -> list[str]:
        cells = []
        for dataset in columns:
            jobs, table = other(dataset)
            full = (asked.trained(OURS, dataset), AS_SET)
            cells.append(numbers.interval(_difference(found, full, (jobs, table))))
        return [label, *cells]

    def read_as(table: str) -> Callable[[str], tuple[list[Job], str]]:
        return lambda dataset: (asked.trained(OURS, dataset), table)

    def changed(variant: str) -> Callable[[str], tuple[list[Job], str]]:
        return lambda dataset: (asked.trained(OURS, dataset, variant), AS_SET)

    side = []
    for dataset in columns:
        together = asked.committee(dataset)
        several = scores(found.of(together))
        members = scores(found.of([job for one in together for job in members_of(one)]))
        gap = np.mean(several) - np.mean(members) if several and members else None
        side.append(DASH if gap is None else numbers.signed(float(gap)))
    return Table(
        "hops-ablation",
        f"What each part of {LABELS[OURS]} is worth: the full method minus it (points of accuracy)",
        header,
        [
            against("last scale alone read out", read_as("last")),
            against("all scales read out, without features", read_as("all")),
            *(against(CHANGES[name], changed(name)) for name in (*ABLATION, *EXTRA)),
            [f"{asked.seeds} seeds side by side, minus each of them alone", *side],
        ],
        [
            "A positive figure: the full method is better. The first two rows read the same "
            "trainings out in another way; the full method has features beside the scales, so the "
            "first row is the worth of both. Everything else stays as the full method has it, so a "
            f"part that would do better with other settings is not given them. {PAIRED} The last "
            "row is the other way round: the embeddings of these seeds together, minus the mean "
            "of the same seeds one by one; one set of seeds has no interval."
        ],
    )


def _left_out(found: Found, asked: Hops, columns: Sequence[str], header: list[str]) -> Table:
    """`auto` with the graph's own settings left out, beside `best` and the controls."""

    def cells(dataset: str) -> list[str]:
        best = asked.trained(OURS, dataset)
        return [
            _accuracy(found.of(best), AS_SET, len(best) * asked.splits),
            *_unseen(found, asked, dataset, LEFT_OUT),
        ]

    labels = (
        "`best`",
        "`auto`, this graph left out",
        "best control",
        "`auto` minus best control",
        "`auto` minus `best`",
    )
    return Table(
        "hops-auto",
        f"`auto` on a graph that it does not know: {LABELS[OURS]}, test accuracy in percent",
        header,
        [list(row) for row in zip(labels, *map(cells, columns), strict=True)],
        [
            "Of the candidates within 0.1 points of the best average on the development halves of "
            "the other four graphs, `auto` has the one that drops the most "
            "(`records/general-search.jsonl`). Earlier rules, and what was changed after a look at "
            "the report half, are in decision 11. "
            f"{PAIRED} The last row takes the seeds that both have, so it is not the difference "
            "of the means above. The best control is the best on the same test nodes."
        ],
    )


def _everyday(found: Found, asked: Hops, columns: Sequence[str], header: list[str]) -> Table:
    """What a machine without a GPU makes of a graph that `auto` does not know."""
    jobs = {dataset: asked.trained(OURS, dataset, SAMPLED) for dataset in columns}
    devices = {
        numbers.device(record["device"]) for ours in jobs.values() for record in found.of(ours)
    }

    def cells(dataset: str) -> list[str]:
        ours = jobs[dataset]
        size = f"{ours[0].plan().anchors:,}" if ours else DASH
        return [size, *_unseen(found, asked, dataset, SAMPLED)]

    labels = (
        "nodes a step",
        "`auto` with a sample, this graph left out",
        "best control",
        "minus best control",
        "minus `best`",
    )
    return Table(
        "hops-everyday",
        f"Without a GPU: {LABELS[OURS]} as `auto` trains it on a CPU, test accuracy in percent",
        header,
        [list(row) for row in zip(labels, *map(cells, columns), strict=True)],
        [
            f"Measured on: {'; '.join(sorted(devices)) or DASH}. A step contrasts a sample of the "
            f"nodes, a quarter of them and {LARGEST_SAMPLE:,} at most, and rounds its products "
            "where the processor has instructions for that. Settings were chosen on the other four "
            "graphs; norm and anchors of a sample on all five (decision 11, which also tells what "
            "was seen before). "
            "How long whole runs take is in `docs/scale.md` (How far it goes). `best` contrasts "
            f"all nodes, on a GPU, with settings that were searched for on each graph. {PAIRED}"
        ],
    )


def _unseen(found: Found, asked: Hops, dataset: str, variant: str) -> tuple[str, ...]:
    """Accuracy with settings that do not know the graph; beside the controls; minus `best`."""
    best, ours = asked.trained(OURS, dataset), asked.trained(OURS, dataset, variant)
    return (
        _accuracy(found.of(ours), AS_SET, len(ours) * asked.splits),
        *_beside_controls(found, asked, dataset, ours),
        numbers.interval(_difference(found, (ours, AS_SET), (best[: len(ours)], AS_SET))),
    )


def _beside_controls(
    found: Found, asked: Hops, dataset: str, jobs: Sequence[Job]
) -> tuple[str, str]:
    """The best control on the same test nodes, and how far these trainings are above it."""
    controls = {
        label: scores(found.of(asked.controls(dataset)), name)
        for name, label in CONTROL_NAMES.items()
    }
    ranked = sorted((c for c in controls.items() if c[1]), key=lambda c: -np.mean(c[1]))
    if not ranked:
        return DASH, DASH
    (label, best), seen = ranked[0], scores(found.of(jobs))
    gap = paired_difference(np.array(seen), np.array(best * len(seen))) if seen else None
    return f"{np.mean(best):.2f} ({label})", numbers.interval(gap)


def _searched(columns: Sequence[str]) -> str:
    """Which settings were searched for on the development half, and what came of it."""
    said = []
    for outcome, what in OUTCOMES.items():
        names = []
        for method in (*BASELINES, MUX_GCL, OURS):
            found = [d for d in columns if _outcome(method, d) == outcome]
            where = [_title(d) + _trainings(method, d) for d in found]
            everywhere = outcome == "chosen" and len(where) == len(columns)
            if where:
                names.append(LABELS[method] + ("" if everywhere else f" ({', '.join(where)})"))
        if names:
            said.append(f"{what}: {', '.join(names)}")
    return f"{'; '.join(said)}. The other settings were not searched for."


def _outcome(method: str, dataset: str) -> str:
    if not searches(method, "best", dataset):
        return ""
    if method == OURS:
        return "chosen"
    same = preset(method, "best", dataset) == preset(method, "paper", dataset)
    return "kept" if same else "chosen"


def _trainings(method: str, dataset: str) -> str:
    """How many found nothing better, behind a name."""
    count = trainings(method, "best", dataset)
    return f" {count}" if count else ""


def _title(dataset: str) -> str:
    return TITLES.get(dataset, dataset)


def scores(records: Sequence[Record], table: str = AS_SET, measure: str = "accuracy") -> Scores:
    """A row for each seed, of one table and measure."""
    tables = [record["result"]["tables"].get(table, {}) for record in records]
    return [found[measure] for found in tables if measure in found]


def _difference(
    found: Found, one: tuple[list[Job], str], two: tuple[list[Job], str]
) -> Difference | None:
    """`one - two` on the seeds that both have, split by split."""
    pairs = []
    for left, right in zip(one[0], two[0], strict=False):
        first, second = (
            scores([record] if (record := found.get(job)) else [], table)
            for job, table in ((left, one[1]), (right, two[1]))
        )
        if first and second:
            pairs.append((first[0], second[0]))
    if not pairs:
        return None
    return paired_difference(*map(np.array, zip(*pairs, strict=True)))


def _accuracy(records: Sequence[Record], table: str, planned: int) -> str:
    found = scores(records, table)
    return numbers.percent(summarise(np.concatenate(found)) if found else None, planned)


def _clusters(records: Sequence[Record], table: str, planned: int) -> str:
    """NMI / ARI."""
    measures = [scores(records, table, measure) for measure in ("nmi", "ari")]
    if not all(measures):
        return DASH
    return " / ".join(f"{np.mean(np.concatenate(m)):.3f}" for m in measures)
