"""One run from plan to trained method: what is refused, kept, told and gone on from."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.kernels import Sampling
from muxgcl.kernels.ring import Workers
from muxgcl.methods import METHODS, Context
from muxgcl.runs import fit as fitting
from muxgcl.runs.checkpoint import restore
from muxgcl.runs.embedding import embed
from muxgcl.runs.fit import Stopped, fit, make_ready, train
from muxgcl.runs.folder import Run
from muxgcl.runs.loop import Epoch, Trainer
from muxgcl.runs.plan import Plan, build
from muxgcl.seeding import seeded


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph.from_data(planted(nodes=30, features=10))


def plan_of(method: str = "grace", epochs: int = 4, **how: Any) -> Plan:
    settings = {"width": 4, "projection": 4, "epochs": epochs} if epochs else {}
    return Plan.make(method, "quick", overrides=settings, **{"device": "cpu", **how})


def test_a_run_that_was_finished_is_not_trained_again_and_says_what_it_took(
    graph: Graph, tmp_path: Path
) -> None:
    run, plan = Run(tmp_path), plan_of(epochs=20)
    before = fit(plan, graph, run=run)
    assert before.loss == run.metrics()[-1]["loss"]
    lines = [{**line, "ms": 1000.0 * line["epoch"]} for line in run.metrics()]
    run.metrics_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    saved = run.checkpoint_file.stat().st_mtime_ns
    blocks: list[Any] = []
    again = fit(plan, graph, run=run, resume=True, on_block=blocks.append)
    assert blocks == []
    assert again.loss == before.loss
    assert again.epoch_ms == pytest.approx(1000 * 11.5)  # the median without the first tenth
    assert 210 < again.seconds < 300  # with the 210 that the lines tell of
    assert torch.equal(again.embed(), before.embed())
    assert run.checkpoint_file.stat().st_mtime_ns == saved


def test_lines_without_a_time_count_for_none(graph: Graph, tmp_path: Path) -> None:
    run, plan = Run(tmp_path), plan_of(epochs=3)
    fit(plan, graph, run=run)
    lines = [{"epoch": line["epoch"], "loss": line["loss"]} for line in run.metrics()]
    run.metrics_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert fit(plan, graph, run=run, resume=True).epoch_ms == 0.0


def test_training_draws_on_from_where_building_left_off(graph: Graph) -> None:
    plan = plan_of(seed=3)
    with seeded(3):
        method = build(plan, graph)
        method.prepare(graph)
        list(Trainer(method, graph, plan.train).blocks())
    assert torch.equal(fit(plan, graph).embed(), embed(method, graph))


def test_train_begins_anew_and_observes_nothing_unless_asked(graph: Graph, tmp_path: Path) -> None:
    run, seen = Run(tmp_path), []
    for _ in range(2):
        blocks: list[Any] = []
        look = lambda epoch, z: seen.append(epoch)  # noqa: E731
        train(make_ready(plan_of(epochs=2), graph), run=run, on_block=blocks.append, observe=look)
        assert len(blocks) == 2
    assert seen == []


def test_a_run_that_is_not_resumed_begins_anew(graph: Graph, tmp_path: Path) -> None:
    run, blocks = Run(tmp_path), []
    fit(plan_of(epochs=3), graph, run=run)
    fit(plan_of(epochs=3), graph, run=run, on_block=blocks.append)
    assert len(blocks) == 3
    assert [line["epoch"] for line in run.metrics()] == [1, 2, 3]


def test_a_line_of_metrics_says_loss_terms_and_time(graph: Graph, tmp_path: Path) -> None:
    seen: list[Epoch] = []
    fit(plan_of(epochs=2), graph, run=Run(tmp_path), on_block=seen.extend)
    assert Run(tmp_path).metrics() == [
        {"epoch": e.number, "loss": e.loss, "terms": e.terms, "ms": 1000 * e.seconds} for e in seen
    ]


def test_what_needs_no_training_leaves_a_checkpoint_and_took_nothing(
    graph: Graph, tmp_path: Path
) -> None:
    plan = plan_of("random-gcn", epochs=0)
    found = fit(plan, graph, run=Run(tmp_path))
    assert (found.loss, found.epoch_ms, found.peak_mib, found.seconds) == (None, 0.0, 0.0, 0.0)
    facts = Run(tmp_path).checkpoint()[1]
    assert facts == {"epoch": 0, "method": "random-gcn", "seed": plan.seed}
    again = restore(Run(tmp_path), plan, graph)
    assert torch.equal(embed(again, graph), found.embed())
    assert fit(plan, graph).loss is None


def test_every_epoch_is_observed_where_more_are_asked_for_than_there_are(graph: Graph) -> None:
    seen: list[int] = []
    fit(plan_of(epochs=3), graph, observe=lambda e, z: seen.append(e), observe_last=100)
    assert seen == [1, 2, 3]
    fit(plan_of(epochs=3), graph, observe=lambda e, z: seen.append(e))
    assert seen == [1, 2, 3]  # none of the last epochs


def test_an_epoch_is_observed_before_it_counts_as_done(graph: Graph, tmp_path: Path) -> None:
    seen: list[int] = []
    run = Run(tmp_path)
    fit(
        plan_of(epochs=2),
        graph,
        run=run,
        observe=lambda e, z: seen.append(len(run.metrics())),
        observe_last=2,
    )
    assert seen == [0, 1]


def test_a_checkpoint_is_of_its_method_and_of_no_later_epoch(graph: Graph, tmp_path: Path) -> None:
    run = Run(tmp_path)
    fit(plan_of(epochs=3), graph, run=run)
    restore(run, plan_of(epochs=3), graph)
    with pytest.raises(UserError, match="epoch must be at most 2, got 3"):
        restore(run, plan_of(epochs=2), graph)
    with pytest.raises(UserError, match="is of grace, not dgi"):
        restore(run, Plan.make("dgi", "quick", device="cpu"), graph)
    tensors, facts = run.checkpoint()
    name = next(name for name in tensors if name.startswith("method/"))
    tensors[name].view(-1)[0] = float("inf")
    run.save_checkpoint(tensors, **facts)
    with pytest.raises(UserError, match=f"{name} must be finite, got NaN or infinity"):
        restore(run, plan_of(epochs=3), graph)


def test_a_method_is_restored_from_its_seed_whatever_the_callers(
    graph: Graph, tmp_path: Path
) -> None:
    run, plan = Run(tmp_path), plan_of(epochs=2, seed=3)
    want = fit(plan, graph, run=run).embed()
    torch.manual_seed(77)
    after = torch.rand(2)
    torch.manual_seed(77)
    assert torch.equal(embed(restore(run, plan, graph), graph), want)
    assert torch.equal(torch.rand(2), after)


def test_every_tensor_of_a_checkpoint_must_be_there_and_fit(graph: Graph, tmp_path: Path) -> None:
    run, plan = Run(tmp_path), plan_of(epochs=3)
    fit(plan, graph, run=run)
    tensors, facts = run.checkpoint()
    name = "optimizer/0/step"
    for change, came in (
        (None, "nothing"),
        (tensors[name].double(), r"torch.float64 \[\]"),
        (tensors[name][None], r"torch.float32 \[1\]"),
    ):
        rest = {key: tensor for key, tensor in tensors.items() if key != name}
        run.save_checkpoint(rest if change is None else {**rest, name: change}, **facts)
        words = rf"does not fit this grace: {name} must be torch.float32 \[\], got {came}"
        with pytest.raises(UserError, match=words):
            fit(plan, graph, run=run, resume=True)
    run.save_checkpoint({**tensors, "random/cpu": torch.zeros_like(tensors["random/cpu"])}, **facts)
    with pytest.raises(UserError, match="is damaged: "):
        fit(plan, graph, run=run, resume=True)


def test_what_is_wrong_with_a_plan_is_said_before_any_work(graph: Graph) -> None:
    with pytest.raises(UserError, match="backend fused needs a CUDA device, got cpu"):
        make_ready(plan_of(backend="fused"), graph)
    with pytest.raises(UserError, match="there is no GPU in use"):
        make_ready(plan_of(capture="on"), graph)


def test_sizes_are_looked_at_before_a_method_is_built(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(plan: Plan, graph: Graph) -> None:
        raise UserError("too large")

    monkeypatch.setattr(fitting, "check_plan", too_large)
    monkeypatch.setattr(fitting, "build", None)
    with pytest.raises(UserError, match="too large"):
        make_ready(plan_of(), graph)


def test_fit_hands_everything_on(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def ready(plan: Plan, graph: Graph, **how: Any) -> str:
        asked.update(how)
        return "ready"

    def trained(ready: str, **how: Any) -> Any:
        asked.update(how, ready=ready)

    monkeypatch.setattr(fitting, "make_ready", ready)
    monkeypatch.setattr(fitting, "train", trained)
    first = {"cache": Path("a"), "on_prepare": print, "workers": Workers(0, 1)}
    then = {"run": Run(Path("b")), "resume": True, "on_block": print, "observe": print}
    fit(plan_of(), graph, **first, **then, observe_last=3)
    assert asked == {**first, **then, "observe_last": 3, "ready": "ready"}


def test_a_ready_method_is_that_of_its_seed_and_leaves_the_callers_randomness(graph: Graph) -> None:
    torch.manual_seed(5)
    want = torch.rand(2)
    torch.manual_seed(5)
    one, two, other = (make_ready(plan_of(seed=seed), graph) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(2), want)
    weights = [next(iter(ready.method.parameters())) for ready in (one, two, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert (one.backend, one.workers) == ("chunked", None)
    torch.manual_seed(99)
    assert torch.equal(train(one).embed(), train(two).embed())


def test_a_cache_and_an_ear_reach_the_method(graph: Graph, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    settings = {"affinity_epochs": 1, "affinity_width": 4, "walks_per_node": 2, "epochs": 1}
    plan = Plan.make("mux-gcl", "quick", overrides={**settings, "width": 4}, device="cpu")
    fit(plan, graph, cache=tmp_path, on_prepare=lambda *step: told.append(step))
    assert told == [(1, 2), (2, 2)]
    assert len([*tmp_path.glob("deepwalk-*.safetensors")]) == 1


def test_sampling_reaches_the_method_and_workers_do_not_capture(graph: Graph) -> None:
    ready = make_ready(plan_of(anchors=4, keys=6), graph)
    assert ready.method.context.sampling == Sampling(4, 6)  # type: ignore[union-attr]


@pytest.mark.parametrize(("backend", "tf32"), [("chunked", True), ("chunked/fp32", False)])
def test_full_precision_is_had_by_asking(
    backend: str, tf32: bool, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []
    real = Trainer.__init__

    def init(self: Trainer, *given: Any, **how: Any) -> None:
        asked.append(how)
        real(self, *given, **how)

    monkeypatch.setattr(Trainer, "__init__", init)
    ready = make_ready(plan_of(epochs=1, capture="off"), graph)
    train(replace(ready, plan=replace(ready.plan, backend=backend)))
    assert asked == [{"tf32": tf32, "capture": "off", "rounds": False}]


# several workers --------------------------------------------------------------------------------


def test_workers_are_given_the_sample_and_a_device_and_the_plan_keeps_its_capture(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(fitting.divided, "check", lambda *given: asked.append(given))
    monkeypatch.setattr(fitting.distributed, "place", lambda device: "cpu")
    waited: list[Any] = []

    def all_succeed(workers: Any) -> Any:
        waited.append(workers)
        return nullcontext()

    monkeypatch.setattr(fitting.distributed, "all_succeed", all_succeed)
    built: list[Any] = []

    def build(plan: Plan, graph: Graph, cache: Any, told: Any, workers: Any) -> Any:
        built.append(workers)
        kind = METHODS["grace"]
        return kind(graph, kind.Config(width=4), Context())

    monkeypatch.setattr(fitting, "build", build)
    plan, workers = plan_of(anchors=4, keys=6, device="auto"), Workers(0, 2)
    ready = make_ready(plan, graph, workers=workers)
    assert (ready.plan.device, ready.plan.capture) == ("cpu", plan.capture)
    assert ready.workers is built[0]
    assert ready.workers is not None
    assert ready.workers.sampling == Sampling(4, 6)
    assert asked[0][0] is ready.workers
    assert asked[0][1] is plan
    assert waited
    assert all(found is ready.workers for found in waited)


def test_workers_begin_alike_and_agree_after_every_epoch(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    answers = [0, 15]
    workers = Workers(0, 1)
    together = SimpleNamespace(
        all_succeed=lambda w: nullcontext(),
        largest=lambda w, number: (calls.append(("largest", number)), answers.pop(0))[1],
    )
    shared = SimpleNamespace(
        prepare=lambda w, method, graph: (calls.append("prepare"), method.prepare(graph)),
        start_alike=lambda w, trainer: calls.append(("alike", trainer.epoch)),
        sum_up=lambda w, method, values: (calls.append("sum"), 2 * values)[1],
        check_weights=lambda w, trainer: calls.append(("check", trainer.epoch)),
    )
    monkeypatch.setattr(fitting, "distributed", together)
    monkeypatch.setattr(fitting, "divided", shared)
    ready = replace(make_ready(plan_of(epochs=4), graph), workers=workers)
    alone: list[Epoch] = []
    train(make_ready(plan_of(epochs=1), graph), on_block=alone.extend)
    seen: list[Epoch] = []
    with pytest.raises(Stopped, match="after epoch 2 of 4") as stop:
        train(ready, on_block=seen.extend)
    assert stop.value.number == 15  # that another worker was asked to
    once = ["sum", ("largest", 0)]
    assert calls == ["prepare", ("alike", 0), *once, ("check", 1), *once, ("check", 2)]
    assert seen[0].loss == pytest.approx(2 * alone[0].loss)
