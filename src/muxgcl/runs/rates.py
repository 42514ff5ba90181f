"""How fast this machine is: small pieces of the very code that trains, timed in about a second."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch.nn.functional import normalize

from muxgcl.affinity.skipgram import skip_gram
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.kernels import PairWeight, contrast
from muxgcl.kernels.rounded import product, rounded
from muxgcl.runs.environment import pick_device
from muxgcl.runs.heap import reused_memory
from muxgcl.runs.plan import Plan
from muxgcl.runs.work import COUNTED, Shape
from muxgcl.seeding import seeded
from muxgcl.sparse import SparseMatrix
from muxgcl.tensors import Tensors

PROBE = 1024  # nodes in the pieces that are timed
WALKERS = 8192  # nodes of the graph that walks are timed on
ON_GPU = 16  # times as much of both there, where small pieces would time the launch of a kernel


@dataclass(frozen=True, slots=True)
class Rates:
    """The speed of this machine: each is a count per second."""

    flops: float
    gathers: float
    touches: float
    pairs: float
    walks: float  # of one node, trained on
    overhead: float  # seconds an epoch that depend on nothing
    rounded: float = 0.0  # flops where a CPU rounds the factors of products, if it does
    rounded_pairs: float = 0.0  # pairs in the same place
    workers: int = 1  # processes of this speed that divide the pairs among them

    def slower(self, times: float) -> "Rates":
        """The rates at which every epoch takes so many times as long."""
        names = ("flops", "gathers", "touches", "pairs", "rounded", "rounded_pairs")
        divided = {name: getattr(self, name) / times for name in names}
        return replace(self, **divided, overhead=self.overhead * times)


SLOW = Rates(2e9, 2e7, 2e7, 5e6, 2e2, 0.01)  # of a machine that is slower than any in use


def calibrate(plan: Plan, graph: Graph) -> Rates:
    """Time small pieces of this plan's training on its device."""
    device = pick_device(plan.device)
    shape = Shape.of(counted(plan), graph)
    clock, probe = _Clock(device), PROBE * grain(device)
    with seeded(0, device), reused_memory(device):
        # tables beyond any cache, as those of training are
        a = torch.rand(8 * probe, 512, device=device, requires_grad=True)
        b = torch.rand(512, 512, device=device, requires_grad=True)
        both = clock(lambda: torch.autograd.grad((a @ b).sum(), (a, b)), 3)
        flops = 6 * len(a) * 512 * 512 / both
        with rounded():
            short = clock(lambda: torch.autograd.grad(product(a, b).sum(), (a, b)), 3)
        halved = 6 * len(a) * 512 * 512 / short
        long = torch.rand(16 * probe, 1024, device=device)
        touches = 2 * long.numel() / clock(lambda: torch.relu(long).mul_(0.5))
        rows, per_row = 16 * probe, 6
        row = torch.arange(rows, device=device).repeat_interleave(per_row)
        col = torch.randint(rows, (len(row),), device=device)
        value = torch.rand(len(row), device=device)
        sparse = SparseMatrix.from_entries(row, col, value, (rows, rows))
        wide = torch.rand(rows, 256, device=device)
        gathers = len(row) * 256 / clock(lambda: sparse @ wide)
        pairs = short_pairs = 1.0
        if shape.contrasts:
            pairs = _pairs(plan, shape, probe, clock)
            with rounded():
                short_pairs = _pairs(plan, shape, probe, clock)
        walks = _walks(plan, device) if shape.affinity and plan.settings.affinity != "vgae" else 1.0
    return Rates(flops, gathers, touches, pairs, walks, 0.005, halved, short_pairs)


def grain(device: torch.device) -> int:
    """How many times as large the pieces are that a device is timed on."""
    return ON_GPU if device.type == "cuda" else 1


def _pairs(plan: Plan, shape: Shape, probe: int, clock: "_Clock") -> float:
    """Pairs a second of the contrast itself, loss and gradients."""

    def unit(width: int, rows: int) -> torch.Tensor:
        return normalize(torch.randn(rows, width, device=clock.device), dim=1)

    one, two = (unit(shape.projection[1], 2 * probe).requires_grad_() for _ in range(2))
    weight = None
    if shape.affinity:
        weight = PairWeight(unit(shape.affinity, probe), unit(shape.affinity, probe))

    def work() -> None:
        loss = contrast(
            one,
            two,
            weight,
            nodes=probe,
            temperature=plan.settings.temperature,
            backend=plan.backend,
        )
        loss.backward()

    return (2 * probe) ** 2 / clock(work)


def _walks(plan: Plan, device: torch.device) -> float:
    """Walks a second, from drawing them to the optimizer's step."""
    walkers = WALKERS * grain(device)
    edges = torch.randint(walkers, (2, 3 * walkers))
    small = Graph.from_data(Tensors(x=torch.ones(walkers, 1), edge_index=edges)).to(device)
    settings = {**plan.settings.embedding_settings(), "epochs": 1, "walks_per_node": 1}
    with torch.enable_grad():
        begin = time.perf_counter()
        skip_gram(small, **settings)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    return walkers / (time.perf_counter() - begin)


class _Clock:
    """The least of a few times: others may be using the machine for a moment."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def __call__(self, work: Callable[[], object], times: int = 5) -> float:
        found = []
        for _ in range(times + 1):  # the first warms up
            begin = time.perf_counter()
            work()
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            found.append(time.perf_counter() - begin)
        return min(found[1:])


def counted(plan: Plan) -> Plan:
    """The plan, if its method has counts."""
    if plan.method not in COUNTED:
        raise UserError(
            f"there is no estimate for {plan.method}; there is for {', '.join(COUNTED)}"
        )
    return plan
