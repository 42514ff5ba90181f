"""Patches: unit tables that say how near patches lie, the same for the same seed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.data import Data

from muxgcl.affinity import AffinityConfig, estimate, patches
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io import planted

KINDS = ["deepwalk", "node2vec", "vgae"]
QUICK: dict[str, Any] = {
    "affinity_width": 16,
    "affinity_epochs": 1,
    "walk_length": 6,
    "walk_context": 3,
    "walks_per_node": 2,
    "walk_p": 0.5,
    "walk_q": 2.0,
}


@pytest.fixture
def graph() -> Graph:
    """Forty nodes, the last two of them isolated."""
    return Graph.from_data(planted(nodes=40, classes=2, features=10, isolated=2))


def quick(kind: str, **changes: Any) -> AffinityConfig:
    return AffinityConfig(affinity=kind, **(QUICK | changes))  # type: ignore[arg-type]


def communities() -> Graph:
    """Two dense halves of twenty nodes with four bridges; the features say nothing."""
    half = torch.arange(40) // 20
    edges = (torch.rand(40, 40).triu(1) < 0.4) & (half[:, None] == half)
    edges[[0, 5, 10, 15], [20, 25, 30, 35]] = True
    return Graph.from_data(Data(x=torch.eye(40), edge_index=edges.nonzero().T))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooling", ["mean", "residual", "ego"])
def test_patches_lie_nearer_inside_a_community_than_across(kind: str, pooling: str) -> None:
    cfg = AffinityConfig(affinity=kind, pooling=pooling, walk_p=0.5, walk_q=2.0)  # type: ignore[arg-type]
    same = (torch.arange(40) // 20)[:, None] == torch.arange(40) // 20
    others = ~torch.eye(40, dtype=torch.bool)
    found = patches(communities(), cfg, 2, seed=0, cache=None)
    for scale in found:
        cosine = found[-1] @ scale.T
        assert cosine[same & others].mean() > cosine[~same].mean() + 0.2


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_one_constant_unit_table_a_scale(kind: str, graph: Graph) -> None:
    found = patches(graph, quick(kind), 3, seed=0, cache=None)
    assert len(found) == 4
    for scale in found:
        assert scale.shape == (40, 16)
        assert not scale.requires_grad
        assert_close(scale[:-2].norm(dim=1), torch.ones(38))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooling", ["mean", "residual", "ego"])
def test_isolated_nodes_are_neither_near_nor_far(kind: str, pooling: str, graph: Graph) -> None:
    for scale in patches(graph, quick(kind, pooling=pooling), 2, seed=0, cache=None):
        assert not scale[-2:].any()
        assert torch.isfinite(scale).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_without_edges_has_zero_patches(kind: str) -> None:
    graph = Graph.from_data(Data(x=torch.eye(4), edge_index=torch.empty(2, 0, dtype=torch.long)))
    for scale in patches(graph, quick(kind), 1, seed=0, cache=None):
        assert torch.equal(scale, torch.zeros(4, 16))


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_fixes_the_patches_and_leaves_other_randomness_alone(
    kind: str, graph: Graph
) -> None:
    state = torch.get_rng_state()
    one = patches(graph, quick(kind), 2, seed=3, cache=None)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(5)
    with torch.no_grad():  # nor does it matter where it is called
        again = patches(graph, quick(kind), 2, seed=3, cache=None)
    assert all(torch.equal(a, b) for a, b in zip(one, again, strict=True))
    assert not torch.equal(one[0], patches(graph, quick(kind), 2, seed=4, cache=None)[0])


def test_deepwalk_is_node2vec_with_p_and_q_1(graph: Graph) -> None:
    plain = patches(graph, quick("deepwalk"), 1, seed=0, cache=None)
    first_order = quick("node2vec", walk_p=1.0, walk_q=1.0)
    assert torch.equal(plain[0], patches(graph, first_order, 1, seed=0, cache=None)[0])
    assert not torch.equal(plain[0], patches(graph, quick("node2vec"), 1, seed=0, cache=None)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_cached_is_not_computed_again(
    kind: str, graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = patches(graph, quick(kind), 2, seed=0, cache=tmp_path / "new")
    (file,) = (tmp_path / "new").iterdir()
    assert file.suffix == ".safetensors"
    monkeypatch.setattr(estimate, "skip_gram", None)
    monkeypatch.setattr(estimate, "vgae", None)
    again = patches(graph, quick(kind), 2, seed=0, cache=tmp_path / "new")
    assert all(torch.equal(a, b) for a, b in zip(fresh, again, strict=True))
    other = patches(graph, quick(kind, pooling="ego"), 3, seed=0, cache=tmp_path / "new")
    assert len(other) == 4  # how it is pooled is not part of what is kept


def heavier(graph: Graph) -> Graph:
    graph.adjacency.weight[0] = 2
    return graph


def brighter(graph: Graph) -> Graph:
    assert isinstance(graph.features, Tensor)
    graph.features[0] += 1
    return graph


@pytest.mark.parametrize(
    ("change", "settings", "seed"),
    [
        (heavier, {}, 0),
        (brighter, {}, 0),
        (None, {"walk_q": 3.0}, 0),
        (None, {"affinity_lr": 0.5}, 0),
        (None, {}, 1),
    ],
)
def test_another_graph_setting_or_seed_is_kept_under_another_name(
    change: Callable[[Graph], Graph] | None,
    settings: dict[str, float],
    seed: int,
    graph: Graph,
    tmp_path: Path,
) -> None:
    patches(graph, quick("node2vec"), 1, seed=0, cache=tmp_path)
    other = change(graph) if change else graph
    patches(other, quick("node2vec", **settings), 1, seed=seed, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def cut_short(content: bytes) -> bytes:
    return content[: len(content) // 2]


def one_bit_flipped(content: bytes) -> bytes:
    return content[:-20] + bytes([content[-20] ^ 1]) + content[-19:]


def something_else(content: bytes) -> bytes:
    return b"not a table"


def nothing(content: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("damage", [cut_short, one_bit_flipped, something_else, nothing])
def test_a_damaged_cache_file_is_computed_and_written_again(
    damage: Callable[[bytes], bytes], graph: Graph, tmp_path: Path
) -> None:
    fresh = patches(graph, quick("deepwalk"), 1, seed=0, cache=tmp_path)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    again = patches(graph, quick("deepwalk"), 1, seed=0, cache=tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(fresh, again, strict=True))
    assert file.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [file]


def test_a_cache_folder_that_cannot_be_written_costs_nothing_but_time(
    graph: Graph, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    want = patches(graph, quick("deepwalk"), 1, seed=0, cache=None)
    got = patches(graph, quick("deepwalk"), 1, seed=0, cache=tmp_path / "taken")
    assert all(torch.equal(*pair) for pair in zip(got, want, strict=True))
    assert (tmp_path / "taken").read_text() == "a file, not a folder"


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            {"affinity": "line"},
            "affinity must be one of node2vec, deepwalk, vgae, none, got 'line'",
        ),
        ({"pooling": "max"}, "pooling must be one of mean, residual, ego, got 'max'"),
        ({"affinity_width": 0}, "affinity_width must be at least 1, got 0"),
        ({"affinity_epochs": 0}, "affinity_epochs must be at least 1, got 0"),
        ({"walks_per_node": -1}, "walks_per_node must be at least 1, got -1"),
        ({"walk_p": 0.0}, "walk_p must be a positive number, got 0.0"),
        ({"walk_q": float("nan")}, "walk_q must be a positive number, got nan"),
        ({"affinity_lr": -1.0}, "affinity_lr must be a positive number, got -1.0"),
        ({"walk_context": 21}, "at most walk_length (20), got 21"),
        ({"walk_length": 1}, "at most walk_length (1), got 10"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(settings: dict[str, Any], line: str) -> None:
    with pytest.raises(UserError) as error:
        AffinityConfig(**settings)
    assert line in str(error.value)


def test_no_affinity_has_no_patches(graph: Graph) -> None:
    with pytest.raises(UserError, match="affinity is none"):
        patches(graph, quick("none"), 1, seed=0, cache=None)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", KINDS)
def test_on_a_gpu_too_a_seed_fixes_the_patches(kind: str, graph: Graph) -> None:
    there = graph.to("cuda")
    state, here = torch.cuda.get_rng_state(), torch.get_rng_state()
    one = patches(there, quick(kind), 2, seed=3, cache=None)
    assert torch.equal(torch.cuda.get_rng_state(), state)
    assert torch.equal(torch.get_rng_state(), here)
    again = patches(there, quick(kind), 2, seed=3, cache=None)
    assert all(torch.equal(a, b) and a.is_cuda for a, b in zip(one, again, strict=True))
