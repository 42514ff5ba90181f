"""What a training will take: counts against what torch counts, and what is chosen by them."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from muxgcl.affinity.autoencoder import Vgae
from muxgcl.augment import stacked_propagation
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.kernels import Sampling
from muxgcl.methods import total
from muxgcl.runs import cost
from muxgcl.runs.cost import Cost, check_memory, choose_sampling, estimate
from muxgcl.runs.plan import Plan, build
from muxgcl.runs.rates import Rates, calibrate
from muxgcl.runs.scoring import Judging
from muxgcl.runs.work import (
    NUMBER,
    Shape,
    autoencoding,
    of_autoencoder,
    of_epoch,
    tables,
    walking,
)
from muxgcl.seeding import seeded
from muxgcl.sparse import Csr

DENSE = planted(nodes=400, features=40)
DENSE.x = DENSE.x + 0.1
GRAPHS = {"dense": Graph.from_data(DENSE)}
SPARSE = planted(nodes=400, features=160)
SPARSE.x = SPARSE.x * (torch.rand(400, 160) < 0.5)
GRAPHS["sparse"] = Graph.from_data(SPARSE)
FAST = Rates(1e12, 1e12, 1e12, 1e12, 1e9, 0.0)


def plan(method: str = "mux-gcl", **changes: object) -> Plan:
    rest = {name: changes.pop(name) for name in ("anchors", "keys") if name in changes}
    values = {"width": 24, "projection": 32, "epochs": 10, **changes}
    if method == "mux-gcl":
        values = {"affinity_epochs": 1, "affinity_width": 8, "projection_out": 16, **values}
    return Plan.make(method, "quick", overrides=values, device="cpu", **rest)


def counted(made: Plan, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> int:
    """What torch counts of one step, dense products alone."""
    with seeded(0):
        method = build(made, graph)
        method.prepare(graph)
        return flops_of(lambda: total(method.loss(graph)).backward(), monkeypatch)


def flops_of(step: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> int:
    """What torch counts of its dense products."""

    def multiply(self: Csr, dense: torch.Tensor) -> torch.Tensor:  # torch takes it for a dense one
        row = torch.arange(self.rows).repeat_interleave(self.rowptr.diff())
        out = dense.new_zeros(self.rows, dense.shape[1])
        return out.index_add(0, row, self.value[:, None] * dense[self.col])

    with monkeypatch.context() as patch, FlopCounterMode(display=False) as counter:
        patch.setattr(Csr, "multiply", multiply)
        step()
    return counter.get_total_flops()


def gathered(monkeypatch: pytest.MonkeyPatch, step: Callable[[], object]) -> int:
    """The numbers that sparse products of a step read."""
    found: list[int] = []
    multiply = Csr.multiply

    def counting(self: Csr, dense: torch.Tensor) -> torch.Tensor:
        found.append(len(self.col) * dense.shape[1])
        return multiply(self, dense)

    with monkeypatch.context() as patch:
        patch.setattr(Csr, "multiply", counting)
        step()
    return sum(found)


def saved(method: torch.nn.Module, graph: Graph) -> int:
    """The numbers that one step keeps for its backward pass, each of them once."""
    fixed = [*method.parameters(), *method.buffers()]
    if isinstance(graph.features, torch.Tensor):
        fixed.append(graph.features)
    known = {one.untyped_storage().data_ptr() for one in fixed}
    kept: dict[int, torch.Tensor] = {}

    def pack(table: torch.Tensor) -> torch.Tensor:
        place = table.untyped_storage().data_ptr()
        if table.is_floating_point() and place not in known:
            kept[place] = table
        return table

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda table: table):
        total(method.loss(graph)).backward()
    return sum(table.untyped_storage().nbytes() for table in kept.values()) // NUMBER


def hop(**changes: object) -> Plan:
    settings = {"hidden": 48, "width": 24, "projection": 32, "projection_out": 16, "epochs": 10}
    settings |= {"affinity_epochs": 1, "affinity_width": 8, "drop_edges": (0.7, 0.7)}
    sizes = {name: changes.pop(name) for name in ("anchors", "keys") if name in changes}
    return Plan.make("mux-hop", "best", "cora", settings | changes, device="cpu", **sizes)


STEPS = {
    "mux-gcl": plan(),
    "mux-gcl, sampled": plan(anchors=50, keys=50),
    "grace": plan("grace"),
    "mux-hop": hop(),
    "mux-hop, sampled": hop(anchors=50, keys=50),
    "mux-hop, perceptron": hop(convolutions=0),
}


@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize("name", STEPS)
def test_what_propagation_reads_is_counted(
    name: str, features: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = GRAPHS[features]
    with seeded(0):
        method = build(STEPS[name], graph)
        method.prepare(graph)
        read = gathered(monkeypatch, lambda: total(method.loss(graph)).backward())
    made = STEPS[name]
    # another draw of the sample is another part of the graph
    assert of_epoch(made, graph).gathers == pytest.approx(read, rel=0.2 if made.anchors else 0.02)


@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize("name", STEPS)
def test_tables_that_are_kept_are_counted(name: str, features: str) -> None:
    graph = GRAPHS[features]
    with seeded(0):
        method = build(STEPS[name], graph)
        method.prepare(graph)
        kept = saved(method, graph)
    made, shape = STEPS[name], Shape.of(STEPS[name], graph)
    # three tables of the contrast are there at the peak, but gone before the backward pass
    met = 2 * min(made.anchors or graph.num_nodes, graph.num_nodes) * len(shape.scales)
    found = of_epoch(made, graph).kept - 3 * met * shape.projection[1]
    if made.anchors:  # of which the features' rows are copied, too: no gradient needs them
        assert kept < found < 1.6 * kept
    else:
        assert found == pytest.approx(kept, rel=0.15)


def bytes_of(*holders: object) -> int:
    """What the tensors in these dataclasses take, each of them once."""
    found: dict[int, int] = {}
    left = list(holders)
    while left:
        one = left.pop()
        if isinstance(one, torch.Tensor):
            found[one.untyped_storage().data_ptr()] = one.untyped_storage().nbytes()
        elif is_dataclass(one):
            left += [getattr(one, field.name) for field in fields(one)]
        elif isinstance(one, list):
            left += one
    return sum(found.values())


def test_tables_that_are_always_there_have_as_many_bytes_as_are_counted() -> None:
    graph = GRAPHS["dense"]
    made, views = plan(), stacked_propagation(graph, (0.3, 0.3))
    patches = [torch.rand(graph.num_nodes, 8) for _ in range(made.settings.layers + 1)]
    there = bytes_of(graph.adjacency, graph.twice, views, patches)
    assert tables(graph, Shape.of(made, graph)) == pytest.approx(there, rel=0.1)


@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize("variational", [True, False])
@pytest.mark.parametrize("hidden", [None, 40])
def test_products_and_tables_of_an_autoencoder_are_counted_as_torch_counts_them(
    features: str, variational: bool, hidden: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = GRAPHS[features]
    with seeded(0):
        model = Vgae(graph.num_features, 8, hidden=hidden, variational=variational)
        read = gathered(monkeypatch, lambda: total(model.loss(graph)).backward())
        model.zero_grad()
        want = flops_of(lambda: total(model.loss(graph)).backward(), monkeypatch)
        kept = saved(model, graph)
    work = of_autoencoder(graph, 8, hidden=hidden, variational=variational)
    assert work.flops == pytest.approx(want, rel=0.1)  # torch counts the sums of biases, too
    assert work.gathers == pytest.approx(read, rel=0.02)
    assert work.kept == pytest.approx(kept, rel=0.1)
    assert work.pairs == 0


@pytest.mark.parametrize("method", ["gae", "vgae"])
def test_an_autoencoder_is_estimated_whole_for_it_has_no_sample(method: str) -> None:
    graph, made = GRAPHS["dense"], Plan.make(method, "quick", overrides={"epochs": 10})
    rates = calibrate(made, graph)
    found = choose_sampling(made, graph, rates, patience=0.0, memory=1.0)
    assert found.sampling == Sampling()
    assert found.cost == estimate(made, graph, rates)
    assert found.cost.seconds > 0
    work = of_epoch(made, graph)
    assert work.weights == sum(
        table.numel() for table in build(made, graph).parameters() if table.ndim > 1
    )


MEASURED = """
from pathlib import Path

