"""The small head between the encoder and the contrast; thrown away after training."""

from torch import nn
from torch.nn.functional import elu, normalize

from muxgcl.shapes import Nodes


class Projector(nn.Module):
    """Two linear layers with an ELU between them; rows of the output are unit vectors."""

    def __init__(self, width: int, hidden: int, out: int | None = None) -> None:
        super().__init__()
        self.first = nn.Linear(width, hidden)
        self.second = nn.Linear(hidden, out or width)

    def forward(self, nodes: Nodes) -> Nodes:
        """Unit rows, ready for a contrast by cosine."""
        return normalize(self.second(elu(self.first(nodes))), dim=1)
