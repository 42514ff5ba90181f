"""Known graphs: what is packaged, what lies in a data root, what is generated."""

import json
import os
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch_geometric.datasets as pyg
from torch_geometric.data import Data
from torch_geometric.io import read_npz, read_planetoid_data
from torch_geometric.utils import coalesce, degree, subgraph

from muxgcl.errors import UserError
from muxgcl.io import DATASETS, at_hand, data_root, load_dataset, planted
from muxgcl.io.load import load
from muxgcl.io.named import SPLIT
from muxgcl.io.same_nodes import same_nodes

pytestmark = pytest.mark.usefixtures("no_data_root")
SHARED = Path(__file__).parents[2].resolve().parent / "shared" / "datasets"
PUBLISHED = ["cora", "citeseer", "pubmed", "photo", "computers"]
needs_published = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the published raw files are not beside the repository"
)


def published(name: str) -> Data:
    """What PyG's own readers make of the published files."""
    dataset = DATASETS[name]
    folder = SHARED / dataset.folder / "raw"
    if dataset.folder.startswith("Planetoid"):
        return read_planetoid_data(str(folder), dataset.folder.split("/")[1])
    return read_npz(str(folder / dataset.files[0]))


def relabelled(data: Data, order: torch.Tensor) -> Data:
    """The same graph; its node i is node `order[i]` of `data`."""
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    return Data(x=data.x[order], y=data.y[order], edge_index=coalesce(place[data.edge_index]))


@pytest.mark.parametrize(
    "name",
    ["cora", "citeseer", *(pytest.param(name, marks=needs_published) for name in PUBLISHED[2:])],
)
def test_a_loaded_graph_is_in_normal_form(name: str) -> None:
    data, known = load_dataset(name, SHARED), DATASETS[name]
    assert (data.num_nodes, data.num_edges) == (known.nodes, known.edges)
    assert (data.num_features, len(data.y.unique())) == (known.features, known.classes)
    assert (data.x.dtype, data.y.dtype) == (torch.float32, torch.int64)
    assert data.is_undirected()
    assert not data.has_self_loops()
    assert torch.equal(data.edge_index, coalesce(data.edge_index))
    assert data.name == name


@needs_published
@pytest.mark.parametrize("name", PUBLISHED[1:])
def test_a_loaded_graph_is_what_pyg_reads_node_for_node(name: str) -> None:
    data, other = load_dataset(name, SHARED), published(name)
    assert torch.equal(data.x, other.x)
    assert torch.equal(data.y, other.y)
    assert torch.equal(data.edge_index, coalesce(other.edge_index))
    for mask in SPLIT:
        assert (mask in data) == (mask in other)
        assert mask not in data or torch.equal(data[mask], other[mask])


@needs_published
def test_cora_is_planetoids_graph_in_another_node_order() -> None:
    data, other = load_dataset("cora"), published("cora")
    again = relabelled(other, same_nodes(data, other))
    assert torch.equal(data.x, again.x)
    assert torch.equal(data.y, again.y)
    assert torch.equal(data.edge_index, again.edge_index)


@needs_published
def test_coras_public_split_is_carried_over_where_planetoids_files_are_at_hand() -> None:
    data, other = load_dataset("cora", SHARED), published("cora")
    assert torch.equal(data.x, load_dataset("cora").x)  # the node order stays the packaged one
    for mask, size in zip(SPLIT, (140, 500, 1000), strict=True):
        assert data[mask].sum() == size
        mine, theirs = (
            Data(
                x=graph.x[graph[mask]],
                y=graph.y[graph[mask]],
                edge_index=subgraph(graph[mask], graph.edge_index, relabel_nodes=True)[0],
            )
            for graph in (data, other)
        )
        same_nodes(mine, theirs)  # raises unless they are one graph


def test_packaged_cora_has_no_split_and_citeseer_has_planetoids() -> None:
    assert not any(mask in load_dataset("cora") for mask in SPLIT)
    data = load_dataset("citeseer")
    assert [int(data[mask].sum()) for mask in SPLIT] == [120, 500, 1000]
    assert not (data.train_mask & data.val_mask | data.val_mask & data.test_mask).any()
    assert data.y[data.train_mask].bincount().tolist() == [20] * 6


def test_citeseer_keeps_its_isolated_nodes_and_its_nodes_without_words() -> None:
    data = load_dataset("citeseer")
    isolated, wordless = degree(data.edge_index[0], data.num_nodes) == 0, data.x.sum(1) == 0
    assert isolated.sum() == 48
    assert wordless.sum() == 15
    assert not (isolated & wordless).any()


@needs_published
def test_loading_writes_nothing_into_the_data_root(tmp_path: Path) -> None:
    raw = tmp_path / "Amazon" / "Photo" / "raw"
    raw.parent.mkdir(parents=True)
    raw.symlink_to(SHARED / "Amazon" / "Photo" / "raw")
    load_dataset("photo", tmp_path)
    assert sorted(tmp_path.rglob("*")) == [raw.parent.parent, raw.parent, raw]


def test_an_unknown_name_is_answered_with_its_neighbours() -> None:
    with pytest.raises(UserError, match="did you mean cora") as caught:
        load_dataset("Corra")
    assert all(name in str(caught.value) for name in DATASETS)
    with pytest.raises(UserError, match=r"unknown dataset 'zzz'; there are cora"):
        at_hand("zzz")


