"""Not a number is not an embedding: it is refused at every door, and nothing is written."""

from pathlib import Path

import numpy as np
import pytest
import torch
from cli_cases import TINY, ask
from scipy.sparse import csr_array, random_array, save_npz

from muxgcl import NodeEmbedder
from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.io.load import load
from muxgcl.io.save import save_table
from muxgcl.runs.embedding import NonFiniteEmbedding, collapse_warning
from muxgcl.runs.fit import fit
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan

FAST = [*TINY, "--quiet", "--device", "cpu"]
DIVERGING = ["--epochs", "1", "--set", "lr=1e20"]


@pytest.mark.parametrize("command", ["train", "run"])
def test_an_embedding_that_overflows_is_one_line_and_no_file(
    own: list[str], tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = [command, *own, "--method", "grace", *FAST, *DIVERGING, "--out", str(out)]
    status, text, err = ask(capsys, *words)
    assert (status, text) == (2, "")
    assert err.splitlines()[-1].startswith("muxgcl: the embedding is NaN or infinity at ")
    assert not (out / "embeddings.npz").exists()
    assert not (out / "scores.json").exists()
    status, _, err = ask(capsys, "embed", str(out), "--out", str(tmp_path / "z.npz"))
    assert status == 2
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "z.npz").exists()


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Wide and mostly zeros, so never scaled; each number is one, their sums are not."""
    words = csr_array(random_array((60, 4000), density=0.2, rng=np.random.default_rng(0)))
    words.data[:] = 3e38
    save_npz(tmp_path / "nodes.npz", words)
    edges = [f"{i},{(i * 7 + k) % 60}" for i in range(60) for k in (1, 2)]
    (tmp_path / "edges.csv").write_text("\n".join(edges) + "\n")
    return tmp_path


def test_random_gcn_on_numbers_whose_sums_overflow_is_one_line(
    large: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = large / "run"
    status, _, err = ask(
        capsys, "train", str(large), "--method", "random-gcn", "--quiet", "--out", str(out)
    )
    assert (status, len(err.splitlines()[-1:])) == (2, 1)
    assert "smaller features usually helps" in err
    assert not (out / "embeddings.npz").exists()


def test_an_estimator_hands_out_nothing_that_is_not_finite(large: Path) -> None:
    embedder = NodeEmbedder("random-gcn", preset="quick")
    with pytest.raises(NonFiniteEmbedding):
        embedder.fit_transform(large)
    assert not hasattr(embedder, "embedding_")
    small = {"width": 8, "projection": 8}
    embedder = NodeEmbedder("grace", preset="quick", params=small, epochs=1, lr=1e20)
    with pytest.raises(NonFiniteEmbedding):
        embedder.fit(planted(nodes=60))
    embedder = NodeEmbedder("grace", preset="quick", params=small, epochs=1).fit(planted(nodes=60))
    with torch.no_grad():
        embedder.model_.encoder.weights[0].fill_(3e38)
    with pytest.raises(NonFiniteEmbedding):
        embedder.transform(planted(nodes=60))


@pytest.mark.parametrize("ending", ["npz", "npy", "csv", "parquet"])
def test_no_table_with_nan_is_exported(tmp_path: Path, ending: str) -> None:
    for wrong in (np.nan, np.inf):
        with pytest.raises(UserError, match="is not written: the table holds NaN or infinity"):
            save_table(tmp_path / f"z.{ending}", np.arange(2), np.array([[1.0], [wrong]]))
    with pytest.raises(UserError, match="is not written"):
        Run(tmp_path).save_embeddings(np.arange(1), torch.full((1, 2), torch.nan))
    assert not list(tmp_path.iterdir())


def test_nan_in_a_runs_own_embeddings_is_not_exported(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(tmp_path / "copy")
    run.path.mkdir()
    (run.path / "config.toml").write_bytes((trained / "config.toml").read_bytes())
    np.savez(run.embeddings_file, id=np.arange(2), embedding=np.array([[1.0], [np.nan]]))
    status, _, err = ask(capsys, "embed", str(run.path), "--out", str(tmp_path / "z.csv"))
    assert (status, "embeddings.npz: embedding must be finite" in err) == (2, True)
    assert not (tmp_path / "z.csv").exists()


# what is finite and says nothing


def test_a_column_that_32_bits_cannot_tell_apart_is_told() -> None:
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    noise = np.array([0.1, -0.2, 0.3, 0.0])
    flat = np.stack([1e8 + noise, noise], 1)
    notes = load((edges, flat)).notes
    assert "column '0': constant: zeros" in notes
    coarse = np.stack([1e8 + 100 * noise, noise], 1)
    notes = load((edges, coarse)).notes
    assert "column '0': almost the same in 32 bits; subtract an offset first" in notes
    assert not [note for note in load((edges, flat[:, 1:])).notes if "32 bits" in note]


def test_weights_whose_sums_overflow_are_refused(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target,weight\n0,1,3e38\n1,2,3e38\n")
    with pytest.raises(UserError, match="add up to more than 1e"):
        load(tmp_path)


def test_a_collapsed_embedding_is_told(
    own: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    assert "every node is zero" in str(collapse_warning(torch.zeros(3, 2)))
    assert "every node is the same" in str(collapse_warning(torch.ones(3, 2) * 1e20))
    assert collapse_warning(torch.eye(3)) is None
    zeros = [torch.zeros(60, 8)]
    monkeypatch.setattr("muxgcl.methods.grace.Grace.embed_blocks", lambda self, graph: iter(zeros))
    words = ["train", *own, "--method", "grace", *FAST, "--epochs", "1"]
    status, _, err = ask(capsys, *words, "--out", str(tmp_path / "run"))
    assert status == 0
    assert "the embedding of every node is zero" in err
    with pytest.warns(UserWarning, match="it has collapsed"):
        NodeEmbedder("grace", preset="quick", epochs=1).fit(planted(nodes=60))


def test_a_plan_that_diverges_leaves_a_checkpoint_of_numbers_or_none(tmp_path: Path) -> None:
    run = Run(tmp_path)
    plan = Plan.make("grace", "quick", overrides={"width": 8, "epochs": 1, "lr": 1e20})
    fitted = fit(plan, Graph.from_data(planted(nodes=60)), run=run)
    with pytest.raises(NonFiniteEmbedding):
        fitted.embed()
    if run.checkpoint_file.is_file():
        tensors, _ = run.checkpoint()
        assert all(torch.isfinite(t).all() for t in tensors.values() if t.is_floating_point())
