"""Speeds of real steps: what is timed, what the estimate makes of it, and what stays untouched."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.methods import MuxHop
from muxgcl.runs import trial
from muxgcl.runs.cost import SUSTAINED, epoch_seconds, estimate, rounds_of_walks
from muxgcl.runs.plan import Plan
from muxgcl.runs.rates import Rates
from muxgcl.runs.trial import MOST_SECONDS, STEPS, measured

GRAPH = Graph.from_data(planted(nodes=120, seed=2))
RATES = Rates(1e10, 1e9, 1e9, 1e7, 1e4, 0.001)


def plan(method: str = "mux-hop", **changes: object) -> Plan:
    small = {"width": 16, "projection": 16, "affinity_epochs": 3, "walks_per_node": 5}
    if method == "mux-hop":
        small["hidden"] = 16
    return Plan.make(method, "quick", overrides={**small, "epochs": 10, **changes}, device="cpu")


def test_an_epoch_is_estimated_as_long_as_real_steps_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_tried", lambda plan, graph: (0.5, 0.25))
    found = measured(RATES, plan(), GRAPH)
    assert epoch_seconds(plan(), GRAPH, found) == pytest.approx(0.25)
    cost = estimate(plan(), GRAPH, found)
    assert rounds_of_walks(plan()) == 15
    assert cost.prepare == pytest.approx(15 * 0.5)
    assert cost.seconds == pytest.approx(15 * 0.5 + 10 * 0.25 * SUSTAINED)


def test_what_is_timed_is_a_step_and_one_round_of_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    losses, walks = [], []
    loss = MuxHop.loss

    def slow_loss(self: MuxHop, graph: Graph) -> dict[str, Tensor]:
        losses.append(1)
        time.sleep(0.2 if len(losses) == 1 else 0.05)  # the first one warms up
        return loss(self, graph)

    def slow_walks(
        graph: Graph,
        *,
        epochs: int,
        walks_per_node: int,
        width: int,
        on_step: Callable[[int, int], None],
        **rest: object,
    ) -> Tensor:
        walks.append((epochs, walks_per_node))
        time.sleep(0.1)
        on_step(1, 1)
        time.sleep(0.2)  # what follows a round is not part of it
        return torch.ones(graph.num_nodes, width)

    monkeypatch.setattr(MuxHop, "loss", slow_loss)
    monkeypatch.setattr("muxgcl.affinity.estimate.skip_gram", slow_walks)
    walking, step = trial._tried(plan(), GRAPH)
    assert (len(losses), walks) == (STEPS, [(1, 1)])
    assert 0.05 < step < 0.2
    assert 0.1 <= walking < 0.3


def test_a_trial_of_a_committee_is_one_of_a_member(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_tried", lambda plan, graph: (0.5, 0.25))
    several = replace(plan(), members=3)
    found = estimate(several, GRAPH, measured(RATES, several, GRAPH)).seconds
    alone = estimate(plan(), GRAPH, measured(RATES, plan(), GRAPH)).seconds
    assert found == pytest.approx(3 * alone)


def test_nothing_is_tried_where_a_few_steps_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_tried", lambda plan, graph: pytest.fail("it was tried"))
    slow = RATES.slower(MOST_SECONDS / STEPS / epoch_seconds(plan(), GRAPH, RATES) * 1.01)
    assert measured(slow, plan(), GRAPH) is slow
    few_walks = replace(RATES, walks=120 / MOST_SECONDS)
    assert measured(few_walks, plan(), GRAPH) is few_walks


def test_a_training_that_fails_is_left_for_the_run_to_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nowhere(self: MuxHop, graph: Graph) -> dict[str, Tensor]:
        return {"a": self.projector.mix(torch.full((1, 16), torch.nan)).sum()}

    monkeypatch.setattr(MuxHop, "loss", nowhere)
    assert measured(RATES, plan(), GRAPH) is RATES


def test_a_trial_leaves_the_callers_randomness_alone() -> None:
    before = torch.get_rng_state()
    measured(RATES, plan(), GRAPH)
    assert torch.equal(torch.get_rng_state(), before)


def test_workers_divide_the_pairs_of_what_one_of_them_has_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trial, "_tried", lambda plan, graph: (0.0, 0.25))
    two = measured(replace(RATES, workers=2), plan(), GRAPH)
    assert epoch_seconds(plan(), GRAPH, replace(two, workers=1)) == pytest.approx(0.25)
    assert epoch_seconds(plan(), GRAPH, two) < 0.25


def test_a_trial_is_expected_to_take_what_one_worker_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_tried", lambda plan, graph: pytest.fail("it was tried"))
    slow = replace(RATES, pairs=RATES.pairs / 1e3)
    times = MOST_SECONDS / STEPS / epoch_seconds(plan(), GRAPH, slow) * 1.01
    four = replace(slow.slower(times), workers=4)
    assert STEPS * epoch_seconds(plan(), GRAPH, four) < 0.5 * MOST_SECONDS
    assert measured(four, plan(), GRAPH) is four


def test_an_epoch_of_a_vgae_is_part_of_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_tried", lambda plan, graph: pytest.fail("it was tried"))
    monkeypatch.setattr(trial, "autoencoder_seconds", lambda plan, graph, rates: MOST_SECONDS)
    assert measured(RATES, plan(affinity="vgae"), GRAPH) is RATES