def test_the_data_root_is_the_argument_then_the_variable_then_the_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MUXGCL_DATA", "/from/variable")
    assert data_root(Path("/given")) == Path("/given")
    assert data_root() == Path("/from/variable")
    monkeypatch.delenv("MUXGCL_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert data_root() == Path("/cache/muxgcl")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_root() == Path.home() / ".cache" / "muxgcl"


def test_files_and_addresses_are_those_of_pyg() -> None:
    def at(kind: type, name: str, url: str, folder: str) -> tuple[list[Path], str]:
        stub = kind.__new__(kind)  # its `__init__` would download
        stub.root, stub.name, stub.split = folder, name, "public"
        return [Path(path) for path in stub.raw_paths], url.rstrip("/")

    for name, kind, called in (
        ("cora", pyg.Planetoid, "Cora"),
        ("citeseer", pyg.Planetoid, "CiteSeer"),
        ("pubmed", pyg.Planetoid, "PubMed"),
        ("photo", pyg.Amazon, "photo"),
        ("computers", pyg.Amazon, "computers"),
        ("coauthor-cs", pyg.Coauthor, "CS"),
        ("coauthor-physics", pyg.Coauthor, "Physics"),
        ("dblp", pyg.CitationFull, "dblp"),
        ("wikics", pyg.WikiCS, "wikics"),
    ):
        known = DATASETS[name]
        ours = [Path(known.folder) / "raw" / file for file in known.files]
        url = kind.url.removesuffix("{}.npz")
        assert at(kind, called, url, kind.__name__) == (ours, known.url.rstrip("/"))


def test_a_data_file_cannot_run_code(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return os.mkdir, (str(tmp_path / "sprung"),)

    folder = tmp_path / "Planetoid" / "PubMed" / "raw"
    folder.mkdir(parents=True)
    for file in DATASETS["pubmed"].files:
        (folder / file).write_bytes(pickle.dumps(Trap(), protocol=2))
    with pytest.raises(UserError, match="which no data file needs"):
        load_dataset("pubmed", tmp_path)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("name", ["pubmed", "photo", "wikics"])
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"\x80\x02]q\x00(K"])
def test_a_broken_data_file_is_a_user_error(name: str, content: bytes, tmp_path: Path) -> None:
    folder = tmp_path / DATASETS[name].folder / "raw"
    folder.mkdir(parents=True)
    for file in DATASETS[name].files:
        (folder / file).write_bytes(content)
    with pytest.raises(UserError, match=f"files of {name} cannot be read"):
        load_dataset(name, tmp_path)


def test_wikics_links_become_edges_in_both_directions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "WikiCS" / "raw"
    folder.mkdir(parents=True)
    raw = {"features": [[0.5], [1], [-2]], "labels": [0, 1, 1], "links": [[1, 0], [2, 0], []]}
    (folder / "data.json").write_text(json.dumps(raw))
    tiny = replace(DATASETS["wikics"], nodes=3, features=1, classes=2)
    monkeypatch.setitem(DATASETS, "wikics", tiny)
    data = load_dataset("wikics", tmp_path)
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.x.tolist() == [[0.5], [1], [-2]]
    assert data.y.tolist() == [0, 1, 1]


@pytest.mark.parametrize("seed", range(5))
def test_a_shuffled_graph_is_matched_node_by_node(seed: int) -> None:
    graph = planted(nodes=40, features=6, seed=seed, isolated=4, featureless=40)  # many lookalikes
    shuffled = relabelled(graph, torch.randperm(40))
    again = relabelled(shuffled, same_nodes(graph, shuffled))
    assert torch.equal(again.y, graph.y)
    assert torch.equal(again.edge_index, graph.edge_index)


def test_a_graph_with_one_edge_moved_is_not_matched() -> None:
    graph = planted(seed=1)
    moved = graph.clone()
    moved.edge_index[:, 0] = torch.tensor([0, 119])
    with pytest.raises(UserError, match="not the same graph"):
        same_nodes(graph, moved)


def test_a_planted_graph_has_the_odd_nodes_that_were_asked_for() -> None:
    graph = planted(nodes=61, classes=4, features=40, seed=3, isolated=5, featureless=7)
    isolated = degree(graph.edge_index[0], 61) == 0
    assert isolated.nonzero().flatten().tolist() == [56, 57, 58, 59, 60]
    assert (graph.x.sum(1) == 0)[:7].all()
    assert (graph.x.sum(1) > 0)[7:].all()
    assert graph.is_undirected()
    assert not graph.has_self_loops()
    assert torch.equal(graph.y.bincount(), torch.tensor([16, 15, 15, 15]))


def test_a_planted_graph_follows_its_seed() -> None:
    one, again, other = planted(seed=1), planted(seed=1), planted(seed=2)
    assert torch.equal(one.x, again.x)
    assert torch.equal(one.edge_index, again.edge_index)
    assert not torch.equal(one.x, other.x)
    assert one.edge_index.tolist() != other.edge_index.tolist()


def test_planted_classes_show_in_edges_and_in_features() -> None:
    graph = planted(nodes=3000, classes=3, features=30, seed=0, homophily=0.7)
    source, target = graph.y[graph.edge_index]
    # 0.7 of the draws, and a third of the rest by chance
    assert (source == target).float().mean().item() == pytest.approx(0.7 + 0.3 / 3, abs=0.02)
    use = torch.stack([graph.x[graph.y == c].mean(0) for c in range(3)])  # [classes, features]
    own = torch.arange(30) % 3 == torch.arange(3)[:, None]
    assert use[own].mean().item() == pytest.approx(0.3, abs=0.02)
    assert use[~own].mean().item() == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize("wrong", [{"classes": 0}, {"degree": 1}, {"isolated": 115}])
def test_an_impossible_planted_graph_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UserError, match=next(iter(wrong))):
        planted(**wrong)


def test_load_says_how_a_dataset_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"no such file .*; load_dataset\('cora'\) loads the"):
        load("cora")
