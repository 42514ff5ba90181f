"""A newcomer's first hour: a default run, its verdict, new nodes, ways out."""

import json
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_cases import ask, command_line
from safetensors.numpy import load_file as load_safetensors

from muxgcl import load
from muxgcl.io.load import Loaded
from muxgcl.io.save import WRITERS

NODES, NEW = 2_000, 10  # the last ten are new: the run does not see them
# a default run but for its length and widths, which a test has no time for
SHORT = ["--epochs", "2", "--splits", "2"]
SHORT += [
    f"--set={name}={value}"
    for name, value in {
        **dict.fromkeys(("hidden", "width", "projection", "projection_out"), 32),
        "affinity_epochs": 1,
    }.items()
]


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
    pytest.importorskip("selenium")
    from browser_cases import MISSING, opened

    if MISSING:
        pytest.skip(f"not installed: {', '.join(MISSING)}")
    with opened(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


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
