"""The contract: what holds for every method of the registry."""

import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial, partialmethod
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.data import Data

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.methods import METHODS, Context, Method, total
from muxgcl.nn.gcn import GCN
from muxgcl.runs.loop import Trainer
from muxgcl.runs.plan import Plan
from muxgcl.runs.settings import TrainConfig, preset, split_settings
from muxgcl.seeding import seeded

DATASETS = ("cora", "citeseer", "pubmed", "photo", "computers")
DATA_ROOT = Path(__file__).parents[3] / "shared" / "datasets"
ALL = pytest.mark.parametrize("name", METHODS)
TRAINED = pytest.mark.parametrize("name", [k for k, kind in METHODS.items() if kind.trainable])
SCALING = [k for k, kind in METHODS.items() if "row_normalize" in kind.Config.__dataclass_fields__]


def graph_of(**changes: Any) -> Graph:
    """A small graph with isolated nodes and nodes without features."""
    return Graph.from_data(planted(**{"nodes": 60, "isolated": 2, "featureless": 3} | changes))


def made(name: str, graph: Graph, epochs: int = 4, **changes: Any) -> tuple[Method, TrainConfig]:
    """A method in the settings of `quick`, not yet prepared."""
    settings = preset(name, "quick", "default") | {"epochs": epochs} | changes
    train, method = split_settings(settings, TrainConfig, METHODS[name].Config)
    return METHODS[name](graph, method, Context(epochs=epochs)), train


def trainer_of(name: str, graph: Graph, epochs: int = 4) -> Trainer:
    method, train = made(name, graph, epochs)
    method.prepare(graph)
    return Trainer(method, graph, train)


def losses(trainer: Trainer) -> list[float]:
    return [epoch.loss for block in trainer.blocks() for epoch in block]


def trained(name: str, graph: Graph, epochs: int = 4, seed: int = 0) -> Method:
    """As after a run; a method without training is only made."""
    with seeded(seed):
        if not METHODS[name].trainable:
            return made(name, graph)[0]
        trainer = trainer_of(name, graph, epochs)
        losses(trainer)
        return trainer.method


@torch.no_grad()
def embed(method: Method, graph: Graph) -> Tensor:
    return method.eval().embed(graph)


@TRAINED
def test_training_lowers_the_loss(name: str) -> None:
    with seeded(0):
        values = losses(trainer_of(name, graph_of(nodes=120), epochs=50))
    assert sum(values[-5:]) < sum(values[:5])


@pytest.mark.parametrize("name", SCALING)
def test_with_divided_rows_only_their_direction_counts(name: str) -> None:
    data = planted(nodes=60, featureless=3)
    stretched = Data(x=data.x * (0.1 + 10 * torch.rand(60, 1)), edge_index=data.edge_index)
    # propagated features beside the scales are never divided
    bare = {"readout_features": 0.0} if name == "mux-hop" else {}
    found = {}
    for divided in (True, False):
        for kind, given in (("plain", data), ("stretched", stretched)):
            graph = Graph.from_data(given)
            with seeded(0):
                method, _ = made(name, graph, row_normalize=divided, **bare)
                method.prepare(graph)
                found[divided, kind] = total(method.loss(graph)), embed(method, graph)
    assert_close(found[True, "plain"], found[True, "stretched"], rtol=1e-4, atol=1e-5)
    for one, other in zip(found[False, "plain"], found[False, "stretched"], strict=True):
        assert not torch.allclose(one, other, rtol=1e-3)


@ALL
def test_the_embedding_has_one_finite_row_a_node(name: str) -> None:
    graph = graph_of()
    z = embed(trained(name, graph), graph)
    assert z.shape[0] == graph.num_nodes
    assert z.dtype == torch.float32
    assert z.isfinite().all()


@TRAINED
def test_gradients_are_finite_where_nodes_lack_edges_or_features(name: str) -> None:
    trainer = trainer_of(name, graph_of(isolated=10, featureless=10))
    terms = trainer.method.loss(trainer.graph)
    total(terms).backward()
    grads = [p.grad for p in trainer.method.parameters() if p.grad is not None]
    assert grads
    assert all(values.isfinite().all() for values in [*grads, *terms.values()])


# Where a loss holds a part of itself fixed, its gradient is not that of the whole. What is fixed is
# left out here, or held, and has tests of its own in the method's file.
WITHOUT_STOPS: dict[str, dict[str, Any]] = {
    "sfa": {"through_direction": True},  # the direction that is taken out
    "sugrl": {"weights": (1.0, 1.0, 0.0)},  # the positive's distance in the bound
}
HELD = {"homogcl": "kmeans"}  # the centres
TRAINS = {"sgrl": {"online": ("encoder", "predictor"), "target": ("target",)}}  # the prediction's


