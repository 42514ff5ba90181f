"""New nodes of a run's graph: as if the whole graph had been given, without training again."""

import csv
import sys
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_cases import ask

import muxgcl
from muxgcl import LoadOptions, RunOptions, UserError
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.runs.committee import fit_members
from muxgcl.runs.plan import Plan

OPTIONS = RunOptions(
    method="mux-hop",
    preset="quick",
    settings={"hidden": 8, "width": 8, "projection": 8, "projection_out": 8, "affinity": "none"},
    epochs=2,
    device="cpu",
    score=False,
)
KEPT = 50  # of 60 nodes are in the run's graph
LOAD = LoadOptions(id_column="id", label_column="topic")


def write(path: Path, rows: list[list[str]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


@pytest.fixture(scope="module")
def parts(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graph cut in two: 50 old nodes in one table, ten new ones and their links in others."""
    folder = tmp_path_factory.mktemp("parts")
    with (files / "nodes.csv").open() as file:
        head, *nodes = csv.reader(file)
    with (files / "edges.csv").open() as file:
        ends, *edges = csv.reader(file)
    old = {row[0] for row in nodes[:KEPT]}
    inside = [edge for edge in edges if set(edge) <= old]
    write(folder / "nodes.csv", [head, *nodes[:KEPT]])
    write(folder / "edges.csv", [ends, *inside])
    write(folder / "new.csv", [head, *nodes[KEPT:], ["alone", *nodes[0][1:]]])
    write(folder / "links.csv", [ends, *(edge for edge in edges if edge not in inside)])
    write(folder / "all.csv", [head, *nodes, ["alone", *nodes[0][1:]]])
    write(folder / "all-edges.csv", [ends, *edges])
    return folder


@pytest.fixture(scope="module")
def run(parts: Path) -> Path:
    load = LoadOptions(features=parts / "nodes.csv", label_column="topic")
    muxgcl.run(parts / "edges.csv", replace(OPTIONS, out=parts / "run", members=2), load=load)
    return parts / "run"


def test_new_nodes_are_embedded_as_in_the_whole_graph(parts: Path, run: Path) -> None:
    found = muxgcl.embed(run, new_nodes=parts / "new.csv", new_edges=parts / "links.csv", load=LOAD)
    load = LoadOptions(features=parts / "all.csv", label_column="topic")
    whole = muxgcl.embed(run, parts / "all-edges.csv", load=load)
    assert found.ids.tolist() == [*(f"n{i}" for i in range(KEPT, 60)), "alone"]
    assert whole.ids.tolist()[KEPT:] == found.ids.tolist()
    np.testing.assert_allclose(found.table, whole.table[KEPT:], atol=1e-6)


def test_a_node_without_edges_is_embedded_by_its_features(parts: Path, run: Path) -> None:
    without = muxgcl.embed(run, new_nodes=parts / "new.csv", load=LOAD)
    linked = muxgcl.embed(
        run, new_nodes=parts / "new.csv", new_edges=parts / "links.csv", load=LOAD
    )
    assert np.isfinite(without.table).all()
    np.testing.assert_allclose(without.table[-1], linked.table[-1], atol=1e-6)
    assert not np.allclose(without.table[0], linked.table[0], atol=1e-3)


def test_the_command_line_writes_the_rows_of_new_nodes_alone(
    parts: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "z.npz"
    words = ["embed", str(run), "--new-nodes", str(parts / "new.csv")]
    words += ["--new-edges", str(parts / "links.csv"), "--label-column", "topic"]
    status, _, told = ask(capsys, *words, "--out", str(out))
    assert status == 0, told
    want = muxgcl.embed(run, new_nodes=parts / "new.csv", new_edges=parts / "links.csv", load=LOAD)
    with np.load(out) as arrays:
        assert np.array_equal(arrays["embedding"], want.table)
        assert arrays["id"].tolist() == want.ids.tolist()
    assert "11 embeddings" in told
    assert "1 new node has no edges" in told


def test_how_new_nodes_are_read_is_told(
    parts: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.read_csv(parts / "new.csv", dtype=str)
    frame["f0"] += " kg"
    frame.to_csv(tmp_path / "new.csv", index=False)
    words = ["embed", str(run), "--new-nodes", str(tmp_path / "new.csv")]
    words += ["--label-column", "topic", "--out", str(tmp_path / "z.npy")]
    assert "column 'f0': numbers with 'kg'" in ask(capsys, *words)[2]


def test_one_embedding_is_called_one(
    parts: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (parts / "new.csv").read_text().splitlines()
    (tmp_path / "one.csv").write_text("\n".join(lines[:2]) + "\n")
    words = ["embed", str(run), "--new-nodes", str(tmp_path / "one.csv")]
    words += ["--label-column", "topic", "--out", str(tmp_path / "z.npy")]
    assert "1 embedding of width" in ask(capsys, *words)[2]


def test_a_graph_without_features_gives_new_nodes_features_of_their_links(
    parts: Path, tmp_path: Path
) -> None:
    run = muxgcl.run(parts / "edges.csv", replace(OPTIONS, out=tmp_path / "run")).path
    ids = write(tmp_path / "ids.csv", [["id"], *([f"n{i}"] for i in range(KEPT, 60))])
    found = muxgcl.embed(run, new_nodes=ids, new_edges=parts / "links.csv")
    whole = muxgcl.embed(run, parts / "all-edges.csv")
    place = {name: row for row, name in enumerate(whole.ids.tolist())}
    rows = [place[name] for name in found.ids.tolist()]
    np.testing.assert_allclose(found.table, whole.table[rows], atol=1e-5)


def test_new_nodes_have_structure_beside_their_columns_where_the_run_has(
    parts: Path, tmp_path: Path
) -> None:
    load = LoadOptions(
        features=parts / "nodes.csv", label_column="topic", structure=True, exclude="f1*"
    )
    run = muxgcl.run(parts / "edges.csv", replace(OPTIONS, out=tmp_path / "run"), load=load).path
    found = muxgcl.embed(run, new_nodes=parts / "new.csv", new_edges=parts / "links.csv", load=LOAD)
    whole = LoadOptions(features=parts / "all.csv", label_column="topic")
    want = muxgcl.embed(run, parts / "all-edges.csv", load=whole)
    np.testing.assert_allclose(found.table, want.table[KEPT:], atol=1e-5)


def test_a_column_of_new_nodes_that_cannot_be_read_may_be_left_out(
    parts: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.read_csv(parts / "new.csv")
    frame["tags"] = [["a"]] * len(frame)
    frame.to_parquet(tmp_path / "new.parquet")
    words = ["embed", str(run), "--new-nodes", str(tmp_path / "new.parquet")]
    words += ["--label-column", "topic", "--out", str(tmp_path / "z.npy")]
    status, _, told = ask(capsys, *words)
    assert status == 2
    assert "column 'tags' holds list<" in told
    assert ask(capsys, *words, "--exclude", "tags")[0] == 0
    want = muxgcl.embed(run, new_nodes=parts / "new.csv", load=LOAD).table
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), want, atol=1e-6)


def test_weights_of_new_links_count(parts: Path, run: Path, tmp_path: Path) -> None:
    rows = [["source", "target", "weight"], ["n50", "n0", "1"], ["n50", "n1", "9"]]
    heavy = write(tmp_path / "heavy.csv", rows)
    light = write(tmp_path / "light.csv", [row[:2] for row in rows])
    one, two = (
        muxgcl.embed(run, new_nodes=parts / "new.csv", new_edges=file, load=LOAD).table
        for file in (heavy, light)
    )
    assert not np.allclose(one[0], two[0], atol=1e-3)
    np.testing.assert_allclose(one[1:], two[1:], atol=1e-6)


def test_rows_of_a_matrix_follow_a_graph_that_is_numbered(tmp_path: Path) -> None:
    data = planted(nodes=60)
    result = muxgcl.run(data, replace(OPTIONS, out=tmp_path / "run"))
    x = data.x[:3].numpy()
    found = muxgcl.embed(result.path, data, new_nodes=x, new_edges=np.array([[60], [0]]))
    assert found.ids.tolist() == [60, 61, 62]
    assert found.table.shape == (3, result.embedding.shape[1])
    kept = muxgcl.embed(result.path, new_nodes=x, new_edges=np.array([[60], [0]]))
    assert np.array_equal(kept.table, found.table)
    with pytest.raises(UserError, match="48"):
        muxgcl.embed(result.path, data, new_nodes=x[:, :5])


def test_mistakes_about_new_nodes_are_one_line(parts: Path, run: Path, tmp_path: Path) -> None:
    new = parts / "new.csv"
    with pytest.raises(UserError, match="'n0' is in the graph of the run already"):
        muxgcl.embed(run, new_nodes=parts / "nodes.csv", load=LOAD)
    inside = write(tmp_path / "inside.csv", [["source", "target"], ["n0", "n1"]])
    with pytest.raises(UserError, match="expected a link of a new node"):
        muxgcl.embed(run, new_nodes=new, new_edges=inside, load=LOAD)
    strange = write(tmp_path / "strange.csv", [["source", "target"], ["n50", "nobody"]])
    with pytest.raises(UserError, match="'nobody', which is not in"):
        muxgcl.embed(run, new_nodes=new, new_edges=strange, load=LOAD)
    with pytest.raises(UserError, match="new edges are links of new nodes"):
        muxgcl.embed(run, new_edges=strange)
    few = write(tmp_path / "few.csv", [["id", "f0"], ["x", "1"]])
    with pytest.raises(UserError, match=r"columns .* are missing from .*few.csv; the model"):
        muxgcl.embed(run, new_nodes=few)
    with pytest.raises(UserError, match="columns of the table of new nodes"):
        muxgcl.embed(run, new_nodes=new, load=LoadOptions(features=new))


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(("directed", "typed"), [(True, False), (False, True), (True, True)])
def test_directions_types_and_weights_of_new_edges_are_those_of_the_whole_graph(
    tmp_path: Path, directed: bool, typed: bool, weighted: bool
) -> None:
    data, chance = planted(nodes=60), np.random.default_rng(3)
    pairs = data.edge_index.T.numpy()
    edges = pd.DataFrame(pairs, columns=["sender", "recipient"])[chance.random(len(pairs)) < 0.7]
    edges["strength"] = chance.uniform(0.5, 2, len(edges)).astype(np.float32)
    edges["kind"] = chance.choice(["call", "mail"], len(edges))
    nodes = pd.DataFrame(data.x.numpy()).assign(key=np.arange(60))
    old = (edges[["sender", "recipient"]] < KEPT).all(axis=1)
    files = {"e": edges[old], "n": nodes[:KEPT], "ne": edges[~old], "nn": nodes[KEPT:]}
    for name, frame in {**files, "all-e": edges, "all-n": nodes}.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    load = LoadOptions(
        features=tmp_path / "n.csv",
        id_column="key",
        directed=directed,
        edge_type_column="kind" if typed else None,
        weight_column="strength" if weighted else None,
    )
    run = muxgcl.run(tmp_path / "e.csv", replace(OPTIONS, out=tmp_path / "run"), load=load).path
    # the columns are called as in the run
    found = muxgcl.embed(run, new_nodes=tmp_path / "nn.csv", new_edges=tmp_path / "ne.csv")
    whole = replace(load, features=tmp_path / "all-n.csv")
    want = muxgcl.embed(run, tmp_path / "all-e.csv", load=whole)
    assert found.ids.tolist() == want.ids.tolist()[KEPT:]
    np.testing.assert_allclose(found.table, want.table[KEPT:], atol=1e-5)
    if typed:
        with pytest.raises(UserError, match="name the column of types"):
            muxgcl.embed(run, new_nodes=tmp_path / "nn.csv", new_edges=[(50, 0)])
        strange = edges[~old].assign(kind="letter")
        with pytest.raises(UserError, match="types of edges call, mail, this graph has"):
            muxgcl.embed(run, new_nodes=tmp_path / "nn.csv", new_edges=strange)


def test_the_benchmark_embeds_hidden_nodes_as_the_command_line_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_from_file_location(
        "hiding", Path(__file__).parents[2] / "benchmarks" / "new_nodes.py"
    )
    assert spec is not None
    assert spec.loader is not None
    hiding = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "hiding", hiding)
    spec.loader.exec_module(hiding)
    data = planted(nodes=60)
    parted = hiding.hide(data, 3)
    assert (len(parted.hidden), len(parted.kept)) == (6, 54)
    assert set(parted.hidden.tolist()).isdisjoint(hiding.hide(data, 4).hidden.tolist())
    graph = Graph.from_data(parted.rest)
    plan = Plan.make("mux-hop", "quick", "e", OPTIONS.overrides, graph=graph, device="cpu")
    committee, known, _ = fit_members(plan, graph)
    rows = hiding.embed_hidden(committee, parted, graph.device)

    def table(name: str, nodes: np.ndarray, first: int) -> Path:
        frame = pd.DataFrame(data.x[nodes].numpy()).add_prefix("f")
        frame.insert(0, "id", np.arange(first, first + len(nodes)))
        frame.to_csv(tmp_path / name, index=False)
        return tmp_path / name

    def links(name: str, ends: np.ndarray) -> str:
        frame = pd.DataFrame(ends.T, columns=["source", "target"])
        frame.to_csv(tmp_path / name, index=False)
        return str(tmp_path / name)

    old = table("n.csv", parted.kept, 0)
    new = str(table("nn.csv", parted.hidden, len(parted.kept)))
    edges = links("e.csv", parted.rest.edge_index.numpy())
    out = replace(OPTIONS, out=tmp_path / "run")
    trained = muxgcl.run(edges, out, load=LoadOptions(features=old))
    np.testing.assert_allclose(trained.embedding, known.numpy(), atol=1e-5)
    for case, ends in parted.links.items():
        words = ["embed", str(trained.path), "--new-nodes", new, "--out", str(tmp_path / "z.npy")]
        words += [] if ends is None else ["--new-edges", links("ne.csv", ends)]
        assert ask(capsys, *words)[0] == 0
        np.testing.assert_allclose(np.load(tmp_path / "z.npy"), rows[case], atol=1e-5)
    assert not np.allclose(rows["all edges"], rows["no edges"], atol=1e-3)
    whole = hiding.in_order(known.numpy(), rows["all edges"], parted)
    np.testing.assert_array_equal(whole[parted.hidden], rows["all edges"])
    splits = hiding.splits_of(data.y.numpy(), parted, 3)
    for split in splits:
        assert set(np.r_[split.train, split.val].tolist()) <= set(parted.kept.tolist())
        assert set(np.r_[split.test, split.uncounted].tolist()) <= set(parted.hidden.tolist())
