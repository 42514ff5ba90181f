"""The loop: knows no method. On a GPU the whole step is captured once and replayed.

Nothing waits for the device inside an epoch: losses are read back in blocks.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

import torch
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.kernels.capture import WARM_UP, recorded, run_on_side_stream
from muxgcl.kernels.rounded import rounded
from muxgcl.methods import Method, total
from muxgcl.runs.settings import TrainConfig

Capture = Literal["auto", "on", "off"]
GPU_BLOCK = 25  # epochs between two looks at the device


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one epoch came to."""

    number: int  # from 1
    terms: dict[str, float]
    seconds: float

    @property
    def loss(self) -> float:
        """The objective: the sum of its terms."""
        return sum(self.terms.values())

    def line(self) -> dict[str, Any]:
        """For metrics.jsonl."""
        ms = 1000 * self.seconds
        return {"epoch": self.number, "loss": self.loss, "terms": self.terms, "ms": ms}


def settled_ms(seconds: Sequence[float]) -> float:
    """The median time of an epoch; the first tenth pays for warming up and does not count."""
    return 1000 * median(seconds[len(seconds) // 10 :] or [0.0])


@contextmanager
def fast_products(tf32: bool = True) -> Iterator[None]:
    """Let a GPU's tensor cores multiply 32-bit tables, rounded to TF32; sums stay in 32 bits."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


class Trainer:
    """A method, its optimizer and how far they are."""

    def __init__(
        self,
        method: Method,
        graph: Graph,
        cfg: TrainConfig,
        *,
        capture: Capture = "auto",
        tf32: bool = True,
        rounds: bool = False,
        block: int = GPU_BLOCK,
    ) -> None:
        self.method, self.graph, self.cfg = method, graph, cfg
        self.tf32, self.rounds = tf32, rounds
        on_gpu = graph.device.type == "cuda"
        self.block = block if on_gpu else 1  # epochs
        self.epoch = 0
        self.optimizer = method.optimizer(cfg.lr, cfg.weight_decay)
        check_capture(capture, method, graph.device)
        self.captures = capture != "off" and on_gpu and method.capturable
        method.static = on_gpu and method.capturable  # captured or not: the same numbers
        # adds up what several workers found: gradients in place, and the terms of the loss
        self.sum_up: Callable[[Tensor], Tensor] | None = None
        self._replay: Callable[[], None] | None = None
        self._names: list[str] = []
        self._terms = torch.empty(0)

    def blocks(self, singly_from: int | None = None) -> Iterator[list[Epoch]]:
        """Train to the end; each block of epochs is handed out once its losses are known.

        Past epoch `singly_from` every epoch is a block: someone wants to look at each.
        """
        while self.epoch < self.cfg.epochs:
            left = (singly_from if singly_from is not None else self.cfg.epochs) - self.epoch
            count = min(self.block, left) if left > 0 else 1
            ahead = [m - self.epoch for m in self.method.milestones if m > self.epoch]
            count = min(count, *ahead) if ahead else count
            # not while the caller has the block in hand
            with fast_products(self.tf32), rounded(self.rounds):
                if self.captures and self._replay is None:
                    self._capture()
                begin = time.perf_counter()
                history = [self._advance() for _ in range(count)]
                values = torch.stack(history).tolist()  # the one wait for the device
            seconds = (time.perf_counter() - begin) / count
            first = self.epoch - count + 1
            block = [
                Epoch(first + i, dict(zip(self._names, row, strict=True)), seconds)
                for i, row in enumerate(values)
            ]
            if bad := [epoch for epoch in block if not abs(epoch.loss) < float("inf")]:
                raise NonFiniteLoss(bad[0])
            if self.epoch in self.method.milestones:
                self.method.reach(self.epoch)
                self._replay = None
            yield block

    def _advance(self) -> Tensor:
        if self._replay is not None:
            self._replay()
        else:
            self._step()
        self.epoch += 1
        return self._terms.clone()

    def _step(self) -> None:
        terms = self.method.loss(self.graph)
        self.optimizer.zero_grad()
        total(terms).backward()
        values = torch.stack([term.detach() for term in terms.values()])
        if self.sum_up is not None:
            values = self.sum_up(values)
        self.optimizer.step()
        self.method.after_step()
        self._names = list(terms)
        self._terms = values

    def _capture(self) -> None:
        """Record one step; the warm-up's traces on weights, moments and randomness are undone."""
        before = {name: tensor.clone() for name, tensor in self.state().items()}
        run_on_side_stream(self._step, self.graph.device, times=WARM_UP)
        self.load(before)
        self._replay = recorded(self._step, self.graph.device)

    def state(self) -> dict[str, Tensor]:
        """Everything that the rest of the run depends on, as tensors."""
        tensors = method_state(self.method)
        for i, slots in enumerate(self.optimizer.slots):
            tensors |= {f"optimizer/{i}/{name}": t for name, t in slots.items()}
        return tensors | random_state(self.graph.device)

    def load(self, tensors: Mapping[str, Tensor], epoch: int | None = None) -> None:
        """Go back to a state, in place: what was captured stays valid."""
        load_weights(self.method, tensors)
        for i, slots in enumerate(self.optimizer.slots):
            for name, tensor in slots.items():
                before = tensors.get(f"optimizer/{i}/{name}")
                tensor.zero_() if before is None else tensor.copy_(before)
        set_random_state(tensors, self.graph.device)
        if epoch is not None:
            self.epoch = epoch


def check_capture(capture: Capture, method: Method, device: torch.device) -> None:
    """Refuse a capture that was asked for and cannot be had."""
    on_gpu = device.type == "cuda"
    if capture == "on" and not (on_gpu and method.capturable):
        reason = f"{method.name} cannot be captured" if on_gpu else "there is no GPU in use"
        raise UserError(f"capture is on, but {reason}")


def random_state(device: torch.device) -> dict[str, Tensor]:
    """The state of the generators that work on this device draws from."""
    tensors = {"random/cpu": torch.get_rng_state()}
    if device.type == "cuda":
        tensors["random/cuda"] = torch.cuda.get_rng_state(device)
    return tensors


def set_random_state(tensors: Mapping[str, Tensor], device: torch.device) -> None:
    """Go back to what `random_state` returned."""
    torch.set_rng_state(tensors["random/cpu"])
    if "random/cuda" in tensors and device.type == "cuda":
        torch.cuda.set_rng_state(tensors["random/cuda"].cpu(), device)


def method_state(method: Method) -> dict[str, Tensor]:
    """The method's part of a checkpoint."""
    return {f"method/{name}": tensor for name, tensor in method.state_dict().items()}


def load_weights(method: Method, tensors: Mapping[str, Tensor]) -> None:
    """Take the method's part of a checkpoint."""
    mine = {k.removeprefix("method/"): t for k, t in tensors.items() if k.startswith("method/")}
    try:
        method.load_state_dict(mine)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"the checkpoint does not fit this {method.name}: {reason}") from None


class NonFiniteLoss(UserError):
    """The loss is not finite; training stops and the last good checkpoint stays."""

    def __init__(self, epoch: Epoch) -> None:
        super().__init__(
            f"the loss is not a finite number at epoch {epoch.number} "
            f"({', '.join(f'{k} {v:g}' for k, v in epoch.terms.items())}); "
            "a smaller lr or a larger temperature usually helps"
        )