@pytest.fixture
def float64() -> Iterator[None]:
    """What is made or drawn has 64 bits."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def in_float64(graph: Graph) -> Graph:
    adjacency = replace(graph.adjacency, weight=graph.adjacency.weight.double())
    return Graph(graph.dense_features().double(), adjacency)


@pytest.mark.usefixtures("float64")
@TRAINED
def test_the_gradient_is_that_of_the_loss(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = in_float64(graph_of(isolated=0, featureless=0))
    method, _ = made(name, graph, **WITHOUT_STOPS.get(name, {}))
    method.prepare(graph)
    if name in HELD:
        module = sys.modules[METHODS[name].__module__]
        monkeypatch.setattr(module, HELD[name], cache_first(getattr(module, HELD[name])))
    learned = {key: p for key, p in method.named_parameters() if p.requires_grad}
    for p in learned.values():  # biases begin at 0, where a ReLU has its kink
        p.data += 0.1 * torch.randn_like(p)

    def loss(term: str) -> Tensor:
        with seeded(1):
            terms = method.loss(graph)
        return terms[term] if term else total(terms)

    for milestone in (0, *method.milestones):
        if milestone:
            method.reach(milestone)
        for term, parts in TRAINS.get(name, {"": ("",)}).items():
            moved = [p for key, p in learned.items() if key.startswith(parts)]
            assert_close(*slopes(partial(loss, term), moved), rtol=1e-5, atol=1e-6)


def slopes(loss: Callable[[], Tensor], moved: list[nn.Parameter]) -> tuple[float, float]:
    """How the loss changes along a random direction: by its gradient, and by its values."""
    start = [p.detach().clone() for p in moved]
    along = [torch.randn_like(p) for p in moved]
    grads = torch.autograd.grad(loss(), moved, materialize_grads=True)
    values, step = [], 1e-8  # so short that next to no ReLU has its kink on the way
    for ahead in (step, -step, 0):
        for p, at, d in zip(moved, start, along, strict=True):
            p.data = at + ahead * d
        values.append(float(loss().detach()))
    by_gradient = sum(float((g * d).sum()) for g, d in zip(grads, along, strict=True))
    return by_gradient, (values[0] - values[1]) / (2 * step)


def cache_first(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function with its first answer for good."""
    answers: list[Tensor] = []

    def answer(*args: Any) -> Tensor:
        answers[:] = answers or [function(*args)]
        return answers[0]

    return answer


@ALL
def test_a_graph_without_edges_is_no_fault(name: str) -> None:
    nowhere = Data(x=planted(nodes=20).x, edge_index=torch.empty(2, 0, dtype=torch.long))
    graph = Graph.from_data(nowhere)
    assert embed(trained(name, graph, epochs=2), graph).isfinite().all()


@ALL
def test_the_seed_decides_the_embedding(name: str) -> None:
    graph = graph_of()
    assert torch.equal(embed(trained(name, graph), graph), embed(trained(name, graph), graph))


@TRAINED
def test_another_seed_gives_another_embedding(name: str) -> None:
    graph = graph_of()
    one, two = (embed(trained(name, graph, seed=seed), graph) for seed in (0, 1))
    assert not torch.allclose(one, two)


@ALL
def test_blocks_of_rows_put_together_are_the_embedding(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GCN, "embed_blocks", partialmethod(GCN.embed_blocks, rows=7))
    graph = graph_of()
    method = trained(name, graph, epochs=2).eval()
    with torch.no_grad():
        blocks = [*method.embed_blocks(graph)]
        assert_close(torch.cat(blocks), method.embed(graph))
    in_part = {"mux-gcl", "grace", "gca", "progcl", "homogcl", "sfa", "costa", "ns4gc"}
    assert (len(blocks) > 1) == (name in in_part | {"dgi", "cca-ssg", "random-gcn"})


@ALL
def test_embedding_is_not_left_to_chance(name: str) -> None:
    graph = graph_of()
    method = trained(name, graph)
    before = torch.get_rng_state()
    in_training = method.train().embed(graph)
    assert torch.equal(in_training, embed(method, graph))
    assert torch.equal(before, torch.get_rng_state())


@ALL
def test_preparing_leaves_the_randomness_of_training_alone(name: str) -> None:
    graph = graph_of()
    method, _ = made(name, graph)
    before = torch.get_rng_state()
    method.prepare(graph)
    assert torch.equal(before, torch.get_rng_state())


@ALL
def test_node_order_does_not_matter(name: str) -> None:
    if not METHODS[name].inductive:
        pytest.skip("a table of nodes knows them by their number")
    data = planted(nodes=60, isolated=2, featureless=3)
    graph = Graph.from_data(data)
    method = trained(name, graph)
    order = torch.randperm(60)
    place = order.argsort()  # where each old node went
    moved = Graph.from_data(Data(x=data.x[order], edge_index=place[data.edge_index]))
    assert_close(embed(method, moved), embed(method, graph)[order], rtol=1e-4, atol=1e-5)


@ALL
def test_saved_weights_give_the_same_embedding(name: str) -> None:
    graph = graph_of()
    method = trained(name, graph)
    with seeded(1):
        other, _ = made(name, graph)
    other.load_state_dict(method.state_dict())
    assert torch.equal(embed(other, graph), embed(method, graph))


