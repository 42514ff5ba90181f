"""The map of nodes: where nodes lie on it, and what the page is given to draw."""

import sys
from base64 import b64decode
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from report_cases import NAMES, bare_record, run_record
from sklearn.manifold import trustworthiness

from muxgcl.report import node_map as nodes
from muxgcl.report import project as layout


def unpack(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(b64decode(text), dtype=kind)


# maps ------------------------------------------------------------------------------------------


def test_pca_of_a_circle_in_space_is_a_circle() -> None:
    angle = np.linspace(0, 2 * np.pi, 7, endpoint=False)
    flat = np.stack([np.cos(angle), np.sin(angle), np.zeros(7)], 1)
    turned = flat @ np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    (pca,) = layout.maps(turned)
    distance = np.linalg.norm(pca.places[:, None] - pca.places, axis=-1)
    want = np.linalg.norm(flat[:, None] - flat, axis=-1)
    np.testing.assert_allclose(distance / distance.max(), want / want.max(), atol=1e-5)
    assert "100% of it" in pca.note


def test_tsne_keeps_groups_together() -> None:
    record = run_record()
    assert record.embedding is not None
    places = layout.maps(record.embedding)[1].places
    distance = np.linalg.norm(places[:, None] - places, axis=-1) + 9 * np.eye(len(places))
    assert (record.labels[distance.argmin(1)] == record.labels).mean() > 0.98


@pytest.mark.parametrize(("n", "steps"), [(240, 500), (1_100, 400)])
def test_tsne_of_many_nodes_takes_fewer_steps_and_keeps_all_neighbourhoods(
    n: int, steps: int
) -> None:
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle), np.full(n, 0.3)], 1).astype(np.float32)
    tsne = layout.maps(ring)[1]
    assert f"{steps} steps" in tsne.note
    assert trustworthiness(ring, tsne.places, n_neighbors=10) > 0.995


def test_nodes_beyond_the_tsne_sample_stand_among_their_nearest_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(layout, "TSNE_NODES", 60)
    record = run_record(100)
    assert record.embedding is not None
    tsne = layout.maps(record.embedding)[1]
    unit = record.embedding / np.linalg.norm(record.embedding, axis=1, keepdims=True)
    chosen = np.sort(np.random.default_rng(0).permutation(100)[:60])
    rest = np.setdiff1d(np.arange(100), chosen)
    for node in rest:
        nearest = chosen[np.linalg.norm(unit[chosen] - unit[node], axis=1).argsort()[:3]]
        corner = tsne.places[nearest]
        assert (corner.min(0) - 1e-5 <= tsne.places[node]).all()
        assert (tsne.places[node] <= corner.max(0) + 1e-5).all()
    assert "on 60 nodes drawn at random" in tsne.note


@pytest.mark.parametrize("shape", [(1, 4), (2, 4), (3, 1), (9, 1), (30, 2)])
@pytest.mark.parametrize("kind", ["random", "equal", "zero"])
def test_every_map_lies_in_the_unit_square(shape: tuple[int, int], kind: str) -> None:
    rows = np.random.default_rng(0).normal(size=shape)
    rows = {"random": rows, "equal": np.ones(shape), "zero": np.zeros(shape)}[kind]
    for found in layout.maps(rows.astype(np.float32)):
        assert found.places.shape == (len(rows), 2)
        assert found.places.min() >= -1e-6
        assert found.places.max() <= 1 + 1e-6


def test_umap_is_there_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    class UMAP:
        def __init__(self, **settings: Any) -> None:
            assert settings["n_neighbors"] == 15

        def fit_transform(self, rows: np.ndarray) -> np.ndarray:
            return rows[:, 1:3]

    umap = ModuleType("umap")
    umap.UMAP, umap.__spec__ = UMAP, ModuleSpec("umap", None)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "umap", umap)
    record = run_record(40)
    assert record.embedding is not None
    assert [found.name for found in layout.maps(record.embedding)] == ["PCA", "t-SNE", "UMAP"]


# the nodes' payload ----------------------------------------------------------------------------


