"""The width of an embedding: what is read out, compressed to fewer columns."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.preprocessing import normalize
from stage_cases import SCORED
from torch.testing import assert_close

import muxgcl
from muxgcl import MuxGCL, Observer, UserError
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.runs import committee, compress
from muxgcl.runs.committee import fit_members, with_output
from muxgcl.runs.compress import learn_map
from muxgcl.runs.folder import Run
from muxgcl.runs.loop import Epoch
from muxgcl.runs.plan import Plan
from muxgcl.runs.work import embedding_width

OPTIONS = replace(SCORED, epochs=4, controls=False)


class Counts(Observer):
    """How many epochs were trained."""

    trained = 0

    def epochs(self, block: list[Epoch], total: int) -> None:
        self.trained += len(block)


def test_mux_hop_has_1024_columns_a_member_unless_fewer_are_read_out_or_others_asked_for() -> None:
    graph = Graph.from_data(planted(nodes=60, features=50))

    def width(method: str = "mux-hop", asked: int | None = None, **changes: Any) -> int | None:
        made = Plan.make(method, "best", overrides=changes, graph=graph, output_width=asked)
        return with_output(made, graph).output_width

    assert width(width=1024) == 1024  # of three scales
    assert width(width=100) is None
    assert width(width=1024, asked=0) is None
    assert width(width=1024, asked=7) == 7
    assert width("grace", width=2048) is None
    columns = 1024 - 2 * graph.num_features  # with two blocks of features
    assert columns % 3 == 0
    assert width(width=columns // 3) is None
    assert width(width=columns // 3 + 1) == 1024
    three = Plan.make("mux-hop", "best", overrides={"width": 1024}, graph=graph, members=3)
    assert with_output(three, graph).output_width == 3072


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("convolutions", [0, 1])
def test_columns_of_directed_and_typed_edges_are_counted(directed: bool, convolutions: int) -> None:
    edges = [(i, (i * 7 + 1) % 30) for i in range(30)] + [(i, (i + 3) % 30) for i in range(30)]
    frame = pd.DataFrame(edges, columns=["source", "target"]).assign(kind=["a", "b"] * 30)
    loaded = muxgcl.load(
        frame, features=np.eye(30), edge_type_column="kind", directed=directed, scale=False
    )
    graph = Graph.from_data(loaded.tensors)
    settings = {"hidden": 8, "width": 8, "projection": 8, "affinity": "none", "epochs": 1}
    settings |= {"convolutions": convolutions, "readout_features": 0.5, "readout_raw": 0.5}
    plan = Plan.make("mux-hop", "quick", "toy", settings, device="cpu", members=2)
    assert plan.settings.readout == "all"
    made, table, _ = fit_members(plan, graph)
    assert made.output is None
    assert embedding_width(plan, graph) == table.shape[1]


def test_a_directed_graph_has_the_default_width(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = [(i, (i * 7 + 1) % 30) for i in range(30)]
    graph = Graph.from_data(muxgcl.load(edges, features=np.eye(30), directed=True).tensors)
    plan = Plan.make("mux-hop", "quick", "toy", {"width": 8, "readout_raw": 0.0}, device="cpu")
    undirected = replace(graph, edge_kinds=None)
    monkeypatch.setattr(committee, "WIDTH", embedding_width(plan, undirected))
    assert with_output(plan, undirected).output_width is None
    assert with_output(plan, graph).output_width == committee.WIDTH


def test_a_run_and_the_estimator_compress_wide_readouts_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committee, "WIDTH", 6)
    data, small = planted(nodes=60), {"hidden": 8, "width": 8, "affinity": "none"}
    options = replace(OPTIONS, method="mux-hop", preset="best", settings=small, score=False)
    found = muxgcl.run(data, replace(options, out=tmp_path / "run"))
    full = muxgcl.run(data, replace(options, out=tmp_path / "full", output_width=0)).embedding
    assert found.embedding.shape == (60, 6)
    assert Run(found.path).config()["run"]["output_width"] == 6
    want = full @ Run(found.path).output_map().numpy()
    np.testing.assert_allclose(found.embedding, want, atol=1e-5)
    again = muxgcl.run(data, replace(options, out=found.path, resume=True))
    assert np.array_equal(again.embedding, found.embedding)
    more = muxgcl.run(data, replace(options, out=found.path, resume=True, members=2))
    assert more.embedding.shape == (60, 12)
    wide = replace(options, out=tmp_path / "full", resume=True)  # the default changes no run
    assert np.array_equal(muxgcl.run(data, wide).embedding, full)
    narrow = replace(options, out=tmp_path / "narrow", output_width=4)
    muxgcl.run(data, narrow)
    with pytest.raises(UserError, match=r"output_width = 4"):
        muxgcl.run(data, replace(narrow, output_width=None, resume=True))
    embedder = MuxGCL(preset="best", epochs=4, device="cpu", **small)
    np.testing.assert_allclose(embedder.fit_transform(data), found.embedding, atol=1e-5)
    np.testing.assert_allclose(embedder.transform(data), found.embedding, atol=1e-5)
    assert MuxGCL.load(found.path).output_width == 12
    assert MuxGCL.load(tmp_path / "full").output_width == 0


def test_another_width_is_had_by_resume_without_training(tmp_path: Path) -> None:
    data, options = planted(nodes=60), replace(OPTIONS, out=tmp_path / "run", output_width=5)
    muxgcl.run(data, options)
    seen = Counts()
    narrow = muxgcl.run(data, replace(options, output_width=3, resume=True), observer=seen)
    assert seen.trained == 0
    want = muxgcl.run(data, replace(options, output_width=3, out=tmp_path / "want"))
    assert np.array_equal(narrow.embedding, want.embedding)
    with pytest.raises(UserError, match=r"output_width = 3; none was asked for"):
        muxgcl.run(data, replace(options, output_width=None, resume=True))


@pytest.mark.parametrize("name", ["grace", "sgc", "deepwalk", "mux-hop"])
def test_every_method_has_an_output_width(tmp_path: Path, name: str) -> None:
    settings = {
        "mux-hop": {"hidden": 8, "width": 8, "affinity": "none"},
        "grace": {"width": 8},
        "deepwalk": {"width": 8, "walks": 1},
    }.get(name, {})
    epochs = None if name == "sgc" else 1
    options = replace(OPTIONS, method=name, settings=settings, preset="best", epochs=epochs)
    options = replace(options, score=False)
    data = planted(nodes=60)
    full = muxgcl.run(data, replace(options, out=tmp_path / "full")).embedding
    narrow = muxgcl.run(data, replace(options, out=tmp_path / "run", output_width=4))
    assert narrow.embedding.shape == (60, 4)
    want = full @ Run(narrow.path).output_map().numpy()
    np.testing.assert_allclose(narrow.embedding, want, atol=1e-5)


def test_the_width_of_directed_edges_is_that_of_both_directions(tmp_path: Path) -> None:
    data = planted(nodes=60)
    directed = muxgcl.load((data.edge_index, data.x), directed=True)
    small = {"hidden": 8, "width": 8, "affinity": "none"}
    options = replace(OPTIONS, method="mux-hop", preset="best", settings=small, score=False)
    plain, both = (
        muxgcl.run(graph, replace(options, out=tmp_path / name, output_width=0)).embedding.shape[1]
        for name, graph in {
            "plain": muxgcl.load((data.edge_index, data.x)),
            "both": directed,
        }.items()
    )
    assert both > plain
    wide = muxgcl.run(directed, replace(options, out=tmp_path / "wide", output_width=plain + 1))
    assert wide.embedding.shape == (60, plain + 1)


def test_an_output_wider_than_the_readout_is_refused_before_training(tmp_path: Path) -> None:
    options = replace(OPTIONS, members=2, output_width=17, out=tmp_path / "run")
    with pytest.raises(UserError, match="from 1 to 16, the width of what is read out, got 17"):
        muxgcl.run(planted(nodes=60), options)
    assert not (tmp_path / "run").exists()
    for wrong, told in (({"members": 0}, "1, got 0"), ({"output_width": -1}, "1, or 0 for all")):
        with pytest.raises(UserError, match=f"must be at least {told}"):
            muxgcl.run(planted(nodes=60), replace(OPTIONS, **wrong))


def test_the_map_is_the_leading_right_singular_vectors_of_unit_rows() -> None:
    table = torch.randn(50, 12) @ torch.randn(12, 12)
    rows = normalize(table.double().numpy())
    _, _, vectors = np.linalg.svd(rows)
    found = learn_map(table, 5).double().numpy()
    for k in range(5):
        want = vectors[k] * np.sign(vectors[k][np.abs(vectors[k]).argmax()])
        np.testing.assert_allclose(found[:, k], want, atol=1e-5)
    assert (found[np.abs(found).argmax(0), range(5)] > 0).all()


def test_a_map_of_full_width_keeps_every_product() -> None:
    table = torch.randn(30, 7)
    out = table @ learn_map(table, 7)
    assert_close(out @ out.T, table @ table.T, atol=1e-4, rtol=1e-4)


def test_blocks_of_rows_do_not_change_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    table = torch.randn(40, 9) @ torch.randn(9, 9)
    table[3] = 0
    whole = learn_map(table, 4)
    monkeypatch.setattr(compress, "ROWS", 7)
    assert_close(learn_map(table, 4), whole)


def test_many_columns_are_mapped_by_subspace_iteration_to_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scales = 0.7 ** torch.arange(60)
    table = torch.randn(200, 60) * scales
    exact = learn_map(table, 4)
    monkeypatch.setattr(compress, "EXACT", 10)
    monkeypatch.setattr(compress, "SPARE", 8)
    assert_close(learn_map(table, 4), exact, atol=1e-5, rtol=1e-4)


def test_where_no_column_stands_out_subspace_iteration_keeps_nearly_as_much() -> None:
    table = torch.randn(900, 700) * torch.arange(1, 701) ** -0.5
    unit = torch.nn.functional.normalize(table, dim=1)
    iterated = compress.iterated(table, 100, table.device)
    exact = compress.by_columns(table, 100, table.device).float()
    assert_close(iterated.T @ iterated, torch.eye(100), atol=1e-5, rtol=0)
    kept = (unit @ iterated).square().sum() / (unit @ exact).square().sum()
    assert 0.998 < kept < 1


def test_more_columns_than_nodes_are_mapped_too() -> None:
    table = torch.randn(6, 20)
    assert compress.by_rows(table, 6, table.device) is not None
    out = table @ learn_map(table, 6)
    assert_close(out @ out.T, table @ table.T, atol=1e-4, rtol=1e-4)


def test_few_rows_are_mapped_by_their_own_products_to_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = torch.randn(30, 40)
    table[4] = 0
    by_rows = learn_map(table, 5)
    assert compress.by_rows(table, 5, table.device) is not None
    monkeypatch.setattr(compress, "by_rows", lambda *given: None)
    assert_close(by_rows, learn_map(table, 5), atol=1e-5, rtol=1e-4)


def test_rows_with_fewer_directions_than_the_width_are_mapped_by_columns() -> None:
    table = torch.randn(30, 3) @ torch.randn(3, 40)
    assert compress.by_rows(table, 5, table.device) is None
    assert compress.by_rows(table, 31, table.device) is None
    out = table @ learn_map(table, 5)
    assert_close(out @ out.T, table @ table.T, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize(
    ("rows", "columns", "exact", "want"),
    [
        (30, 40, 40, "by_rows"),
        (40, 40, 40, "by_columns"),
        (30, 40, 34, "iterated"),  # 30 x 40 numbers are more than 34 x 34
        (30, 40, 35, "by_rows"),  # and fewer than 35 x 35
        (50, 40, 39, "iterated"),
    ],
)
def test_the_smaller_exact_way_to_the_map_is_taken(
    rows: int, columns: int, exact: int, want: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    for name in ("by_rows", "by_columns", "iterated"):
        monkeypatch.setattr(
            compress, name, lambda *given, name=name: asked.append(name) or torch.ones(columns, 3)
        )
    monkeypatch.setattr(compress, "EXACT", exact)
    learn_map(torch.randn(rows, columns), 3)
    assert asked == [want]


def test_subspace_iteration_multiplies_few_columns_more_than_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, asked = torch.randn(30, 60), []
    monkeypatch.setattr(compress, "SPARE", 32)
    monkeypatch.setattr(
        torch.linalg, "qr", lambda t, qr=torch.linalg.qr: asked.append(t.shape[1]) or qr(t)
    )
    compress.iterated(table, 4, table.device)
    assert set(asked) == {36}
    torch.manual_seed(1)
    one, two = (compress.iterated(table, 4, table.device) for _ in range(2))
    assert torch.equal(one, two)  # the caller's random numbers have no part in it
    asked.clear()
    compress.iterated(table, 50, table.device)
    assert set(asked) == {60}


def test_a_map_has_at_least_one_column_and_no_more_than_the_table() -> None:
    assert learn_map(torch.randn(30, 7), 1).shape == (7, 1)
    for wrong in (0, 8):
        with pytest.raises(UserError, match=f"from 1 to 7, .*, got {wrong}"):
            learn_map(torch.randn(30, 7), wrong)


def test_a_damaged_map_is_named(tmp_path: Path) -> None:
    data = planted(nodes=60)
    run = muxgcl.run(data, replace(OPTIONS, output_width=4, out=tmp_path / "run"))
    good = Run(run.path).output_map()
    Run(run.path).save_output_map(good[:5])
    with pytest.raises(UserError, match="is for 5 columns, but 8 are read out"):
        muxgcl.embed(run.path, data)
    for wrong in (good.double(), good.long()):
        Run(run.path).save_output_map(wrong)
        with pytest.raises(UserError, match=r"output\.safetensors is damaged: map must be"):
            muxgcl.embed(run.path, data)
    Run(run.path).save_output_map(good[:, :2])
    with pytest.raises(UserError, match="has 2 columns, but output_width is 4"):
        muxgcl.embed(run.path, data)
    Run(run.path).output_file.write_bytes(b"nonsense")
    with pytest.raises(UserError, match=r"output\.safetensors is damaged"):
        muxgcl.embed(run.path, data)
    Run(run.path).output_file.unlink()
    with pytest.raises(UserError, match="has no map to its output_width yet"):
        muxgcl.embed(run.path, data)
