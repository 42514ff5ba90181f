"""The ONNX model of a perceptron, run by onnxruntime, against the network itself."""

from pathlib import Path

import numpy as np
import pytest
import torch
from cli_cases import ask

import muxgcl
from muxgcl import RunOptions, UserError
from muxgcl.augment import clean
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.runs.committee import restore_members
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan

SMALL = {
    "width": 12, "hidden": 16, "projection": 8, "projection_out": 8, "affinity": "none",
    "convolutions": 0,
}  # fmt: skip


def trained_run(out: Path, members: int = 1, method: str = "mux-hop", **settings: object) -> Path:
    options = RunOptions(
        method=method,
        settings={**(SMALL if method == "mux-hop" else {}), **settings},
        epochs=None if method == "sgc" else 3,
        members=members,
        out=out,
        device="cpu",
        score=False,
    )
    return muxgcl.run(planted(nodes=60), options).path


@pytest.mark.parametrize(
    ("settings", "members"),
    [
        ({"norm": "layer", "row_normalize": True}, 1),
        ({"norm": "batch", "row_normalize": False, "depth": 3}, 1),
        ({"norm": "none", "depth": 1, "ema": 0.9}, 2),
        ({"norm": "layer", "convolutions": 2}, 1),
    ],
)
def test_the_onnx_model_gives_what_the_perceptron_gives(
    tmp_path: Path, settings: dict[str, object], members: int
) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    run = Run(trained_run(tmp_path / "run", members, **settings))
    path = muxgcl.export_onnx(run.path, tmp_path / "f.onnx")
    data = planted(nodes=60)
    data.x = torch.cat([data.x[:20] * 3 - 1, torch.zeros_like(data.x[:1]), data.x[21:]])
    graph = Graph.from_data(data)
    committee = restore_members(run, Plan.from_tables(run.config(), device="cpu"), graph)
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    assert names == ["f", "f2"][:members]
    given = {"x": data.x.numpy()}
    if settings.get("convolutions"):
        pattern = graph.adjacency
        value = pattern.propagation().matrix.value
        entries = pattern.row.long(), pattern.col.long(), value
        names_of = ("target", "source", "value")
        given |= {name: part.numpy() for name, part in zip(names_of, entries, strict=True)}
    assert [one.name for one in session.get_inputs()] == [*given]
    for method, got in zip(committee.methods, session.run(names, given), strict=True):
        with torch.no_grad():
            want = method.network.embed(clean(method.scaled(graph))).numpy()
        assert got.shape == (60, 12)
        np.testing.assert_allclose(got, want, atol=1e-5)
        assert np.ptp(want) > 0.1  # there is something to compare


def test_the_model_of_one_node_is_the_first_block_of_its_embedding(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    run = trained_run(tmp_path / "run", readout_weights=(1.0, 0.5, 0.5))
    path = muxgcl.export_onnx(run, tmp_path / "f.onnx")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (f,) = session.run(["f"], {"x": planted(nodes=60).x[7:8].numpy()})
    _, z = Run(run).embeddings()
    np.testing.assert_allclose(f[0] / np.linalg.norm(f), z[7, :12], atol=1e-5)


def test_what_has_no_perceptron_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = trained_run(tmp_path / "sgc", method="sgc")
    for run, file, told in (
        (other, "f.onnx", "only mux-hop has a perceptron to export"),
        (other, "f.npz", "expected a file ending in .onnx, got 'f.npz'"),
    ):
        status, _, err = ask(capsys, "export", str(run), "--out", str(tmp_path / file))
        assert (status, told in err) == (2, True), err
        assert not (tmp_path / file).exists()
    monkeypatch.setattr("muxgcl.app.export.find_spec", lambda name: None)
    with pytest.raises(UserError, match="needs onnx: pip install onnx"):
        muxgcl.export_onnx(other, tmp_path / "f.onnx")


def test_the_command_writes_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    run, file = trained_run(tmp_path / "run"), tmp_path / "f.onnx"
    status, out, _ = ask(capsys, "export", str(run), "--out", str(file), "--json")
    assert (status, file.stat().st_size > 1000, str(file) in out) == (0, True, True)
