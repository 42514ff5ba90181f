"""The loop with a method of two numbers: what happens when, and what is told.

A GPU's branches are taken with a stand-in for the device; `tests/gpu` has the real one.
"""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from muxgcl.errors import UserError
from muxgcl.runs import loop
from muxgcl.runs.loop import Epoch, NonFiniteLoss, Trainer, check_capture, load_weights
from muxgcl.runs.settings import TrainConfig

CPU, GPU = torch.device("cpu"), torch.device("cuda")


class Toy(nn.Module):
    """Its loss is the square of one weight in one term, and of another in a second."""

    name, trainable = "toy", True

    def __init__(self, capturable: bool = True, milestones: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0]))
        self.capturable, self.milestones, self.static = capturable, milestones, False
        self.calls: list[Any] = []
        self.slots = [{"step": torch.zeros(()), "moment": torch.zeros(2)}]
        self.scale = 1.0

    def loss(self, graph: Any) -> dict[str, Tensor]:
        self.calls.append("loss")
        one, two = self.scale * self.weight.square()
        return {"one": one, "two": two}

    def optimizer(self, lr: float, weight_decay: float) -> "Toy":
        self.asked = (lr, weight_decay)
        return self

    def zero_grad(self) -> None:  # type: ignore[override]
        self.calls.append("zero")
        self.weight.grad = None

    def step(self) -> None:
        assert self.weight.grad is not None
        self.calls.append(("step", self.weight.grad.tolist()))
        self.slots[0]["step"] += 1

    def after_step(self) -> None:
        self.calls.append("after")

    def reach(self, milestone: int) -> None:
        self.calls.append(("reach", milestone))


def on(device: torch.device) -> Any:
    return SimpleNamespace(device=device)


