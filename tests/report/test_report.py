"""What a report is made of: maps, the nodes' payload, scores, colours, run folders read back."""

import json
import sys
from base64 import b64decode
from importlib.machinery import ModuleSpec
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from report_cases import NAMES, bare_record, figure, run_record

from muxgcl.errors import UserError
from muxgcl.report import node_map as nodes
from muxgcl.report import project as layout
from muxgcl.report import read_run
from muxgcl.report.palette import CATEGORIES
from muxgcl.report.scores import flatten
from muxgcl.runs.folder import Run


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

    def test_clusters_of_clear_groups_are_the_groups(self) -> None:
        record = run_record()
        column = nodes.payload(record)["columns"][1]
        assert column["name"] == "k-means cluster (k = 4)"
        codes = unpack(column["codes"], "<u2")
        assert len(set(zip(codes.tolist(), record.labels.tolist(), strict=True))) == 4

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


# scores and colours ----------------------------------------------------------------------------


def test_scores_of_every_shape_are_found() -> None:
    scores = {
        "holdout": {"accuracy": figure(84.25), "per_split": {"accuracy": [84.0]}},
        "paper": {
            "accuracy": figure(86.0, n=3),
            "optimistic": True,
            "best_epoch": 299,
            "unselected": figure(84.9, n=300),
        },
        "link": {"auc": 0.93},
        "controls": {"raw": {"accuracy": figure(70.5)}, "mine": {"link": {"auc": 0.5}}},
    }
    found = [(s.who, s.protocol, s.measure, s.mean, s.optimistic) for s in flatten(scores)]
    assert found == [
        ("", "holdout", "accuracy", 84.25, False),
        ("", "paper", "accuracy", 86.0, True),
        ("", "paper", "unselected", 84.9, False),
        ("", "link", "auc", 0.93, False),
        ("raw features", "holdout", "accuracy", 70.5, False),
        ("mine", "link", "auc", 0.5, False),
    ]


def test_a_score_says_its_spread_only_where_it_was_repeated() -> None:
    once, often = flatten({"link": {"auc": 0.93}, "holdout": {"accuracy": figure(84.256, 0.914)}})
    assert (str(once), str(often)) == ("0.930", "84.26 ± 0.91")


def lab(colour: str, eye: list[list[float]]) -> np.ndarray:
    """CIELAB of what an eye sees; the matrix acts on linear RGB."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = to_xyz @ np.clip(np.array(eye) @ linear, 0, 1) / [0.9505, 1, 1.089]
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


EYES = {  # Machado, Oliveira and Fernandes 2009, severity 1
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}


@pytest.mark.parametrize("eye", EYES)
def test_no_two_colours_look_alike_to_any_eye(eye: str) -> None:
    seen = [lab(colour, EYES[eye]) for colour in CATEGORIES]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 19  # 2 is just visible


# run folders -----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = Run(tmp_path / "run")
    tables: dict[str, dict[str, Any]] = {
        "run": {"dataset": "cora", "method": "grace", "seed": 3, "command": "muxgcl run cora"},
        "data": {"nodes": 4, "edges": 6, "features": 2, "fingerprint": "ab", "notes": ["a rule"]},
        "train": {"epochs": 2},
        "method": {"width": 8},
        "versions": {"torch": "2.13.0"},
    }
    run.write_config(tables)
    return run.path


def test_a_run_folder_that_was_only_begun_is_read(folder: Path) -> None:
    record = read_run(folder)
    assert record.title == "grace on cora"
    assert record.embedding is None
    assert record.data_summary == {"nodes": 4, "edges": 6, "features": 2}
    assert record.data_notes == ["a rule"]
    assert record.command == "muxgcl run cora"
    assert record.settings["run"] == {"dataset": "cora", "method": "grace", "seed": 3}
    assert (record.seconds, record.epoch_ms) == (None, None)


def test_a_finished_run_folder_is_read_whole(folder: Path) -> None:
    run = Run(folder)
    run.log([{"epoch": e, "loss": 1.0, "terms": {}, "ms": float(e)} for e in (1, 2, 6)])
    run.save_embeddings(np.array(["a", "b", "c", "d"]), torch.arange(8.0).reshape(4, 2))
    run.save_scores({"holdout": {"accuracy": figure(80.0)}})
    wanted = {"confusion": [[1, 0], [0, 1]], "peak_mib": 5.0, "affinity_weights": {"0": {}}}
    (folder / "diagnostics.json").write_text(json.dumps(wanted))
    np.savez(
        folder / "nodes.npz",
        label=np.array([0, 1, -1, 0]),
        label_names=np.array(["x", "y"]),
        edge_index=np.array([[0, 1], [1, 0]]),
        **{"column:year": np.array([1, 2, 3, 4]), "column:file": np.array(["a", "b", "", "a"])},
    )
    record = read_run(folder)
    assert record.ids.tolist() == ["a", "b", "c", "d"]
    assert record.labels.tolist() == [0, 1, -1, 0]
    assert record.label_names == ["x", "y"]
    assert list(record.columns) == ["year", "file"]
    assert record.edge_index.shape == (2, 2)
    assert record.confusion == [[1, 0], [0, 1]]
    assert (record.seconds, record.epoch_ms, record.peak_mib) == (0.009, 2.0, 5.0)
    assert flatten(record.scores)[0].mean == 80.0


@pytest.mark.parametrize("name", ["diagnostics.json", "nodes.npz"])
@pytest.mark.parametrize("content", [b"", b"[1, 2", b"PK\x03\x04 cut"])
def test_a_damaged_file_is_named_in_one_line(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(UserError, match=f"{name} is (damaged|empty)") as caught:
        read_run(folder)
    assert "\n" not in str(caught.value)


def test_nothing_is_unpickled(folder: Path) -> None:
    np.savez(folder / "nodes.npz", label=np.array([{"a": 1}], dtype=object))
    with pytest.raises(UserError, match=r"nodes.npz, array .label. holds Python objects"):
        read_run(folder)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"ids": np.arange(3)}, "expected 240 ids, one a node, got 3"),
        ({"labels": np.zeros(9, int)}, "expected 240 labels, one a node, got 9"),
        ({"columns": {"year": np.arange(2)}}, "expected 240 year, one a node, got 2"),
        ({"edge_index": np.array([[0], [240]])}, "edges between nodes 0 and 239"),
        ({"edge_index": np.array([1, 2])}, r"edge_index of shape \[2, edges\]"),
        ({"embedding": np.full((240, 2), np.nan)}, "must be finite"),
        ({"embedding": np.zeros((0, 2))}, r"got shape \(0, 2\)"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_parts_that_do_not_fit_are_refused(part: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        run_record(**part)
