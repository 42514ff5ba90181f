"""Runs side by side: scores under names that tell them apart, and differences on the same splits.

Runs are comparable where graph, labels and splits are the same; the name of a dataset says little.
"""

from collections.abc import Hashable, Iterator, Sequence
from hashlib import sha256

import numpy as np

from muxgcl.evaluate import summarise
from muxgcl.evaluate.controls import UNTRAINED, control_name
from muxgcl.evaluate.verdict import PROTOCOLS, split_accuracies
from muxgcl.report.markup import prose, text
from muxgcl.report.record import RunRecord
from muxgcl.report.scores import Score, flatten, judged


def graph_and_labels(record: RunRecord) -> Hashable:
    """A key that runs on one graph with one set of labels share."""
    labels = b"" if record.labels is None else np.ascontiguousarray(record.labels).tobytes()
    names = "|".join(map(str, record.label_names))
    sizes = tuple(sorted(record.data_summary.items()))
    graph = record.fingerprint or (record.dataset, sizes)
    return graph, sha256(labels).hexdigest(), names


def scores_of_runs(records: Sequence[RunRecord], names: Sequence[str]) -> list[tuple[str, Score]]:
    """Every run's scores under its name; a control that several runs share is there once."""
    rows: dict[tuple[str, str, str], tuple[str, Score]] = {}
    for record, name, place in zip(records, names, _places(records, names), strict=True):
        for score in flatten(record.scores):
            who = f"{place[score.protocol]}: {score.who}" if score.is_control else name
            if score.who == control_name(UNTRAINED):  # each method has its own
                who = f"{place[score.protocol]}: {record.method}, untrained"
                before = rows.get((who, score.protocol, score.measure))
                who = who if before is None or before[1] == score else f"{name}, untrained"
            rows.setdefault((who, score.protocol, score.measure), (who, score))
    return sorted(rows.values(), key=lambda row: row[1].is_control)


def _places(records: Sequence[RunRecord], names: Sequence[str]) -> Iterator[dict[str, str]]:
    """Of each run, what its controls of each protocol were scored on: the dataset's name.

    Where that stands for several graphs, labels or splits, the first run on each is named, too.
    """
    found: dict[tuple[str, str], dict[Hashable, str]] = {}
    keys: list[dict[str, Hashable]] = []
    for record, name in zip(records, names, strict=True):
        keys.append({})
        for score in filter(lambda score: score.is_control, flatten(record.scores)):
            known = split_accuracies(record.scores.get(score.protocol))
            splits = (None, score.n) if known is None else (known[0], len(known[1]))
            key: Hashable = (graph_and_labels(record), splits)
            key = keys[-1].setdefault(score.protocol, key)
            found.setdefault((record.dataset, score.protocol), {}).setdefault(
                key, record.folder or name
            )
    for record, of_record in zip(records, keys, strict=True):
        yield {
            protocol: record.dataset
            if len(found[record.dataset, protocol]) == 1
            else f"{record.dataset} ({found[record.dataset, protocol][key]})"
            for protocol, key in of_record.items()
        }


def pair_rows(records: Sequence[RunRecord], names: Sequence[str]) -> list[list[str]]:
    """A line for each run that has splits in common with an earlier one; those are compared."""
    first: dict[Hashable, tuple[str, list[float]]] = {}
    rows = []
    for record, name in zip(records, names, strict=True):
        for protocol in PROTOCOLS:
            found = split_accuracies(record.scores.get(protocol))
            if found is None:
                continue
            mark, values = found
            key = (graph_and_labels(record), protocol, mark)
            if key not in first:
                first[key] = name, values
                continue
            base, others = first[key]
            pairs = [one - two for one, two in zip(values, others, strict=False)]
            ahead = sum(pair > 0 for pair in pairs)
            difference = summarise(pairs)
            figure = f"{difference.mean:+.2f} ± {difference.std:.2f} ({protocol}, n = {len(pairs)})"
            cells = (name, base, figure, f"{ahead} of {len(pairs)}")
            rows.append([text(cell) for cell in cells])
    return rows


def verdicts(records: Sequence[RunRecord], names: Sequence[str]) -> list[str]:
    """Of each run, whether training paid."""
    found = [judged(record) for record in records]
    return [
        f"<b>{text(name)}</b>: {prose(one.sentence)}."
        for name, one in zip(names, found, strict=True)
        if one is not None
    ]
