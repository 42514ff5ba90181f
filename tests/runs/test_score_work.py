"""What the scores of a run will take: which tables are counted, and how times grow."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from joblib import cpu_count

from muxgcl.evaluate import Split, nodes_in
from muxgcl.evaluate.clustering import LARGE, MANY
from muxgcl.evaluate.splits import subsampled
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.runs import cost, score_work
from muxgcl.runs.control_scores import control_tables, score_controls
from muxgcl.runs.embedding import embed
from muxgcl.runs.plan import Plan, build
from muxgcl.runs.score_work import (
    Judged,
    in_threads,
    judged,
    means_seconds,
    report_seconds,
    scoring,
    slowness,
    split_seconds,
)
from muxgcl.runs.scoring import Judging, splits_of
from muxgcl.runs.work import COUNTED, embedding_width

DATA = planted(nodes=120)
GRAPH = Graph.from_data(DATA)
ASKED = Judging(DATA)


def plan(method: str = "mux-hop", **settings: object) -> Plan:
    return Plan.make(method, "quick", overrides={"width": 8, **settings}, device="cpu")


def split(train: int, others: int = 0) -> Split:
    return Split(np.arange(train), np.arange(0), np.arange(others))


@pytest.mark.parametrize("method", COUNTED)
def test_the_width_is_that_of_the_embedding(method: str) -> None:
    made = plan(method)
    assert embedding_width(made, GRAPH) == embed(build(made, GRAPH), GRAPH).shape[1]


@pytest.mark.parametrize(
    "settings",
    [
        {"readout": "last"},
        {"readout_features": 0.5, "readout_raw": 0},
        {"readout_weights": (1, 0, 1)},
    ],
)
def test_the_width_counts_scales_and_features_that_are_read_out(settings: dict) -> None:
    made = plan(**{"readout_weights": (), **settings})
    assert embedding_width(made, GRAPH) == embed(build(made, GRAPH), GRAPH).shape[1]


def test_the_tables_are_the_embedding_and_the_controls() -> None:
    found = list(judged(plan(), GRAPH, ASKED, "holdout"))
    tables = [table.shape for table in control_tables(plan(), GRAPH).values()]
    assert [(table.rows, table.width) for table in found[1:]] == tables
    assert found[0] == Judged(120, embedding_width(plan(), GRAPH), 20, 5)
    assert {(table.splits, table.clusterings) for table in found[1:]} == {(20, 1)}
    assert list(judged(plan(), GRAPH, replace(ASKED, controls=False), "holdout")) == found[:1]


def test_large_controls_are_counted_as_they_are_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("control_scores.LARGE", "score_work.LARGE_CONTROL"):
        monkeypatch.setattr(f"muxgcl.runs.{module}", 120 * GRAPH.num_features - 1)
    monkeypatch.setattr("muxgcl.runs.scoring.subsampled", partial(subsampled, most=(10, 10, 5)))
    found = list(judged(plan(), GRAPH, ASKED, "holdout"))[1:]
    scored = dict(score_controls(plan(), GRAPH, DATA))
    del scored["majority"]
    splits = [scores["holdout"]["accuracy"]["n"] for scores in scored.values()]
    assert [table.splits for table in found] == splits == [5] * 5
    rows = len(nodes_in(splits_of(DATA, "holdout", 5, 0)))  # that a probe looks at
    assert rows < 120
    assert {table.rows for table in found} == {rows}
    assert not any(table.clusterings for table in found)
    assert not any("clustering" in scores for scores in scored.values())


def test_a_split_takes_longer_the_more_there_is_of_anything() -> None:
    base = split_seconds(split(100, 500), 50, 3)
    assert split_seconds(split(200, 500), 50, 3) > base
    assert split_seconds(split(100, 900), 50, 3) > base
    assert split_seconds(split(100, 500), 80, 3) > base
    assert split_seconds(split(100, 500), 50, 9) > base
    wide = [split_seconds(split(100), width, 3) for width in (1000, 2000)]
    assert wide[1] < 2 * wide[0]  # the solver has as many columns as there are training nodes


def test_a_split_takes_what_the_formula_says() -> None:
    few = [split_seconds(split(100, 300), width, 0) for width in (1000, 2000)]  # no class: no probe
    inner = score_work.INNER * 100 * 1000 * 100  # n d r, r the number of training nodes
    assert few[1] - few[0] == pytest.approx(inner + score_work.PREDICTION * 400 * 1000)
    free = split_seconds(split(100), 50, 0)
    one, sixteen = (split_seconds(split(100), 50, classes) - free for classes in (1, 16))
    assert sixteen == pytest.approx(8 * one)  # 16 ** (3 / 4)
    inner, turned = score_work.INNER * 100 * 50 * 50, score_work.ROTATION * 100 * 50**2
    predicted = score_work.PREDICTION * 100 * 50
    assert free == pytest.approx(inner + turned + score_work.EIGEN * 50**3 + predicted)


def test_the_public_protocol_has_the_splits_of_its_masks() -> None:
    data = DATA.clone()
    place = torch.arange(120)[:, None] + torch.arange(3)  # three divisions
    data.train_mask, data.val_mask = place % 6 == 0, place % 6 == 1
    data.test_mask = place % 6 > 1
    asked = Judging(data, ("public",), splits=7, controls=False)
    first, *more = splits_of(data, "public", 1, 0)
    assert len(more) == 2
    table = next(judged(plan(), GRAPH, asked, "public"))
    classes, cores = len(DATA.y.unique()), cpu_count()
    want = in_threads(split_seconds(first, table.width, classes), 3, min(cores, 3))
    want += in_threads(means_seconds(table, classes), 5, min(cores, 5))
    assert scoring(plan(), GRAPH, asked, 1.0)[0] == pytest.approx(want)


def test_k_means_of_larger_tables_is_never_counted_as_shorter() -> None:
    sizes = [(1000, 50), (20_000, 3000), (20_000, LARGE // 20_000 + 9), (MANY + 1, 4000)]
    times = [means_seconds(Judged(*size, 1, 1), 3) for size in sizes]
    assert times[0] < times[1]
    assert times[2] < times[1]  # starts are compared on a sample
    assert times[2] < times[3]


def test_pieces_in_threads_take_rounds() -> None:
    assert in_threads(3.0, 5, 1) == 15
    assert in_threads(score_work.SHARED, 5, 2) == pytest.approx(3)


def test_scores_are_in_the_estimate_of_time_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_work, "slowness", lambda: 2.0)
    seconds, needed = scoring(plan(), GRAPH, ASKED)
    assert seconds == pytest.approx(2 * scoring(plan(), GRAPH, ASKED, 1.0)[0])
    assert seconds > scoring(plan(), GRAPH, replace(ASKED, controls=False))[0]
    assert seconds > scoring(plan(), GRAPH, replace(ASKED, splits=4))[0]
    assert scoring(plan(), GRAPH, replace(ASKED, protocols=("paper",)))[0] == 0
    training = cost.Cost(100.0, 1.0, 0.0, "CPU")
    both = cost.with_scores(training, plan(), GRAPH, ASKED)
    assert both.seconds == pytest.approx(100 + seconds)
    assert both.scores == pytest.approx(seconds)
    assert both.bytes > needed
    on_gpu = cost.with_scores(replace(training, device="GPU"), plan(), GRAPH, ASKED)
    assert (on_gpu.seconds, on_gpu.bytes) == (both.seconds, 1.0)


def test_the_line_says_how_much_of_the_time_goes_into_scores() -> None:
    found = cost.Cost(720, 1.1 * 2**30, 0, "CPU", 120)
    assert str(found) == "about 12 min (training 10 min, scoring 2 min), 1.1 GiB on this CPU"


def test_a_report_is_part_of_the_estimate_and_its_t_sne_of_a_sample() -> None:
    without, with_it = (
        scoring(plan(), GRAPH, replace(ASKED, report=told), 2.0)[0] for told in (False, True)
    )
    assert with_it - without == pytest.approx(2 * report_seconds(GRAPH.num_nodes))
    times = [report_seconds(nodes) for nodes in (100, 3_000, 4_000, 30_000, 10**6)]
    # as measured on one core: the page (0.6, 6 and 7.9 s) and similarities (0.1, 2.6 and 2.5 s)
    assert times[:3] == pytest.approx([0.7, 8.6, 10.4], rel=0.2)
    assert times[2] < times[3] == times[4]


def test_this_machine_is_neither_stopped_nor_infinitely_fast() -> None:
    assert 0.01 < slowness() < 1000
