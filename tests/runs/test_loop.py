"""The loop: seeds, resuming, stopping, and what may not happen."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.methods import METHODS, Context, Method
from muxgcl.runs.fit import Stopped, fit
from muxgcl.runs.folder import Run
from muxgcl.runs.loop import NonFiniteLoss, Trainer
from muxgcl.runs.plan import Plan
from muxgcl.runs.settings import TrainConfig
from muxgcl.seeding import seeded

SMALL = {"width": 8, "projection": 8}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph.from_data(planted(nodes=60, seed=1))


def plan(method: str = "grace", epochs: int = 6, **settings: object) -> Plan:
    rest = {key: settings.pop(key) for key in ("seed", "device", "capture") if key in settings}
    values = {**SMALL, "epochs": epochs, **settings}
    return Plan.make(method, "quick", overrides=values, **rest)


def test_one_seed_makes_everything_the_same(graph: Graph) -> None:
    one, two, other = (
        fit(plan("mux-gcl", affinity_epochs=1, seed=s), graph).embed() for s in (3, 3, 4)
    )
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_products_are_fast_in_a_step_and_the_callers_own_between_blocks(graph: Graph) -> None:
    """What an observer embeds after an epoch is what the end embeds."""
    assert not fast()
    inside, between = [], []
    for tf32 in (True, False):
        with seeded(0):
            method = METHODS["grace"](graph, METHODS["grace"].Config(width=8), Context())
            loss = method.loss
            method.loss = lambda g, loss=loss: (inside.append(fast()), loss(g))[1]
            trainer = Trainer(method, graph, TrainConfig(epochs=2), tf32=tf32)
            between += [fast() for _ in trainer.blocks()]
    assert inside == [True, True, False, False]
    assert between == [False] * 4
    blocks = Trainer(method, graph, TrainConfig(epochs=2)).blocks()
    next(blocks)  # and never again
    assert not fast()


def fast() -> bool:
    return torch.backends.cuda.matmul.allow_tf32


def test_a_method_without_a_loss_cannot_be_made() -> None:
    class Lossless(Method):
        name = "lossless"

    with pytest.raises(TypeError, match="loss"):
        Lossless()


def test_the_callers_randomness_is_left_alone(graph: Graph) -> None:
    torch.manual_seed(5)
    want = torch.rand(3)
    torch.manual_seed(5)
    fit(plan(), graph)
    assert torch.equal(torch.rand(3), want)


def test_grace_is_mux_gcl_with_the_last_scale_alone_bit_for_bit(graph: Graph) -> None:
    settings = {"scale_weights": (0, 0, 1), "affinity": "none"}
    shared = {
        "drop_edges": (0.2, 0.4),
        "mask_features": (0.3, 0.4),
        "temperature": 0.4,
        "lr": 1e-3,
        "activation": "relu",
        "projection_out": 8,
    }
    grace = fit(plan("grace", **shared), graph)
    mux = fit(plan("mux-gcl", **settings, **shared), graph)
    assert torch.equal(grace.embed(), mux.embed())
    assert grace.loss == mux.loss


def test_training_lowers_the_loss(graph: Graph) -> None:
    seen = []
    fit(plan("mux-gcl", epochs=40, lr=5e-3, affinity_epochs=1), graph, on_block=seen.extend)
    losses = [epoch.loss for epoch in seen]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    assert set(seen[0].terms) == {"scale 0", "scale 1", "scale 2"}


def test_a_run_resumed_in_the_middle_ends_as_if_it_had_not_stopped(
    graph: Graph, tmp_path: Path
) -> None:
    for method in ("grace", "mux-gcl"):
        settings = {"affinity_epochs": 1} if method == "mux-gcl" else {}
        want = fit(plan(method, **settings), graph).embed()
        run = Run(tmp_path / method)
        run.path.mkdir()

        def stop_at_three(block: list) -> None:
            if block[-1].number == 3:
                os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C does

        with pytest.raises(Stopped, match="after epoch 3 of 6"):
            fit(plan(method, **settings), graph, run=run, on_block=stop_at_three)
        got = fit(plan(method, **settings), graph, run=run, resume=True)
        assert torch.equal(got.embed(), want)
        assert [line["epoch"] for line in run.metrics()] == [1, 2, 3, 4, 5, 6]


def test_a_loss_that_is_no_number_stops_and_keeps_the_last_good_checkpoint(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muxgcl.runs.checkpoint.CHECKPOINT_SECONDS", -1.0)
    run = Run(tmp_path)

    def poison(block: list) -> None:
        if block[-1].number == 3:
            with torch.no_grad():
                trainers[0].method.encoder.weights[0].fill_(torch.nan)

    trainers: list[Trainer] = []
    original = Trainer.__init__

    def remember(self: Trainer, *args: object, **rest: object) -> None:
        original(self, *args, **rest)
        trainers.append(self)

    monkeypatch.setattr(Trainer, "__init__", remember)
    with pytest.raises(NonFiniteLoss, match="not a finite number at epoch 4"):
        fit(plan(), graph, run=run, on_block=poison)
    tensors, facts = run.checkpoint()
    assert facts["epoch"] == 3
    assert all(torch.isfinite(t).all() for t in tensors.values() if t.is_floating_point())


def test_a_state_loaded_into_a_fresh_trainer_goes_on_the_same(graph: Graph) -> None:
    def trainer() -> Trainer:
        cfg = TrainConfig(epochs=4, lr=1e-2)
        kind = METHODS["grace"]
        return Trainer(kind(graph, kind.Config(**SMALL), Context()), graph, cfg)

    with seeded(0):
        one = trainer()
        blocks = one.blocks()
        next(blocks), next(blocks)
        state = {name: tensor.clone() for name, tensor in one.state().items()}
        want = [next(blocks)[0].loss, next(blocks)[0].loss]
    with seeded(99):
        two = trainer()
        two.load(state, 2)
        assert [block[0].loss for block in two.blocks()] == want


def test_epochs_are_observed_at_the_end_only(graph: Graph) -> None:
    seen: dict[int, torch.Tensor] = {}
    fitted = fit(plan(), graph, observe=seen.__setitem__, observe_last=2)
    assert sorted(seen) == [5, 6]
    assert_close(seen[6], fitted.embed())


def test_a_checkpoint_of_another_shape_is_one_clear_line(graph: Graph, tmp_path: Path) -> None:
    run = Run(tmp_path)
    fit(plan(), graph, run=run)
    with pytest.raises(UserError, match="does not fit this grace") as error:
        fit(plan(width=16, epochs=9), graph, run=run, resume=True)
    assert "\n" not in str(error.value)


def test_capture_needs_a_gpu(graph: Graph) -> None:
    with pytest.raises(UserError, match="no GPU"):
        fit(plan(device="cpu", capture="on"), graph)


KILLED = """
import sys
from pathlib import Path
from muxgcl.runs import checkpoint
from muxgcl.io import planted
from muxgcl.runs.fit import fit
from muxgcl.runs.plan import Plan
from muxgcl.graph import Graph
from muxgcl.runs.folder import Run
import torch, time
torch.set_num_threads(1)
checkpoint.CHECKPOINT_SECONDS = 0.05
graph = Graph.from_data(planted(nodes=60, seed=1))
plan = Plan.make("grace", "quick", overrides={"width": 8, "projection": 8, "epochs": 60})
run = Run(Path(sys.argv[1]))
run.path.mkdir(exist_ok=True)
fit(plan, graph, run=run, resume=True, on_block=lambda block: time.sleep(0.01))
"""


def test_a_killed_run_resumes_to_the_same_embeddings(graph: Graph, tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(run.path)])
    deadline = time.monotonic() + 120
    while not run.checkpoint_file.is_file() and time.monotonic() < deadline:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    _, facts = run.checkpoint()
    assert 0 < facts["epoch"] < 60
    whole = plan(epochs=60)
    got = fit(whole, graph, run=run, resume=True).embed()
    assert torch.equal(got, fit(whole, graph).embed())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_twenty_runs_killed_at_random_moments_resume_to_the_same_embeddings(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muxgcl.runs.checkpoint.CHECKPOINT_SECONDS", 0.0)  # one every epoch
    whole = plan(epochs=25)
    began = time.monotonic()
    want = fit(whole, graph).embed()
    length = time.monotonic() - began
    moments = np.random.default_rng(0).uniform(0, 3 * length, 20)  # writing takes its time too
    cut_short = 0
    for number, moment in enumerate(moments):
        run = Run(tmp_path / str(number))
        run.path.mkdir()
        child = os.fork()
        if child == 0:  # the child trains until it is killed; nothing of pytest runs in it
            try:
                fit(whole, graph, run=run)
            finally:
                os._exit(0)
        time.sleep(moment)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        cut_short += not (run.checkpoint_file.is_file() and run.checkpoint()[1]["epoch"] == 25)
        got = fit(whole, graph, run=run, resume=True)
        assert torch.equal(got.embed(), want)
        assert [line["epoch"] for line in run.metrics()] == list(range(1, 26))
    assert cut_short >= 5  # the test has met what it is about