def trainer_of(method: Toy, device: torch.device = CPU, epochs: int = 1, **how: Any) -> Trainer:
    return Trainer(method, on(device), TrainConfig(epochs=epochs, lr=0.5, weight_decay=0.25), **how)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The generator of a GPU that is not there: its state is the one entry."""
    state = [torch.arange(3, dtype=torch.uint8)]
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: state[0].clone())

    def take(given: Tensor, device: torch.device) -> None:
        state[0] = given

    monkeypatch.setattr(torch.cuda, "set_rng_state", take)
    return state


def test_an_epochs_loss_is_the_sum_of_its_terms() -> None:
    assert Epoch(1, {"a": 1.5, "b": -0.25}, 0.0).loss == 1.25


def test_a_step_clears_gradients_goes_down_and_lets_the_method_follow() -> None:
    method = Toy()
    trainer = trainer_of(method, epochs=2)
    assert method.asked == (0.5, 0.25)
    blocks = list(trainer.blocks())
    assert method.calls == ["loss", "zero", ("step", [2.0, 4.0]), "after"] * 2
    assert [[epoch.number for epoch in block] for block in blocks] == [[1], [2]]
    assert blocks[0][0].terms == {"one": 1.0, "two": 4.0}
    assert trainer.epoch == 2
    assert list(trainer.blocks()) == []


def test_what_several_workers_found_is_summed_before_the_step() -> None:
    method = Toy()
    trainer = trainer_of(method)

    def sum_up(values: Tensor) -> Tensor:
        assert not values.requires_grad
        method.calls.append("sum")
        return 3 * values

    trainer.sum_up = sum_up
    (block,) = trainer.blocks()
    assert block[0].terms == {"one": 3.0, "two": 12.0}
    assert method.calls == ["loss", "zero", "sum", ("step", [2.0, 4.0]), "after"]


@pytest.mark.parametrize(
    ("singly_from", "milestones", "sizes"),
    [
        (None, (), [25, 25, 10]),
        (60, (), [25, 25, 10]),
        (30, (), [25, 5, *[1] * 30]),
        (0, (), [1] * 60),
        (None, (10, 20), [10, 10, 25, 15]),
        (None, (30, 60, 90), [25, 5, 25, 5]),
        (12, (10,), [10, 2, *[1] * 48]),
    ],
)
def test_on_a_gpu_epochs_come_in_blocks_that_end_where_someone_looks(
    singly_from: int | None, milestones: tuple[int, ...], sizes: list[int]
) -> None:
    method = Toy(capturable=False, milestones=milestones)
    blocks = list(trainer_of(method, GPU, epochs=60).blocks(singly_from))
    assert [len(block) for block in blocks] == sizes
    assert [epoch.number for block in blocks for epoch in block] == list(range(1, 61))
    reached = [call[1] for call in method.calls if call[0] == "reach"]
    assert reached == [m for m in milestones if m <= 60]


def test_on_a_cpu_every_epoch_is_a_block() -> None:
    assert [len(b) for b in trainer_of(Toy(), epochs=3).blocks()] == [1, 1, 1]


def test_the_seconds_of_a_block_are_shared_by_its_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 15.0, 100.0, 101.0])
    monkeypatch.setattr(loop.time, "perf_counter", lambda: next(clock))
    first, second = trainer_of(Toy(capturable=False), GPU, epochs=30).blocks()
    assert {epoch.seconds for epoch in first} == {0.2}  # 5 seconds, 25 epochs
    assert {epoch.seconds for epoch in second} == {0.2}  # 1 second, 5 epochs


@pytest.mark.parametrize("scale", [float("inf"), float("-inf"), float("nan")])
def test_a_loss_that_is_not_finite_is_named_by_epoch_and_term(scale: float) -> None:
    method = Toy(capturable=False)
    blocks = trainer_of(method, epochs=5).blocks()
    next(blocks), next(blocks)
    method.scale = scale
    with pytest.raises(NonFiniteLoss, match=rf"at epoch 3 \(one {scale:g}, two {scale:g}\)"):
        next(blocks)


def test_the_first_bad_epoch_of_a_block_is_the_one_that_is_named() -> None:
    method = Toy(capturable=False)
    follow = method.after_step
    counts = iter(range(1, 99))

    def grow() -> None:
        follow()
        method.scale = float("inf") if next(counts) >= 4 else 1.0

    method.after_step = grow  # type: ignore[method-assign]
    with pytest.raises(NonFiniteLoss, match="at epoch 5 "):
        next(trainer_of(method, GPU, epochs=20).blocks())


@pytest.mark.parametrize("capture", ["auto", "on", "off"])
@pytest.mark.parametrize("capturable", [True, False])
@pytest.mark.parametrize("device", [CPU, GPU])
def test_a_step_is_captured_on_a_gpu_where_the_method_can_be_and_nobody_objects(
    capture: str, capturable: bool, device: torch.device
) -> None:
    method, possible = Toy(capturable), device == GPU and capturable
    if capture == "on" and not possible:
        words = "toy cannot be captured" if device == GPU else "there is no GPU in use"
        with pytest.raises(UserError, match=f"capture is on, but {words}"):
            trainer_of(method, device, capture=capture)
        return
    trainer = trainer_of(method, device, capture=capture)
    check_capture(capture, method, device)
    assert trainer.captures == (possible and capture != "off")
    assert method.static == possible  # captured or not, the same numbers


def test_a_captured_step_is_played_back_and_its_warm_up_undone(
    cuda: list[Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    method = Toy(milestones=(3,))
    events: list[Any] = []

    def warm_up(work: Any, device: torch.device, times: int) -> None:
        events.append(("warm", times))
        for _ in range(times):
            work()
        cuda[0] = cuda[0] + 7
        torch.rand(5)

    def recorded(work: Any, device: torch.device) -> Any:
        events.append("record")
        assert float(method.slots[0]["step"]) == len(played)  # undone
        work()
        method.slots[0]["step"] -= 1

        def replay() -> None:
            played.append(1)
            work()

        return replay

    played: list[int] = []
    monkeypatch.setattr(loop, "run_on_side_stream", warm_up)
    monkeypatch.setattr(loop, "recorded", recorded)
    before = torch.get_rng_state()
    blocks = [len(block) for block in trainer_of(method, GPU, epochs=5).blocks()]
    assert blocks == [3, 2]
    assert events == [("warm", loop.WARM_UP), "record"] * 2  # anew past the milestone
    assert len(played) == 5
    assert float(method.slots[0]["step"]) == 5
    assert cuda[0].tolist() == [0, 1, 2]
    assert torch.equal(torch.get_rng_state(), before)


def test_a_state_is_weights_moments_and_generators(cuda: list[Tensor]) -> None:
    for device, more in ((CPU, set()), (GPU, {"random/cuda"})):
        state = trainer_of(Toy(), device).state()
        names = {"method/weight", "optimizer/0/step", "optimizer/0/moment", "random/cpu"}
        assert state.keys() == names | more
    assert torch.equal(state["random/cpu"], torch.get_rng_state())


def test_loading_goes_back_in_place_and_moments_that_are_missing_are_zero() -> None:
    trainer = trainer_of(Toy(), epochs=9)
    next(trainer.blocks())
    slots = trainer.optimizer.slots[0]
    weight, moment = trainer.method.weight, slots["moment"]
    moment.fill_(5.0)
    state = {
        "method/weight": torch.tensor([7.0, 8.0]),
        "optimizer/0/step": torch.tensor(4.0),
        "random/cpu": torch.get_rng_state(),
    }
    drawn = torch.rand(2)
    trainer.load(state)
    assert trainer.method.weight is weight
    assert weight.tolist() == [7.0, 8.0]
    assert float(slots["step"]) == 4.0
    assert slots["moment"] is moment
    assert moment.tolist() == [0.0, 0.0]
    assert torch.equal(torch.rand(2), drawn)
    assert trainer.epoch == 1
    trainer.load(state, 6)
    assert trainer.epoch == 6


def test_a_gpus_generator_is_set_where_there_is_a_gpu_and_a_state(cuda: list[Tensor]) -> None:
    cpu, other = torch.get_rng_state(), torch.tensor([9, 9, 9], dtype=torch.uint8)
    loop.set_random_state({"random/cpu": cpu, "random/cuda": other}, CPU)
    assert cuda[0].tolist() == [0, 1, 2]
    loop.set_random_state({"random/cpu": cpu}, GPU)
    assert cuda[0].tolist() == [0, 1, 2]
    loop.set_random_state({"random/cpu": cpu, "random/cuda": other}, GPU)
    assert cuda[0].tolist() == [9, 9, 9]


def test_weights_that_do_not_fit_are_one_short_line() -> None:
    with pytest.raises(UserError, match="does not fit this toy: ") as error:
        load_weights(Toy(), {f"method/{'x' * 300}": torch.ones(1)})  # type: ignore[arg-type]
    assert "\n" not in str(error.value)
    assert len(str(error.value)) == len("the checkpoint does not fit this toy: ") + 160
