"""A newcomer's first hour: their own data in, a default run, its verdict, new nodes, ways out."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from cli_cases import ask, command_line
from safetensors.numpy import load_file as load_safetensors
from torch_geometric.data import Data

from muxgcl import MuxGCL, load
from muxgcl.io.load import Loaded
from muxgcl.io.save import WRITERS

NODES, NEW = 2_000, 10  # the last ten are new: the run does not see them
SIZES = {"classes": 6, "features": 24, "degree": 8, "homophily": 0.7, "signal": 0.5, "words": 6}
# a default run but for its length and widths, which a test has no time for
SHORT = ["--epochs", "2", "--splits", "2"]
SHORT += [
    f"--set={name}={value}"
    for name, value in {
        **dict.fromkeys(("hidden", "width", "projection", "projection_out"), 32),
        "affinity_epochs": 1,
    }.items()
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    folder = tmp_path_factory.mktemp("made") / "graph"
    words = ["datasets", "make", "sbm", "--out", str(folder), "--nodes", str(NODES)]
    assert command_line([*words, *(f"--{name}={value}" for name, value in SIZES.items())]) == 0
    return load(folder)


# --- ten routes in -------------------------------------------------------------------------------


class Small:
    """The first 120 nodes of the graph, as tables; names are in no order."""

    def __init__(self, graph: Loaded) -> None:
        keep = 120
        ends = graph.data.edge_index.numpy()
        ends = ends[:, (ends < keep).all(0) & (ends[0] < ends[1])]
        self.ids = np.array([f"n{7 * place % keep}" for place in range(keep)])
        self.ends = ends
        self.x = graph.data.x[:keep].numpy()
        self.topic = np.array(["art", "biology", "chess", "dance", "ethics", "film"])[
            graph.data.y[:keep].numpy()
        ]
        names = [f"word{place}" for place in range(self.x.shape[1])]
        self.nodes = pd.DataFrame(self.x, columns=names)
        self.nodes.insert(0, "person", self.ids)
        self.nodes["topic"] = self.topic

    def edges(self, *names: str) -> pd.DataFrame:
        return pd.DataFrame(dict(zip(names, self.ids[self.ends], strict=True)))

    @property
    def network(self) -> nx.Graph:
        network = nx.Graph()
        for record in self.nodes.to_dict("records"):
            network.add_node(record.pop("person"), **record)
        network.add_edges_from(self.edges("a", "b").itertuples(index=False))
        return network

    @property
    def adjacency(self) -> sp.csr_array:
        shape = (len(self.ids),) * 2
        return sp.csr_array((np.ones(self.ends.shape[1]), tuple(self.ends)), shape=shape)


def csv(
    small: Small, folder: Path, *names: str, header: bool = True, separator: str = ","
) -> Loaded:
    how = {"index": False, "sep": separator}
    small.edges(*names).to_csv(folder / "edges.csv", header=header, **how)
    small.nodes.to_csv(folder / "nodes.csv", **how)
    return load(folder / "edges.csv", features=folder / "nodes.csv", label_column="topic")


def parquet(small: Small, folder: Path) -> Loaded:
    """After some rows were dropped, so that pandas writes its index, too."""
    nodes = pd.concat([small.nodes[:3], small.nodes]).reset_index(drop=True)[3:]
    nodes.index = nodes.index.to_numpy()
    nodes.to_parquet(folder / "nodes.parquet")
    small.edges("from", "to").to_parquet(folder / "edges.parquet")
    return load(folder / "edges.parquet", features=folder / "nodes.parquet", label_column="topic")


def xml(small: Small, folder: Path, write: Callable[..., None], name: str) -> Loaded:
    write(small.network, folder / name)
    return load(folder / name, label_column="topic")


def npz(small: Small, folder: Path) -> Loaded:
    sp.save_npz(folder / "graph.npz", small.adjacency)
    np.save(folder / "x.npy", small.x)
    return load(folder / "graph.npz", features=folder / "x.npy", labels=small.topic)


def tuples(small: Small) -> Loaded:
    edges = list(small.edges("a", "b").itertuples(index=False, name=None))
    return load(edges, features=small.nodes, label_column="topic")


def data(small: Small) -> Data:
    y = np.unique(small.topic, return_inverse=True)[1]
    tensors = {"x": small.x, "edge_index": small.ends, "y": y}
    return Data(**{name: torch.from_numpy(array) for name, array in tensors.items()})


ROUTES: dict[str, Callable[[Small, Path], Loaded]] = {
    "CSV without a header": lambda s, p: csv(s, p, "a", "b", header=False),
    "CSV with a header of one's own words": lambda s, p: csv(s, p, "Person A", "Person B"),
    "CSV with semicolons": lambda s, p: csv(s, p, "sender", "receiver", separator=";"),
    "Parquet": parquet,
    "pandas": lambda s, _: load((s.edges("u", "v"), s.nodes), label_column="topic"),
    "NetworkX": lambda s, _: load(s.network, label_column="topic"),
    "GraphML": lambda s, p: xml(s, p, nx.write_graphml, "graph.graphml"),
    "GEXF": lambda s, p: xml(s, p, nx.write_gexf, "graph.gexf"),
    "scipy": lambda s, _: load((s.adjacency, s.x), labels=s.topic),
    "PyG": lambda s, _: load(data(s)),
    "npz and npy": npz,
    "edge index": lambda s, _: load((s.ends, s.x), labels=s.topic),
    "tuples": lambda s, _: tuples(s),
}


@pytest.mark.parametrize("route", ROUTES)
def test_every_route_gives_the_same_graph_in_the_same_rows(
    route: str, graph: Loaded, tmp_path: Path
) -> None:
    small = Small(graph)
    found = ROUTES[route](small, tmp_path)
    want = ROUTES["pandas"](small, tmp_path)
    named = found.ids.dtype.kind == "U"  # arrays have no names: their nodes are 0, 1, ...
    assert found.ids.tolist() == (small.ids.tolist() if named else list(range(len(small.ids))))
    assert torch.equal(found.data.edge_index, want.data.edge_index)
    assert torch.equal(found.data.x, want.data.x)
    assert torch.equal(found.data.y, want.data.y)


def test_rows_of_an_embedder_are_the_nodes_of_the_network(graph: Loaded) -> None:
    network = Small(graph).network
    frame = MuxGCL(epochs=1, output_width=4).set_output(transform="pandas").fit_transform(network)
    assert frame.index.tolist() == list(network)


# --- the default run, its verdict and what comes after -------------------------------------------


@pytest.fixture(scope="module")
def folder(graph: Loaded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graph as a person has it: two CSV files, and two more of what came later."""
    folder = tmp_path_factory.mktemp("mine")
    old = NODES - NEW
    ends = graph.data.edge_index.numpy()
    ends = ends[:, ends[0] < ends[1]]
    edges = pd.DataFrame({"citing": ends[0], "cited": ends[1]})
    edges[(ends < old).all(0)].to_csv(folder / "edges.csv", index=False)
    edges[~(ends < old).all(0)].to_csv(folder / "later-edges.csv", index=False)
    nodes = pd.DataFrame(graph.data.x.numpy().astype(int)).add_prefix("word")
    nodes.insert(0, "paper", np.arange(NODES))
    nodes["year"] = 1990 + np.arange(NODES) % 30
    nodes["topic"] = [f"topic {label}" for label in graph.data.y.tolist()]
    nodes[:old].to_csv(folder / "nodes.csv", index=False)
    nodes[old:].drop(columns="topic").to_csv(folder / "later-nodes.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def told(folder: Path) -> str:
    """What the run says on standard output."""
    words = ["run", str(folder / "edges.csv"), "--features", str(folder / "nodes.csv")]
    words += ["--label-column", "topic", "--device", "cpu", "--out", str(folder / "run"), *SHORT]
    said = StringIO()
    with redirect_stdout(said):
        assert command_line(words) == 0
    return said.getvalue()


@pytest.fixture(scope="module")
def run(folder: Path, told: str) -> Path:
    return folder / "run"


def test_the_default_run_ends_with_a_verdict(
    told: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    *_, sentence = told.strip().splitlines()
    assert sentence.startswith("training ")
    assert "paired difference" in sentence
    for control in ("raw features", "A X", "A^2 X", "untrained encoder", "majority class"):
        assert f"  {control} " in told
    status, text, _ = ask(capsys, "info", str(run), "--json")
    assert status == 0
    assert json.loads(text)["verdict"]["sentence"] == sentence


def test_new_nodes_are_embedded_by_name(
    folder: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--new-nodes", str(folder / "later-nodes.csv")]
    words += ["--new-edges", str(folder / "later-edges.csv"), "--out", str(folder / "later.csv")]
    status, _, err = ask(capsys, "embed", str(run), *words)
    assert status == 0, err
    found = pd.read_csv(folder / "later.csv", index_col="id")
    assert found.index.tolist() == list(range(NODES - NEW, NODES))
    assert np.isfinite(found.to_numpy()).all()


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def npz_of(path: Path) -> tuple[list[Any], np.ndarray]:
    with np.load(path) as arrays:
        return arrays["id"].tolist(), arrays["embedding"]


def frame_of(frame: pd.DataFrame) -> tuple[list[Any], np.ndarray]:
    frame = frame.set_index("id")
    return frame.index.tolist(), frame.to_numpy()


def safetensors_of(path: Path) -> tuple[list[Any], np.ndarray]:
    tensors = load_safetensors(path)
    return tensors["id"].tolist(), tensors["embedding"]


def vec_of(path: Path) -> tuple[list[Any], np.ndarray]:
    sizes, *lines = path.read_text().splitlines()
    rows = np.array([line.split(" ") for line in lines], float)
    assert sizes == f"{len(rows)} {rows.shape[1] - 1}"
    return rows[:, 0].tolist(), rows[:, 1:]


def neo4j_of(path: Path) -> tuple[list[Any], np.ndarray]:
    frame = pd.read_csv(path)
    rows = [cell.split(";") for cell in frame["embedding:float[]"]]
    return frame["id:ID"].tolist(), np.array(rows, float)


WAYS_OUT: dict[str, Callable[[Path], tuple[list[Any], np.ndarray]]] = {
    ".npz": npz_of,
    ".npy": lambda path: (list(range(NODES - NEW)), np.load(path)),
    ".csv": lambda path: frame_of(pd.read_csv(path)),
    ".parquet": lambda path: frame_of(pd.read_parquet(path)),
    ".arrow": lambda path: frame_of(pd.read_feather(path)),
    ".feather": lambda path: frame_of(pd.read_feather(path)),
    ".safetensors": safetensors_of,
    ".vec": vec_of,
    ".neo4j.csv": neo4j_of,
}


@pytest.mark.parametrize("ending", WAYS_OUT)
def test_embeddings_leave_with_their_ids(
    ending: str, folder: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / f"z{ending}"
    status, _, err = ask(capsys, "embed", str(run), "--out", str(out))
    assert status == 0, err
    ids, found = WAYS_OUT[ending](out)
    want_ids, want = npz_of(run / "embeddings.npz")
    assert ids == want_ids
    np.testing.assert_allclose(found, want, atol=1e-6)


def test_every_way_out_is_tried() -> None:
    assert {*WAYS_OUT, ".faiss"} == set(WRITERS)


def test_a_faiss_index_finds_each_node_nearest_to_itself(
    folder: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faiss = pytest.importorskip("faiss", reason="the extra faiss is not installed")
    status, _, err = ask(capsys, "embed", str(run), "--out", str(folder / "z.faiss"))
    assert status == 0, err
    index = faiss.read_index(str(folder / "z.faiss"))
    ids, rows = npz_of(run / "embeddings.npz")
    cosines, found = index.search(unit(rows[:5]), 1)
    np.testing.assert_allclose(cosines[:, 0], 1, atol=1e-5)
    assert found[:, 0].tolist() == ids[:5]


def test_the_perceptron_leaves_as_onnx(
    folder: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnx", reason="the extra onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    status, _, err = ask(capsys, "export", str(run), "--out", str(folder / "f.onnx"))
    assert status == 0, err
    session = runtime.InferenceSession(str(folder / "f.onnx"))
    graph = load(folder / "edges.csv", features=folder / "nodes.csv", label_column="topic")
    (f,) = session.run(["f"], {"x": graph.data.x.numpy()})
    first = npz_of(run / "embeddings.npz")[1][:, : f.shape[1]]  # scale 0 of all, side by side
    np.testing.assert_allclose(unit(f), unit(first), atol=1e-5)


# --- the report, in a browser --------------------------------------------------------------------

MISSING = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
FLAGS = "headless no-sandbox disable-gpu no-first-run disable-background-networking disable-sync"
TEXTS = (
    "h1, h2, nav a, .tile b, .tile span, .verdict, .legend button, td, th, dt, dd, pre, svg text"
)
OVERLAPS = """
const seen = [...document.querySelectorAll(arguments[0])]
  .filter((e) => e.textContent.trim() && !e.closest('[hidden]'))
  .filter((e) => !/rotate\\(-(?!0|90)/.test(e.getAttribute('transform')))  // slanted
  .map((e) => [e, e.getBoundingClientRect()]).filter(([, r]) => r.width && r.height);
const found = [];
seen.forEach(([a, p], i) => seen.slice(i + 1).forEach(([b, q]) => {
  if (a.contains(b) || b.contains(a)) return;
  const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
  const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
  if (across > 2 && down > 4) found.push([a.textContent.trim(), b.textContent.trim()]);
}));
return found;"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if MISSING:
        pytest.skip(f"not installed: {', '.join(MISSING)}")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in FLAGS.split():
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(str(shutil.which("chromedriver"))))
    yield driver
    driver.quit()


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_in_the_report_overlaps(
    width: int, browser: Any, run: Path, tmp_path: Path
) -> None:
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get((run / "report.html").as_uri())
    assert browser.execute_script("return document.querySelector('h1').textContent") == "run"
    assert "raining" in browser.execute_script(
        "return document.querySelector('.verdict').textContent"
    )
    texts = browser.execute_script("return document.querySelectorAll(arguments[0]).length", TEXTS)
    assert texts > 100
    assert browser.execute_script(OVERLAPS, TEXTS) == []
    size = browser.execute_script(
        "const e = document.documentElement; return [e.scrollWidth, e.scrollHeight]"
    )
    assert size[0] <= width
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**screen, "height": size[1]})
    assert browser.save_screenshot(str(tmp_path / "page.png"))
    assert (tmp_path / "page.png").stat().st_size > 20_000  # a page with something on it
    assert browser.get_log("browser") == []