from muxgcl.affinity.autoencoder import vgae
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.runs.heap import reused_memory

def read(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))

graph, small = (Graph.from_data(planted(nodes=n, degree=40)) for n in (3000, 50))
with reused_memory(graph.device):
    vgae(small, width=8, epochs=1, lr=0.01)  # what is loaded once
before = read("VmRSS")
with reused_memory(graph.device):
    vgae(graph, width=128, epochs=3, lr=0.01)
print(read("VmHWM") - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's /proc")
def test_memory_of_training_a_vgae_is_what_a_process_took() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURED],
        env={"PYTHONPATH": str(Path(cost.__file__).parents[2]), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    graph = Graph.from_data(planted(nodes=3000, degree=40))
    found = autoencoding(graph, 128, cost.BACKWARD * cost.UNUSED)
    assert found == pytest.approx(int(done.stdout), rel=0.3)


def test_training_a_vgae_for_affinities_may_be_what_takes_the_most_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of many edges: a pair reads two rows, whatever a sample leaves of the contrast."""
    monkeypatch.setattr(cost, "resident", lambda: 0.0)
    graph = Graph.from_data(planted(nodes=300, degree=60))
    pairs = len(graph.adjacency.col) - 300
    narrow, wide, walks = (
        estimate(plan(anchors=20, keys=20, **affinity), graph, FAST).bytes
        for affinity in (
            {"affinity": "vgae", "affinity_width": 64},
            {"affinity": "vgae", "affinity_width": 128},
            {"affinity_width": 128, "walks_per_node": 1},
        )
    )
    assert wide - narrow >= NUMBER * 2 * pairs * 64 * cost.BACKWARD
    assert wide > 2 * walks


def test_affinities_of_a_vgae_take_as_long_whatever_the_contrast_does() -> None:
    graph, rates = GRAPHS["dense"], replace(FAST, pairs=1e5)
    exact, sampled = (
        estimate(plan(affinity="vgae", anchors=size, keys=size), graph, rates)
        for size in (None, 50)
    )
    assert exact.prepare == sampled.prepare > 0
    assert exact.seconds > 2 * sampled.seconds
    twice = estimate(plan(affinity="vgae", affinity_epochs=2), graph, rates)
    assert twice.prepare == pytest.approx(2 * exact.prepare)


@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("sample", [None, 50])
def test_products_are_counted_as_torch_counts_them(
    features: str, layers: int, sample: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = (1 / (layers + 1),) * (layers + 1)
    graph = GRAPHS[features]
    assert isinstance(graph.features, torch.Tensor) == (features == "dense")
    made = plan(layers=layers, scale_weights=weights, anchors=sample, keys=sample)
    want = counted(made, graph, monkeypatch)
    work, shape = of_epoch(made, graph), Shape.of(made, graph)
    # two of three products: torch does not count the one in place; one weight for four pairs
    per_pair = 2 * 2 * shape.projection[1] + 2 * shape.affinity / 4
    # what torch counts has the sums of biases too, and another draw of the sample
    assert work.flops + work.pairs * per_pair == pytest.approx(want, rel=0.1)


@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize("convolutions", [0, 1])
@pytest.mark.parametrize("anchors", ["last", "all"])
@pytest.mark.parametrize("sample", [None, 50])
def test_products_of_mux_hop_are_counted_as_torch_counts_them(
    features: str,
    convolutions: int,
    anchors: str,
    sample: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = GRAPHS[features]
    settings = {"hidden": 48, "width": 24, "projection": 32, "projection_out": 16, "epochs": 10}
    settings |= {"affinity_epochs": 1, "affinity_width": 8, "drop_edges": (0.7, 0.7)}
    settings |= {"convolutions": convolutions, "anchors": anchors, "depth": 3}
    made = Plan.make("mux-hop", "best", "cora", settings, device="cpu", anchors=sample, keys=sample)
    want = counted(made, graph, monkeypatch)
    work, shape = of_epoch(made, graph), Shape.of(made, graph)
    per_pair = 2 * 2 * shape.projection[1] + 2 * shape.affinity / 4
    assert work.flops + work.pairs * per_pair == pytest.approx(
        want, rel=0.15
    )  # the draw of the sample is another one


def test_a_sample_with_whole_columns_dropped_is_counted_as_the_whole_graph_that_it_encodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, made = GRAPHS["dense"], hop(feature_dropout="columns", anchors=50, keys=50)
    want = counted(made, graph, monkeypatch)
    work, shape = of_epoch(made, graph), Shape.of(made, graph)
    found = work.flops + work.pairs * (2 * 2 * shape.projection[1] + 2 * shape.affinity / 4)
    assert found == pytest.approx(want, rel=0.15)


def test_counts_of_grace_are_those_of_its_one_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = GRAPHS["dense"]
    want = counted(plan("grace"), graph, monkeypatch)
    work, shape = of_epoch(plan("grace"), graph), Shape.of(plan("grace"), graph)
    found = work.flops + work.pairs * 4 * shape.projection[1]
    assert found == pytest.approx(want, rel=0.1)


@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("sample", [None, 50])
def test_products_and_steps_of_ma_gcl_are_counted(
    features: str, layers: int, sample: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"width": 24, "layers": layers, "steps_one": (0, 1), "steps_two": (0, 7)}
    graph = GRAPHS[features]
    sizes = {"anchors": sample, "keys": sample}
    made = Plan.make("ma-gcl", "quick", overrides=values, device="cpu", **sizes)
    want = counted(made, graph, monkeypatch)
    work = of_epoch(made, graph)
    assert work.flops + work.pairs * 4 * 24 == pytest.approx(want, rel=0.1)
    # (0, 1) steps are one product a layer, (0, 7) are 29 / 8 on average
    read = 2 * layers * (1 + 29 / 8) * len(graph.adjacency.col) * 24
    if features == "sparse":
        read += 4 * len(graph.features.matrix.col) * 24
    assert work.gathers == pytest.approx(read)


def test_memory_of_walks_grows_by_the_tables_of_nodes_alone() -> None:
    """Beside them 16 bytes for each node that a walk meets."""
    small, large = (Graph.from_data(planted(nodes=n, degree=4)) for n in (40_000, 80_000))
    made = plan()
    found = [walking(made, g, Shape.of(made, g)) for g in (small, large)]
    edges = len(large.adjacency.col) - len(small.adjacency.col)
    nodes = 40_000 * (4 * 5 * 8 + 16 * made.settings.walk_length)
    assert found[1] - found[0] == pytest.approx(nodes + 24 * edges)
    assert walking(plan("grace"), small, Shape.of(plan("grace"), small)) == 0


def test_pairs_grow_with_the_square_of_the_nodes_and_a_sample_has_its_own() -> None:
    small, large = (Graph.from_data(planted(nodes=n)) for n in (100, 300))
    assert of_epoch(plan(), large).pairs == 9 * of_epoch(plan(), small).pairs
    sampled = plan(anchors=10, keys=20)
    scales = len(Shape.of(sampled, large).scales)
    assert of_epoch(sampled, large).pairs == 4 * 10 * 20 * scales


def test_a_sample_of_more_nodes_than_there_are_costs_what_the_exact_contrast_costs() -> None:
    graph = GRAPHS["dense"]
    assert of_epoch(plan(anchors=9999, keys=9999), graph) == of_epoch(plan(), graph)


def test_twice_the_epochs_take_twice_the_time_after_the_preparation() -> None:
    graph = GRAPHS["dense"]
    one, two = (estimate(plan(epochs=n), graph, FAST) for n in (10, 20))
    assert one.prepare == two.prepare > 0
    assert two.seconds - two.prepare == pytest.approx(2 * (one.seconds - one.prepare))


def test_members_take_as_many_times_as_long() -> None:
    one, three = (
        estimate(replace(plan(), members=k), GRAPHS["dense"], FAST).seconds for k in (1, 3)
    )
    assert three == pytest.approx(3 * one)


def test_rates_are_measured_and_an_estimate_is_one_line() -> None:
    rates = calibrate(plan(), GRAPHS["dense"])
    assert all(getattr(rates, name) > 0 for name in Rates.__dataclass_fields__)
    found = estimate(plan(), GRAPHS["dense"], rates)
    assert found.seconds > found.prepare > 0
    assert found.bytes > cost.resident() * 0.9
    assert str(Cost(720, 1.1 * 2**30, 0, "CPU")) == "about 12 min, 1.1 GiB on this CPU"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.2, "1 s"), (75, "75 s"), (600, "10 min"), (7200, "2.0 h"), (200_000, "2.3 days")],
)
def test_a_duration_is_told_in_a_unit_that_fits(seconds: float, told: str) -> None:
    assert cost.duration(seconds) == told


def test_a_large_graph_is_given_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    took = Cost(900.0, 1e6, 0.0, "CPU")
    monkeypatch.setattr(cost, "estimate", lambda plan, graph, rates: took)
    graph = Graph.from_data(planted(nodes=40))
    monkeypatch.setattr(cost, "SIZES", (20,))
    for most, sampled in ((39, False), (40, True)):  # nodes up to which a graph is not large
        monkeypatch.setattr(cost, "LARGE", most)
        found = choose_sampling(plan(), graph, FAST, memory=1e15)
        assert bool(found.sampling) == sampled
        assert not choose_sampling(plan(), graph, FAST, patience=901.0, memory=1e15).sampling


def test_the_exact_contrast_is_chosen_where_it_is_affordable_else_the_largest_sample_that_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = GRAPHS["dense"]
    monkeypatch.setattr(cost, "SIZES", (200, 100, 50))
    assert choose_sampling(plan(), graph, FAST, memory=1e15).sampling == Sampling()
    slow = replace(FAST, pairs=1e5)

    def time(size: int | None) -> float:
        return estimate(plan(anchors=size, keys=size), graph, slow).seconds

    assert time(None) > time(200) > time(100) > time(50)
    for patience, size in ((time(200), 200), (time(100), 100), (time(50) / 2, 50)):
        found = choose_sampling(plan(), graph, slow, patience=patience, memory=1e15)
        assert found.sampling == Sampling(size, size)
        assert found.reason.startswith("the exact contrast would take")
        assert found.cost.seconds == pytest.approx(time(size))


@pytest.mark.parametrize(
    ("seconds", "sizes", "brief", "sampled"),
    [
        (59.0, (200, 100, 50), True, None),
        (61.0, (200, 100, 50), True, 100),  # a quarter of the nodes: 200 would be no better
        (61.0, (200, 100, 50), False, None),
        (481.0, (200, 100, 50), False, 200),
        (479.0, (200, 101), True, None),  # the graph is too small for such samples
        (481.0, (200, 101), True, 200),
    ],
)
def test_a_brief_training_samples_a_quarter_of_the_nodes_at_most(
    seconds: float,
    sizes: tuple[int, ...],
    brief: bool,
    sampled: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def took(plan: Plan, graph: Graph, rates: Rates) -> Cost:
        return Cost(seconds if plan.anchors is None else 1.0, 1e6, 0.0, "CPU")

    monkeypatch.setattr(cost, "estimate", took)
    monkeypatch.setattr(cost, "SIZES", sizes)
    found = choose_sampling(plan(), GRAPHS["dense"], FAST, brief=brief, memory=1e15)  # 400 nodes
    assert found.sampling == Sampling(sampled, sampled)


@pytest.mark.parametrize("brief", [True, False])
@pytest.mark.parametrize(("nodes", "most"), [(400, 480.0), (60_000, 1200.0)])
def test_a_sampled_training_may_take_minutes(
    brief: bool, nodes: int, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    took = {None: 1e4, 100: most + 1, 50: most - 1, 25: 10.0}
    monkeypatch.setattr(
        cost, "estimate", lambda plan, graph, rates: Cost(took[plan.anchors], 1e6, 0.0, "CPU")
    )
    monkeypatch.setattr(cost, "SIZES", (100, 50, 25))
    graph = Graph.from_data(planted(nodes=nodes))
    found = choose_sampling(plan(), graph, FAST, brief=brief, memory=1e15)
    assert found.sampling.anchors == 50


def test_a_sampled_step_has_the_speeds_of_rounded_products() -> None:
    graph = GRAPHS["dense"]
    rates = replace(FAST, flops=1e6, pairs=1e6, rounded=1e9, rounded_pairs=1e9)
    exact, sampled = (estimate(plan(anchors=a, keys=a), graph, rates) for a in (None, 390))
    plain = estimate(replace(plan(anchors=390, keys=390), backend="chunked/fp32"), graph, rates)
    assert plain.seconds > 0.5 * exact.seconds
    assert sampled.seconds < 0.01 * plain.seconds


@pytest.mark.parametrize(
    ("nodes", "size"), [(10, 256), (1100, 256), (2708, 512), (50_000, 8192), (50_001, 1024)]
)
def test_a_sample_is_a_quarter_of_the_nodes_and_modest_in_a_large_graph(
    nodes: int, size: int
) -> None:
    assert cost.share_of(nodes) == size


def test_a_sample_of_all_nodes_is_none() -> None:
    """However long it takes: 90 nodes are fewer than the smallest sample has."""
    graph = Graph.from_data(planted(nodes=90))
    found = choose_sampling(plan(), graph, FAST, patience=0.0, memory=1e15)
    assert found.sampling == Sampling()
    assert found.cost.seconds > 0
    assert not choose_sampling(plan(), graph, FAST, exact=False, memory=1e15).sampling


def test_workers_divide_the_pairs_and_the_memory_of_their_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, pairs = GRAPHS["dense"], replace(FAST, pairs=1e5)
    alone, four = (estimate(plan(), graph, replace(pairs, workers=n)) for n in (1, 4))
    work = of_epoch(plan(), graph)
    saved = cost.SUSTAINED * plan().train.epochs * 0.75 * work.pairs / 1e5
    assert alone.seconds - four.seconds == pytest.approx(saved)
    assert str(four) == f"{replace(four, workers=1)} for each of 4 workers"
    monkeypatch.setattr(cost, "resident", lambda: 0.0)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    whole = cost.available(plan())
    assert 0.15 * whole < cost.available(plan(), 4) < 0.35 * whole
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")  # four workers, two of them here
    assert 0.35 * whole < cost.available(plan(), 4) < 0.65 * whole


def test_what_does_not_fit_is_refused_and_what_would_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = GRAPHS["dense"]
    monkeypatch.setattr(cost, "resident", lambda: 0.0)
    monkeypatch.setattr(cost, "SIZES", (50,))
    whole = estimate(plan(), graph, FAST)
    check_memory(plan(), graph, whole, FAST)
    little = estimate(plan(anchors=50, keys=50), graph, FAST).bytes
    assert little < whole.bytes
    monkeypatch.setattr(cost, "available", lambda plan, workers: (little + whole.bytes) / 2)
    with pytest.raises(UserError, match="50 anchors and negatives need"):
        check_memory(plan(), graph, whole, FAST)
    monkeypatch.setattr(cost, "available", lambda plan, workers: 1.0)
    with pytest.raises(UserError, match="a smaller width needs less"):
        check_memory(plan(), graph, whole, FAST)


def test_the_largest_sample_that_fits_into_memory_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = GRAPHS["dense"]
    monkeypatch.setattr(cost, "resident", lambda: 0.0)
    monkeypatch.setattr(cost, "SIZES", (200, 100, 50))

    def size(count: int | None) -> float:
        return estimate(plan(anchors=count, keys=count), graph, FAST).bytes

    assert size(50) < size(100) < size(200) < size(None)
    for want, memory in ((None, size(None)), (200, size(None) - 1), (100, size(200) - 1)):
        found = choose_sampling(plan(), graph, FAST, memory=memory)
        assert found.sampling == Sampling(want, want)
    least = choose_sampling(plan(), graph, FAST, memory=1.0)  # which does not fit, either
    assert least.sampling == Sampling(50, 50)
    assert least.cost.bytes > 1.0


def test_a_container_has_what_its_limit_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "resident", lambda: 100.0)
    monkeypatch.setattr(cost, "_CGROUP", tmp_path)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    whole = cost.available(plan())
    (tmp_path / "memory.max").write_text("9000\n")
    (tmp_path / "memory.current").write_text("5000\n")
    (tmp_path / "memory.stat").write_text("anon 3000\ninactive_file 1000\nactive_file 700\n")
    assert cost.available(plan()) == 100 + 5000
    assert cost.available(plan(), 2) == 100 + 2500
    (tmp_path / "memory.max").write_text("1000\n")
    assert cost.available(plan()) == 100
    (tmp_path / "memory.max").write_text("max\n")
    assert cost.available(plan()) > 0.5 * whole


def test_scores_that_do_not_fit_are_refused_and_the_way_out_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, free = GRAPHS["dense"], [30.0]
    monkeypatch.setattr(cost, "resident", lambda: 0.0)
    monkeypatch.setattr(cost, "available", lambda plan, workers: free[0])
    monkeypatch.setattr(cost, "tables", lambda graph, shape: 0.0)
    alone = {True: 40.0, False: 20.0}
    monkeypatch.setattr(
        cost, "scoring", lambda plan, graph, asked, slow=None: (1.0, alone[asked.controls])
    )
    asked = Judging(DENSE)
    training = Cost(10.0, 10.0, 0.0, "CPU")
    found = cost.with_scores(training, plan(), graph, asked)
    with pytest.raises(UserError, match=r"scores need .* --no-controls needs less"):
        cost.check_scores(found, plan(), graph, asked)
    free[0] = 15.0
    with pytest.raises(UserError, match="muxgcl train computes none"):
        cost.check_scores(found, plan(), graph, asked)
    cost.check_scores(replace(found, device="GPU"), plan(), graph, asked)
    free[0] = 40.0
    cost.check_scores(found, plan(), graph, asked)


@pytest.mark.parametrize(
    ("anchors", "keys", "workers", "rounded"),
    [(50, 50, 1, True), (50, 60, 1, True), (None, 60, 2, True), (None, None, 1, False)],
)
def test_pairs_of_a_sample_are_rounded_however_many_keys_it_has(
    anchors: int | None, keys: int, workers: int, rounded: bool
) -> None:
    graph, made = GRAPHS["dense"], plan(anchors=anchors, keys=keys)
    rates = replace(FAST, pairs=1e5, rounded=1e12, rounded_pairs=4e5, workers=workers)
    rate = rates.rounded_pairs if rounded else rates.pairs
    found = cost.epoch_seconds(made, graph, rates)
    assert found == pytest.approx(of_epoch(made, graph).pairs / workers / rate, rel=0.01)


def test_a_method_that_is_not_counted_is_named() -> None:
    dgi = Plan.make("dgi", "quick")
    with pytest.raises(UserError, match="no estimate for dgi"):
        estimate(dgi, GRAPHS["dense"], FAST)
