"""Structure without labels: closed forms, chance, and what must not matter."""

import numpy as np
import pytest

from muxgcl.errors import UserError
from muxgcl.evaluate import structure
from muxgcl.shapes import Array

CHANCE = np.random.default_rng(5)


def blobs(groups: int, each: int, columns: int = 8, noise: float = 0.05) -> Array:
    centres = np.repeat(np.eye(groups), columns, axis=1)
    return centres.repeat(each, axis=0) + noise * CHANCE.standard_normal(
        (groups * each, groups * columns)
    )


def inside(groups: int, each: int, count: int) -> Array:
    """Edges within the groups of `blobs`."""
    start = CHANCE.integers(0, groups, count) * each
    return start + CHANCE.integers(0, each, (2, count))


def test_clusters_that_edges_keep_to() -> None:
    found = structure(blobs(4, 50), inside(4, 50, 2000), clusters=4)
    assert found is not None
    assert found.stability == pytest.approx(1)
    assert found.modularity == pytest.approx(1 - 4 * 0.25**2)
    assert found.structure == found.modularity


def test_edges_that_go_anywhere_have_no_modularity() -> None:
    found = structure(blobs(4, 50), CHANCE.integers(0, 200, (2, 50_000)), clusters=4)
    assert found is not None
    assert found.stability == pytest.approx(1)
    assert abs(found.modularity) < 0.02
    assert found.structure == found.modularity


def test_noise_has_no_stable_clusters_whatever_its_edges() -> None:
    found = structure(CHANCE.standard_normal((400, 32)), inside(4, 100, 4000), clusters=4)
    assert found is not None
    assert found.stability < 0.1
    assert found.structure < 0.1


def test_modularity_counts_edges_in_loops() -> None:
    z, edges = blobs(3, 20), CHANCE.integers(0, 60, (2, 300))
    found = structure(z, edges, clusters=3)
    group = [i // 20 for i in range(60)]
    kept = [(a, b) for a, b in edges.T.tolist() if a != b]
    want = sum(group[a] == group[b] for a, b in kept) / len(kept) - 3 * (20 / 60) ** 2
    assert found is not None
    assert found.modularity == pytest.approx(want)


def test_lengths_of_rows_and_the_order_of_nodes_do_not_matter() -> None:
    z, edges = blobs(4, 50), inside(4, 50, 2000)
    plain = structure(z, edges, clusters=4)
    assert structure(z * CHANCE.uniform(0.1, 9, (200, 1)), edges, clusters=4) == plain
    order = CHANCE.permutation(200)
    moved = structure(z[order], np.argsort(order)[edges], clusters=4)
    assert moved is not None
    assert plain is not None
    assert moved.structure == pytest.approx(plain.structure)


def test_of_many_nodes_a_sample_finds_the_centres(monkeypatch: pytest.MonkeyPatch) -> None:
    z, edges = blobs(4, 50), inside(4, 50, 2000)
    whole = structure(z, edges, clusters=4)
    monkeypatch.setattr("muxgcl.evaluate.unlabelled.NODES", 60)
    monkeypatch.setattr("muxgcl.evaluate.unlabelled.BLOCK", 7)
    assert structure(z, edges, clusters=4) == whole


def test_too_little_to_have_clusters_has_no_answer() -> None:
    z, edges = blobs(4, 50), inside(4, 50, 20)
    assert structure(z[:19], edges[:, :0]) is None
    assert structure(z[:, :1], edges) is None
    assert structure(z, np.zeros((2, 5), int)) is None  # loops alone
    with pytest.raises(UserError, match="at least two clusters, got 1"):
        structure(z, edges, clusters=1)
