"""Hidden edges and non-edges are what they claim; scores are the textbook ones."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muxgcl.errors import UserError
from muxgcl.evaluate import HiddenEdges, hide_edges, link_prediction
from muxgcl.evaluate.link import similarities

both_ways = st.integers(5, 25).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), min_size=1, max_size=60),
    )
)


def undirected(pairs: np.ndarray) -> set[tuple[int, int]]:
    return {(min(u, v), max(u, v)) for u, v in pairs.tolist() if u != v}


def random_graph(n: int = 60, p: float = 0.15, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    edges = np.array([pair for pair in combinations(range(n), 2) if rng.random() < p]).T
    return np.hstack([edges, edges[::-1]])


@given(both_ways, st.integers(0, 3), st.sampled_from([0.1, 0.5, 0.99]))
@settings(max_examples=100, deadline=None)
def test_any_graph_is_parted_into_kept_and_hidden_edges(graph, seed: int, share: float) -> None:
    n, pairs = graph
    edges = np.array(pairs).T
    try:
        hidden = hide_edges(edges, n, share=share, seed=seed)
    except UserError:  # a forest, or nearly complete: no edge to spare, or too few non-edges
        return
    everything, left = undirected(edges.T), undirected(hidden.edge_index.T)
    positives, negatives = undirected(hidden.positives), undirected(hidden.negatives)
    assert left | positives == everything
    assert not left & positives
    assert not negatives & everything
    assert len(positives) == len(negatives) == len(hidden.positives) == len(hidden.negatives)
    assert len(positives) <= max(1, round(share * len(everything)))
    assert {u for pair in left for u in pair} == {u for pair in everything for u in pair}
    assert np.array_equal(hidden.edge_index, edges[:, hidden.kept])
    assert (edges[0] == edges[1]).sum() == (hidden.edge_index[0] == hidden.edge_index[1]).sum()


def test_a_dense_enough_graph_hides_exactly_the_share_asked_for() -> None:
    edges = random_graph()
    hidden = hide_edges(edges, 60, share=0.2)
    assert len(hidden.positives) == round(0.2 * edges.shape[1] / 2)


def test_a_seed_fixes_what_is_hidden_and_the_direction_of_entries_does_not_matter() -> None:
    edges = random_graph()
    one, two = hide_edges(edges, 60, seed=1), hide_edges(edges, 60, seed=1)
    assert np.array_equal(one.positives, two.positives)
    assert np.array_equal(one.negatives, two.negatives)
    assert not np.array_equal(one.positives, hide_edges(edges, 60, seed=2).positives)
    half = edges[:, : edges.shape[1] // 2]
    assert np.array_equal(one.positives, hide_edges(half[::-1], 60, seed=1).positives)


def test_all_non_edges_are_equally_likely() -> None:
    n = 8
    edges = np.array([(u, v) for u, v in combinations(range(n), 2) if (u + v) % 3]).T  # of 28 pairs
    free = undirected(np.array(list(combinations(range(n), 2)))) - undirected(edges.T)
    counts = dict.fromkeys(sorted(free), 0)
    for seed in range(4000):
        for pair in undirected(hide_edges(edges, n, share=0.1, seed=seed).negatives):
            counts[pair] += 1
    expected = sum(counts.values()) / len(free)
    assert np.array(list(counts.values())) == pytest.approx(expected, rel=0.15)


def test_auc_and_precision_follow_their_definitions() -> None:
    rng = np.random.default_rng(0)
    edges = random_graph()
    hidden = hide_edges(edges, 60, share=0.3)
    z = rng.normal(size=(60, 4))
    cosine = lambda u, v: z[u] @ z[v] / np.linalg.norm(z[u]) / np.linalg.norm(z[v])  # noqa: E731
    good = [cosine(u, v) for u, v in hidden.positives]
    bad = [cosine(u, v) for u, v in hidden.negatives]
    auc = np.mean([one > two for one in good for two in bad])
    precision = np.mean(
        [sum(g >= at for g in good) / sum(s >= at for s in good + bad) for at in good]
    )
    got = link_prediction(z, hidden)
    assert (got.auc, got.ap, got.n) == pytest.approx((auc, precision, len(good)))


def test_an_embedding_of_the_blocks_tells_edges_within_from_pairs_across() -> None:
    block = np.arange(40) % 2
    pairs = [(u, v) for u, v in combinations(range(40), 2) if block[u] == block[v]]
    edges = np.array(pairs).T
    got = link_prediction(np.eye(2)[block], hide_edges(edges, 40))
    assert (got.auc, got.ap) == (1, 1)
    blind = link_prediction(np.ones((40, 2)), hide_edges(edges, 40))
    assert (blind.auc, blind.ap) == (0.5, 0.5)


def test_similarity_does_not_mind_the_length_of_rows() -> None:
    z, pairs = np.array([[1.0, 0], [2, 0], [0, 0]]), np.array([[0, 1], [1, 1], [0, 2]])
    assert similarities(z, pairs).tolist() == [1, 1, 0]


def test_graphs_with_nothing_to_hide_or_to_compare_are_refused() -> None:
    star = np.array([[0, 0, 0], [1, 2, 3]])
    with pytest.raises(UserError, match="no edge of 3 can be hidden"):
        hide_edges(star, 4)
    complete = np.array(list(combinations(range(6), 2))).T
    with pytest.raises(UserError, match="the graph has only 0"):
        hide_edges(complete, 6)
    with pytest.raises(UserError, match="between nodes 0 and 3, got one outside"):
        hide_edges(star + 1, 4)
    with pytest.raises(UserError, match=r"got 1\.0"):
        hide_edges(star, 4, share=1.0)


def test_the_question_can_be_put_together_by_hand() -> None:
    edges = np.array([[0], [1]])
    by_hand = HiddenEdges(edges, np.array([True]), np.array([[0, 2]]), np.array([[0, 3]]))
    z = np.array([[1.0, 0], [0, 1], [1, 0.1], [-1, 0]])
    assert link_prediction(z, by_hand).auc == 1