@TRAINED
def test_a_stopped_run_resumes_to_the_same_embedding(name: str) -> None:
    graph = graph_of()
    whole = embed(trained(name, graph, epochs=6), graph)
    with seeded(0):
        stopped = trainer_of(name, graph, epochs=6)
        blocks = stopped.blocks()
        while stopped.epoch < 3:
            next(blocks)
        saved = {key: tensor.clone() for key, tensor in stopped.state().items()}
    with seeded(1):
        resumed = trainer_of(name, graph, epochs=6)
        resumed.load(saved, epoch=3)
        losses(resumed)
    assert torch.equal(embed(resumed.method, graph), whole)


@ALL
def test_a_new_graph_is_embedded_or_refused_in_one_line(name: str) -> None:
    new = graph_of(nodes=75, seed=7)
    method = trained(name, graph_of())
    if METHODS[name].inductive:
        z = embed(method, new)
        assert z.shape[0] == 75
        assert z.isfinite().all()
    else:
        with pytest.raises(UserError, match="60") as refusal:
            embed(method, new)
        assert "\n" not in str(refusal.value)


class NoWaiting(TorchDispatchMode):
    """Refuses what a captured step may not do: read a number back, or shape by data."""

    FORBIDDEN = ("_local_scalar_dense", "nonzero", "masked_select", "randperm", "unique")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        called = func.overloadpacket.__name__
        assert not called.startswith(self.FORBIDDEN), f"{called} waits for the device"
        if called in ("index", "index_put", "index_put_"):
            assert not any(i is not None and i.dtype == torch.bool for i in args[1])
        return func(*args, **(kwargs or {}))


@TRAINED
def test_a_capturable_step_never_waits_for_the_device(name: str) -> None:
    trainer = trainer_of(name, graph_of(), epochs=5)
    if not trainer.method.capturable:
        pytest.skip("this method says that it cannot be captured")
    next(iter(trainer.blocks()))  # what is computed once is computed in the warm-up
    trainer.method.static = True
    with NoWaiting():
        total(trainer.method.loss(trainer.graph)).backward()
        trainer.method.after_step()


@ALL
def test_every_preset_is_understood(name: str) -> None:
    text = files("muxgcl.runs.presets").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    assert "default" in tables.get("paper", tables.get("best", {}))  # one of our own has no paper
    assert "default" in tables["quick"]
    for kind, rows in tables.items():
        for dataset, row in rows.items():
            assert row.pop("source").startswith(("official: ", "ours: ")), (kind, dataset)
            train, method = split_settings(row, TrainConfig, METHODS[name].Config)
            assert train.epochs >= 1
            METHODS[name](graph_of(), method, Context(epochs=train.epochs))


@ALL
def test_the_default_preset_is_there_for_every_method(name: str) -> None:
    for dataset in (*DATASETS, "a graph of one's own"):
        plan = Plan.make(name, dataset=dataset)
        assert plan.preset == "best"
        assert plan.train.epochs >= 1


def test_every_file_in_the_folder_of_methods_is_registered() -> None:
    folder = files("muxgcl.methods")
    found = {Path(file.name).stem for file in folder.iterdir() if file.name.endswith(".py")}
    registered = {kind.__module__.rpartition(".")[2] for kind in METHODS.values()}
    assert registered == found - {"__init__", "base"}


def test_every_file_of_presets_belongs_to_a_method() -> None:
    folder = files("muxgcl.runs.presets")
    found = {Path(file.name).stem for file in folder.iterdir() if file.name.endswith(".toml")}
    assert found == set(METHODS)


@ALL
def test_every_method_says_where_it_comes_from(name: str) -> None:
    kind = METHODS[name]
    assert kind.name == name
    assert kind.cost in ("linear", "quadratic", "none")
    assert (kind.cost == "none") == (not kind.trainable)
    assert kind.paper
    assert sys.modules[kind.__module__].__doc__


ON_PUBMED = """
import resource, sys, torch
from pathlib import Path
from muxgcl.runs.settings import TrainConfig, preset, split_settings
from muxgcl.io import load_dataset
from muxgcl.graph import Graph
from muxgcl.methods import METHODS, Context
from muxgcl.runs.loop import Trainer
torch.set_num_threads(1)
name, root = sys.argv[1:]
graph = Graph.from_data(load_dataset("pubmed", Path(root)))
epochs = 1 if METHODS[name].cost == "quadratic" else 2
settings = preset(name, "best" if name == "mux-hop" else "paper", "pubmed") | {"epochs": epochs}
train, cfg = split_settings(settings, TrainConfig, METHODS[name].Config)
method = METHODS[name](graph, cfg, Context(epochs=epochs))
method.prepare(graph)
if method.trainable:
    list(Trainer(method, graph, train).blocks())
with torch.no_grad():
    assert method.embed(graph).isfinite().all()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
@ALL
def test_pubmed_trains_in_less_than_4_gib(name: str) -> None:
    if not (DATA_ROOT / "Planetoid" / "PubMed").is_dir():
        pytest.skip(f"PubMed's files are not in {DATA_ROOT}")
    command = [sys.executable, "-W", "ignore", "-c", ON_PUBMED, name, str(DATA_ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 4 << 20  # kilobytes