@pytest.fixture
def flat_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Maps at no cost, where they are not what is tested."""
    square = lambda rows: [layout.Map("PCA", "", np.zeros((len(rows), 2), np.float32))]  # noqa: E731
    monkeypatch.setattr(nodes, "maps", square)


@pytest.mark.usefixtures("flat_maps")
class TestPayload:
    def test_labels_come_back_by_name_and_a_missing_one_as_none(self) -> None:
        labels = run_record().labels.copy()
        labels[[3, 7]] = -1
        column = nodes.payload(run_record(labels=labels))["columns"][0]
        codes = unpack(column["codes"], "<u2")
        assert (codes == nodes.NONE).nonzero()[0].tolist() == [3, 7]
        names = [column["names"][code] for code in codes[codes != nodes.NONE]]
        assert names == [NAMES[label] for label in labels[labels >= 0]]
        assert column["counts"] == np.bincount(labels[labels >= 0]).tolist()

    def test_where_colours_do_not_go_round_the_commonest_kinds_come_first(self) -> None:
        kinds = np.repeat([f"kind {k:02d}" for k in range(15)], range(1, 16))  # 120 nodes
        record = run_record(120, columns={"kind": kinds})
        column = nodes.payload(record)["columns"][-1]
        assert column["names"] == [f"kind {k:02d}" for k in reversed(range(15))]
        codes = unpack(column["codes"], "<u2")
        assert [column["names"][code] for code in codes] == kinds.tolist()

    def test_numbers_come_back_and_few_whole_numbers_are_kinds(self) -> None:
        size = np.random.default_rng(1).normal(size=240).astype(np.float32)
        size[5] = np.nan
        record = run_record(columns={"size": size, "stage": np.arange(240) % 3, "gap": size > 0})
        number, stage, gap = nodes.payload(record)["columns"][-3:]
        np.testing.assert_array_equal(unpack(number["values"], "<f4"), size)
        low, high = np.nanpercentile(size, [2, 98])
        assert (number["low"], number["high"]) == pytest.approx((low, high))
        assert stage["names"] == ["0", "1", "2"]
        assert gap["names"] == ["False", "True"]

    @pytest.mark.parametrize("width", [16, 200])
    def test_clusters_of_clear_groups_are_the_groups(self, width: int) -> None:
        record = run_record(240, width)
        column = nodes.payload(record)["columns"][1]
        assert column["name"] == "k-means cluster (k = 4)"
        codes = unpack(column["codes"], "<u2")
        assert len(set(zip(codes.tolist(), record.labels.tolist(), strict=True))) == 4

    def test_of_wide_rows_each_is_nearest_to_the_mean_of_its_own_cluster(self) -> None:
        rows = np.random.default_rng(0).normal(size=(400, 300))  # no groups, no main directions
        clusters = nodes.shown(run_record(400, embedding=rows.astype(np.float32))).clusters
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        means = np.stack([unit[clusters == k].mean(0) for k in range(4)])
        distance = np.linalg.norm(unit[:, None] - means, axis=-1)
        assert (distance.argmin(1) == clusters).all()

    @pytest.mark.parametrize("kinds", [1, 3])
    def test_wide_rows_have_no_more_clusters_than_there_are_different_ones(
        self, kinds: int
    ) -> None:
        rows = np.random.default_rng(0).normal(size=(kinds, 200)).astype(np.float32)
        which = np.arange(60) % kinds
        clusters = nodes.shown(bare_record(embedding=rows[which])).clusters
        assert len(set(zip(clusters.tolist(), which.tolist(), strict=True))) == kinds
        assert set(clusters.tolist()) == set(range(kinds))

    @pytest.mark.parametrize("width", [16, 200])
    def test_nearest_nodes_are_those_of_the_exact_cosines(self, width: int) -> None:
        record = run_record(300, width)
        assert record.embedding is not None
        vectors = nodes.payload(record)["vectors"]
        rows = unpack(vectors["rows"], "i1").reshape(300, vectors["width"]).astype(float)
        assert vectors["width"] <= nodes.VECTOR_WIDTH
        unit = record.embedding / np.linalg.norm(record.embedding, axis=1, keepdims=True)
        exact = unit @ unit.T
        found = vectors["step"] ** 2 * rows @ rows.T
        few = np.random.default_rng(0).permutation(300)[:50]
        worst = np.abs(found - exact)[few].max()
        assert worst == pytest.approx(vectors["error"], abs=1e-5)
        assert worst < 0.05
        off = np.eye(300, dtype=bool)
        nearest = np.where(off, -1, found).argmax(1)
        assert (np.where(off, -1, exact).max(1) - exact[range(300), nearest]).max() <= 2 * worst

    def test_each_edge_is_sent_once_and_degrees_are_counted(self) -> None:
        record = run_record()
        data = nodes.payload(record)
        sent = unpack(data["edges"], "<u2").reshape(-1, 2)
        want = {(min(a, b), max(a, b)) for a, b in record.edge_index.T.tolist()}
        assert len(sent) == len(want)
        assert set(map(tuple, sent.tolist())) == want
        degree = next(column for column in data["columns"] if column["name"] == "degree")
        want_degree = [(record.edge_index[0] == node).sum() for node in range(240)]
        assert unpack(degree["values"], "<f4").tolist() == want_degree

    def test_of_a_large_graph_a_sample_is_shown_with_the_edges_inside_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        record = run_record()
        whole = nodes.shown(record, 50)
        monkeypatch.setattr(nodes, "shown", lambda record: whole)
        data = nodes.payload(record)
        assert data["total"] == 240
        names = np.array(data["ids"])
        assert len(set(data["ids"])) == 50
        sent = names[unpack(data["edges"], "<u2")].reshape(-1, 2)
        pairs = np.sort(record.edge_index, axis=0).T.tolist()
        known = {(f"n{a}", f"n{b}") for a, b in pairs}
        inside = {pair for pair in known if set(pair) <= set(data["ids"])}
        assert set(map(tuple, sent.tolist())) == inside

    def test_columns_beyond_the_budget_are_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(nodes, "COLUMN_BYTES", 2_500)
        data = nodes.payload(run_record())
        names = ["label", "k-means cluster (k = 4)", "degree", "year", "size"]
        kept = [column["name"] for column in data["columns"]]
        assert 0 < len(kept) < len(names)
        assert sorted(kept + data["leftOut"]) == sorted(names)

    def test_no_labels_no_edges_no_ids(self) -> None:
        record = bare_record(embedding=run_record(20).embedding)
        data = nodes.payload(record)
        assert [column["name"] for column in data["columns"]] == ["k-means cluster (k = 8)"]
        assert data["ids"] == [str(k) for k in range(20)]
        assert data["edges"] is None
