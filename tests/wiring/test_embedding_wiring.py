"""The embedding at the end of training: evaluation mode, finite, and said to be collapsed."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from test_loop_wiring import CPU
from torch import Tensor, nn

from muxgcl.runs.embedding import (
    NonFiniteEmbedding,
    collapse_warning,
    embed,
    embed_blocks,
    gathered,
    picked_rows,
)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([[1.0, 2.0]], None),
        ([[0.0, 0.0], [0.0, 0.0]], "is zero"),
        ([[3.0, 4.0], [3.0, 4.0]], "is the same"),
        ([[1.0, 1.0], [1.0, 1.0 + 5e-7]], "is the same"),
        ([[1.0, 1.0], [1.0, 1.0 + 2e-6]], None),
        ([[-100.0, 0.0], [-100.0, 5e-5]], "is the same"),
        ([[-100.0, 0.0], [-100.0, 2e-4]], None),
        ([[0.0, 0.0], [0.0, 1e-9]], None),
    ],
)
def test_an_embedding_has_collapsed_where_no_row_differs(
    rows: list[list[float]], told: str | None
) -> None:
    found = collapse_warning(torch.tensor(rows))
    assert (found is None) == (told is None)
    if told is not None:
        assert found is not None
        assert f"the embedding of every node {told}:" in found


@pytest.mark.parametrize("size", [3, 4, 10])
@pytest.mark.parametrize("rows", [[], [0], [2, 3, 4], [3, 9], [*range(10)]])
def test_blocks_are_put_together_and_rows_are_taken_across_them(size: int, rows: list[int]) -> None:
    table = torch.randn(10, 2)
    assert torch.equal(gathered(table.split(size), 10), table)
    found = torch.cat([*picked_rows(table.split(size), np.array(rows, dtype=np.int64))])
    assert torch.equal(found, table[rows])


class Given(nn.Module):
    """Embeds as it is told, in two blocks, and says in which mode."""

    def __init__(self, table: Tensor, trainable: bool) -> None:
        super().__init__()
        self.table, self.trainable, self.modes = table, trainable, []

    def embed_blocks(self, graph: Any) -> Iterator[Tensor]:
        self.modes.append((self.training, torch.is_grad_enabled()))
        yield self.table[:2]
        yield self.table[2:]


@pytest.mark.parametrize("trainable", [True, False])
def test_an_embedding_is_had_in_evaluation_mode_and_is_finite(trainable: bool) -> None:
    three = SimpleNamespace(device=CPU, num_nodes=3)
    good = Given(torch.arange(6.0, dtype=torch.float64).reshape(3, 2), trainable)
    found = embed(good, three)  # type: ignore[arg-type]
    assert found.dtype == torch.float32
    assert found.tolist() == good.table.tolist()
    assert good.modes == [(False, False)]
    assert good.training
    bad = Given(torch.tensor([[1.0, float("nan")], [float("inf")] * 2, [0.0, 0.0]]), trainable)
    advice = "a smaller lr, or smaller features, usually" if trainable else "smaller features usual"
    with pytest.raises(NonFiniteEmbedding, match=f"infinity at 2 of 3 nodes; {advice}"):
        embed(bad, three)  # type: ignore[arg-type]
    assert bad.training


@pytest.mark.parametrize("training", [True, False])
def test_a_method_is_left_in_the_mode_that_it_was_in(training: bool) -> None:
    three = SimpleNamespace(device=CPU, num_nodes=3)
    method = Given(torch.ones(3, 2), True).train(training)
    embed(method, three)  # type: ignore[arg-type]
    assert method.training == training
    blocks = embed_blocks(method, three)  # type: ignore[arg-type]
    next(blocks)
    assert not method.training
    blocks.close()  # type: ignore[attr-defined]
    assert method.training == training
