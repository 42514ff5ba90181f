"""How the rows of a sparse matrix are divided among the programs of a GPU."""

from dataclasses import dataclass, replace
from typing import Self

import torch
from jaxtyping import Int
from torch import Tensor

PIECE = 256  # entries of a row that one program of a GPU reads (records/spmm.jsonl)


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """The rows of a pattern cut into runs of at most `PIECE` entries, the longest run first."""

    row: Int[Tensor, " p"]
    begin: Int[Tensor, " p"]
    end: Int[Tensor, " p"]
    slot: Int[Tensor, " p"]  # number of a part; -1 for a row of one piece
    long: Int[Tensor, " l"]  # rows of several pieces
    first: Int[Tensor, " l+1"]  # the slots of row `long[i]` are `first[i]:first[i + 1]`
    slots: int

    @classmethod
    def of(cls, rowptr: Int[Tensor, " _"]) -> Self:
        """Cut the rows."""
        lengths = rowptr.diff()
        count = (lengths + PIECE - 1).div(PIECE, rounding_mode="floor").clamp(min=1)
        row = torch.arange(len(lengths), device=rowptr.device).repeat_interleave(count)
        place = torch.arange(len(row), device=rowptr.device) - (count.cumsum(0) - count)[row]
        begin = rowptr[row] + place * PIECE
        end = torch.minimum(begin + PIECE, rowptr[row + 1])
        several = count[row] > 1
        slot = torch.where(several, several.cumsum(0) - 1, -1)
        long = (count > 1).nonzero().squeeze(1)
        first = torch.cat([count.new_zeros(1), count[long].cumsum(0)])
        order = (end - begin).argsort(descending=True, stable=True)
        row, begin, end, slot = (part.to(rowptr.dtype)[order] for part in (row, begin, end, slot))
        long, first, slots = long.to(rowptr.dtype), first.to(rowptr.dtype), int(first[-1])
        return cls(row, begin, end, slot, long, first, slots)

    def to(self, device: torch.device | str) -> Self:
        """The same pieces on another device."""
        names = ("row", "begin", "end", "slot", "long", "first")
        return replace(self, **{name: getattr(self, name).to(device) for name in names})
