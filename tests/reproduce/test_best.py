"""Preset `best` is what the searches on the development half found."""

import json
import re
from pathlib import Path

import pytest

from muxgcl.runs.settings import preset, searches, source

RECORDS = Path(__file__).resolve().parents[2] / "records"
KEPT = [("cca-ssg", "citeseer"), ("ns4gc", "cora"), ("ns4gc", "photo"), ("ns4gc", "computers")]
KEPT += [("sgrl", "photo"), ("sgrl", "computers"), ("ggd", "pubmed"), ("ggd", "photo")]
KEPT += [("signa", "pubmed"), ("signa", "photo"), ("signa", "computers")]


@pytest.mark.parametrize(("method", "dataset"), KEPT)
def test_where_a_search_found_nothing_better_best_is_paper(method: str, dataset: str) -> None:
    assert preset(method, "best", dataset) == preset(method, "paper", dataset)
    told = source(method, "best", dataset)
    (file,) = searches(method, "best", dataset)
    rows = [json.loads(line) for line in (RECORDS / file).read_text(encoding="utf-8").splitlines()]
    trainings = [r for r in rows if (r["method"], r["dataset"]) == (method, dataset)]
    assert re.search(rf"(none of|nothing in) {len(trainings)} trainings", told)


SETTLED = [("cca-ssg", "pubmed"), ("cca-ssg", "photo"), ("cca-ssg", "computers")]
SETTLED += [("ns4gc", "pubmed"), ("sgrl", "pubmed"), ("ggd", "computers")]
SETTLED += [("mux-gcl", dataset) for dataset in ("cora", "citeseer", "photo")]


@pytest.mark.parametrize(("method", "dataset"), SETTLED)
def test_what_the_search_of_tuned_baselines_found_is_what_best_has(
    method: str, dataset: str
) -> None:
    """The best mean of two seeds or more, by any readout, within 0.1 points."""
    rows = (RECORDS / "tuned-search.jsonl").read_text(encoding="utf-8").splitlines()
    found: dict[str, list[dict[str, float]]] = {}
    for row in map(json.loads, rows):
        if (row["method"], row["dataset"]) == (method, dataset):
            key = json.dumps(row["settings"], sort_keys=True)
            found.setdefault(key, []).append(row["accuracy"])
    means = {
        key: max(sum(one[name] for one in each) / len(each) for name in each[0])
        for key, each in found.items()
        if len(each) > 1
    }
    ours, best = preset(method, "best", dataset), max(means.values())
    start = preset(method, "paper", dataset)
    taken = [
        mean
        for key, mean in means.items()
        if all(ours[k] == v for k, v in {**start, **json.loads(key)}.items())
    ]
    assert taken
    assert max(taken) > best - 0.1
