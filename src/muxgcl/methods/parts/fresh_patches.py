r"""Affinity tables that take in the embedding as it is during training.

With unit tables h of the walks and p of the embedding, the table
$[\sqrt{1 - s}\, h,\; \sqrt{s}\, p]$ has the cosines $(1 - s) \cos_h + s \cos_p$.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from muxgcl.shapes import Nodes


class FreshPatches(nn.Module):
    """One table a scale, in a buffer: a resumed run has those of the run that it resumes."""

    tables: Tensor  # [scales, n, r], or empty before the first mix

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("tables", torch.empty(0))

    def or_else(self, walks: list[Tensor] | None) -> list[Tensor] | None:
        """The tables, or these where there are none yet."""
        return list(self.tables) if self.tables.numel() else walks

    def mix(self, walks: Sequence[Nodes] | None, embedding: Sequence[Nodes], share: float) -> None:
        """Take so large a share of the embedding; without walks it is all."""
        if walks is None:
            mixed = list(embedding)
        else:
            mixed = [
                torch.cat([(1 - share) ** 0.5 * h, share**0.5 * p], 1)
                for h, p in zip(walks, embedding, strict=True)
            ]
        self.tables = torch.stack(mixed)

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Take tables of any size: what was trained may embed another graph."""
        like = state.get(prefix + "tables")
        if like is not None and (like.shape, like.dtype) != (self.tables.shape, self.tables.dtype):
            self.tables = torch.empty_like(like, device=self.tables.device)
        super()._load_from_state_dict(state, prefix, *rest)
