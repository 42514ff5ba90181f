"""Nearest nodes and scores of pairs, against plain loops."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from cli_cases import ask

import muxgcl
from muxgcl import UserError
from muxgcl.evaluate import nearest as nearest_room
from muxgcl.evaluate.nearest import nearest
from muxgcl.runs.folder import Run


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    length = np.linalg.norm(a.astype(float)) * np.linalg.norm(b.astype(float))
    return float(a.astype(float) @ b.astype(float) / length) if length else 0.0


@pytest.mark.parametrize("block", [1, 7, 100])
def test_nearest_is_the_order_of_all_cosines(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_room, "BLOCK", block)
    z = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    z[7], z[21], z[9] = z[3], 2 * z[3], 0  # ties, and a zero row
    rows, found = nearest(z, np.array([3, 9, 29]), 5)
    for at, query in enumerate((3, 9, 29)):
        order = sorted((-round(cosine(z[query], z[j]), 9), j) for j in range(30) if j != query)
        assert rows[at].tolist() == [j for _, j in order[:5]]
        np.testing.assert_allclose(found[at], [-c for c, _ in order[:5]], atol=1e-8)


def test_there_are_no_more_neighbours_than_other_nodes() -> None:
    z = np.eye(4, dtype=np.float32)
    rows, _ = nearest(z, np.array([0]), 10)
    assert rows.tolist() == [[1, 2, 3]]
    with pytest.raises(UserError, match="k must be at least 1, got 0"):
        nearest(z, np.array([0]), 0)


def test_neighbours_are_named_by_id(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids, z = Run(trained).embeddings()
    found = muxgcl.neighbours(trained, ["n3", "n5"], k=4)
    assert list(found) == ["n3", "n5"]
    place = {name: row for row, name in enumerate(ids.tolist())}
    for name, near in found.items():
        for other, value in near:
            assert value == pytest.approx(cosine(z[place[name]], z[place[other]]), abs=1e-6)
    alone = muxgcl.neighbours(trained, "n3", k=4)
    assert [*alone] == ["n3"]
    assert [name for name, _ in alone["n3"]] == [name for name, _ in found["n3"]]
    status, out, _ = ask(capsys, "neighbours", str(trained), "n3", "-k", "4", "--json")
    assert status == 0
    told = json.loads(out)["nodes"][0]
    assert [row["node"] for row in told["neighbours"]] == [name for name, _ in found["n3"]]
    status, out, _ = ask(capsys, "neighbours", str(trained), "n3", "-k", "2")
    assert (status, "nearest to n3" in out) == (0, True)
    status, _, told = ask(capsys, "neighbours", str(trained), "nobody")
    assert (status, "has no node 'nobody'" in told) == (2, True)


def test_given_pairs_are_scored_in_their_order(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("from,to\nn9,n2\nn2,n9\nn4,n4\n")
    ids, z = Run(trained).embeddings()
    place = {name: row for row, name in enumerate(ids.tolist())}
    want = [cosine(z[place[a]], z[place[b]]) for a, b in (("n9", "n2"), ("n2", "n9"), ("n4", "n4"))]
    found = muxgcl.score_links(trained, pairs)
    np.testing.assert_allclose(found.score, want, atol=1e-6)
    assert found.path is None
    status, text, told = ask(capsys, "links", str(trained), str(pairs))
    assert text.splitlines()[1].split() == ["n9", "n2", f"{want[0]:.4f}"]
    assert (status, "3 pairs scored: " in told) == (0, True)
    with (trained / "links.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["source"], row["target"]) for row in rows] == [
        ("n9", "n2"),
        ("n2", "n9"),
        ("n4", "n4"),
    ]
    np.testing.assert_allclose([float(row["score"]) for row in rows], want, atol=1e-6)


def test_pairs_of_unknown_nodes_are_refused(trained: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("source,target\nn0,nobody\n")
    with pytest.raises(UserError, match="a pair names node 'nobody'"):
        muxgcl.score_links(trained, pairs)
    with pytest.raises(UserError, match=r"written as \.csv"):
        muxgcl.score_links(trained, pairs, out=tmp_path / "x.npz")
