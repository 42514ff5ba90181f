"""The small head between the encoder and the contrast; thrown away after training."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn.functional import elu

from muxgcl.errors import UserError
from muxgcl.kernels.rounded import product
from muxgcl.nn.bias import add_bias
from muxgcl.shapes import Nodes, Scale

ZERO = 1e-12  # a row shorter than that has no direction


class Projector(nn.Module):
    """Two linear layers with an ELU between them; rows of the output are unit vectors."""

    __call__: Callable[..., Nodes]  # as `forward`; of a module torch only says Any

    def __init__(self, width: int, hidden: int, out: int | None = None) -> None:
        super().__init__()
        if hidden < 1:
            raise UserError(f"projection must be at least 1, got {hidden}")
        self.first = nn.Linear(width, hidden)
        self.second = nn.Linear(hidden, out or width)

    def forward(self, nodes: Scale) -> Nodes:
        """Unit rows, ready for a contrast by cosine."""
        return self.finish(self.mix(nodes))

    def mix(self, nodes: Scale) -> Scale:
        """The first product alone: it commutes with propagation, which may then be narrower."""
        return product(nodes, self.first.weight.T)

    def finish(self, mixed: Scale) -> Nodes:
        """What follows the first product, on a table that nobody else holds."""
        hidden = elu(add_bias(mixed, self.first.bias), inplace=True)
        return unit_rows(add_bias(product(hidden, self.second.weight.T), self.second.bias))


def unit_rows(nodes: Nodes) -> Nodes:
    """Rows scaled to length 1; a zero row stays zero and gets no gradient, not a huge one."""
    if nodes.is_cuda:
        from muxgcl.kernels.unit import unit_rows as fused  # Triton loads only where it runs

        return fused(nodes, ZERO)
    length: Tensor = nodes.norm(dim=1, keepdim=True)
    return nodes / length.clamp(min=ZERO) * (length > ZERO)
