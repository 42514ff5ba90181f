r"""A graph convolutional network that hands back every scale.

Layer k of the network, $U^{(k)} = \sigma(\hat A U^{(k-1)} W_k + b_k)$ with $U^{(0)} = X$, stands
for each node's k-hop patch. To compare layers they must have one width: what layer k gave is
carried through the remaining weights *without* propagation,

$$\text{scale } k = \sigma\big(U^{(k)} W_{k+1} \cdots W_L\big), \qquad
\text{scale } 0 = X W_1 \cdots W_L, \qquad \text{scale } L = U^{(L)}.$$

Scale 0 stays linear and no carried scale has a bias, as in the authors' code (which has L = 2).
Where the last layer has no activation, carried scales have none either.
"""

from collections.abc import Callable, Collection, Iterator
from itertools import pairwise
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from muxgcl.augment import View
from muxgcl.errors import UserError
from muxgcl.kernels import Sample, Selection, taken
from muxgcl.kernels.rounded import product
from muxgcl.nn.bias import add_bias
from muxgcl.nn.field import Field, inputs, projected
from muxgcl.nn.prelu import PReLU
from muxgcl.shapes import Nodes, Scale

Activation = Literal["relu", "prelu", "rrelu", "elu", "selu", "none"]
ROWS = 2**14  # of an embedding that are made at a time
RRELU_SLOPE = 11 / 48  # the middle of (1/8, 1/3): what the randomised slope is in evaluation


def activation(name: Activation) -> nn.Module:
    """The activation of that name; `prelu` learns one slope, `rrelu` has its mean slope fixed."""
    kinds: dict[str, nn.Module] = {
        "relu": nn.ReLU(),
        "prelu": PReLU(),
        "rrelu": nn.LeakyReLU(RRELU_SLOPE),
        "elu": nn.ELU(),
        "selu": nn.SELU(),
        "none": nn.Identity(),
    }
    if name not in kinds:
        raise UserError(
            f"activation must be one of {', '.join(get_args(Activation))}, got {name!r}"
        )
    return kinds[name]


class GCN(nn.Module):
    r"""Graph convolutions; entry k of the output has seen k hops, the last one is the embedding.

    Args:
        in_features: how many features a node has.
        width: of the embedding, and so of every scale.
        layers: $L \ge 1$.
        hidden: width between the layers; twice `width` by default.
        act: activation after every layer; one module serves all layers.
        final_activation: whether the last layer has one too.
        fanout: neighbours that a layer looks at where a sample's nodes alone are computed, drawn
            afresh each time; 0: all. Layers are not linear, so the mean over draws is not quite
            the output of the whole graph.
    """

    __call__: Callable[..., dict[int, Nodes]]  # as `forward`; of a module torch only says Any

    def __init__(
        self,
        in_features: int,
        width: int,
        *,
        layers: int = 2,
        hidden: int | None = None,
        act: Activation = "relu",
        final_activation: bool = True,
        fanout: int = 0,
    ) -> None:
        super().__init__()
        if fanout < 0:
            raise UserError(f"fanout must be at least 0 (all neighbours), got {fanout}")
        if layers < 1 or width < 1:
            raise UserError(f"layers and width must be at least 1, got {layers} and {width}")
        widths = [in_features, *[hidden or 2 * width] * (layers - 1), width]
        self.weights = nn.ParameterList(
            nn.init.xavier_uniform_(torch.empty(a, b)) for a, b in pairwise(widths)
        )
        self.biases = nn.ParameterList(torch.zeros(b) for b in widths[1:])
        self.act = activation(act)
        self.final_activation, self.fanout = final_activation, fanout

    def forward(
        self,
        view: View,
        scales: Collection[int] | None = None,
        sample: Selection | None = None,
    ) -> dict[int, Nodes]:
        """The wanted scales (all by default), each of width `width`.

        Of a sample's nodes alone, where there is one.
        """
        last = len(self.weights)
        wanted = range(last + 1) if scales is None else scales
        if sample is not None and view.propagation.device.type == "cpu":
            rows = sample.rows(view.propagation.shape[0] // view.features.shape[0])
            # workers with nodes of their own would draw different counts of random numbers
            fanout = self.fanout if isinstance(sample, Sample) else 0
            return self._of_rows(view, wanted, rows, fanout)
        mixed = view.project(self.weights[0])  # X W_1: both layer 1 and scale 0 start from it
        found = {0: self._carry(taken(mixed, sample), start=1)} if 0 in wanted else {}
        for k, bias in enumerate(self.biases, start=1):
            hidden = self._layer(view.propagation @ mixed, bias, k)
            if k < last:
                mixed = product(hidden, self.weights[k])
                if k in wanted:
                    found[k] = self._last(self._carry(taken(mixed, sample), start=k + 1))
        found[last] = taken(hidden, sample)
        return found

    def _of_rows(
        self, view: View, wanted: Collection[int], rows: Int[Tensor, " n"], fanout: int
    ) -> dict[int, Nodes]:
        """The wanted scales at these rows, from what they depend on alone.

        How much that is changes from step to step.
        """
        last = len(self.weights)
        field, found = Field.of(view.propagation, rows, last, fanout), {}
        if isinstance(view.features, Tensor):  # (A X) W_1 has fewer rows to multiply than A (X W_1)
            table = inputs(view, field.rows[0])
            hidden = product(field.hops[0] @ table, self.weights[0])
            if 0 in wanted:
                found[0] = self._carry(field.wanted(table, 0), start=0)
        else:
            mixed = projected(view, self.weights[0], field.rows[0])
            hidden = field.hops[0] @ mixed
            if 0 in wanted:
                found[0] = self._carry(field.wanted(mixed, 0), start=1)
        hidden = self._layer(hidden, self.biases[0], 1)
        for k in range(1, last):
            if k in wanted:
                found[k] = self._last(self._carry(field.wanted(hidden, k), start=k))
            hidden = product(field.hops[k] @ hidden, self.weights[k])
            hidden = self._layer(hidden, self.biases[k], k + 1)
        return {**found, last: hidden}

    def _layer(self, propagated: Scale, bias: Tensor, k: int) -> Scale:
        """Layer k, given what was propagated and mixed."""
        hidden = add_bias(propagated, bias)
        return self.act(hidden) if k < len(self.weights) else self._last(hidden)

    def _last(self, hidden: Nodes) -> Nodes:
        """The activation of the last layer, where it has one."""
        return self.act(hidden) if self.final_activation else hidden

    def _carry(self, mixed: Scale, start: int) -> Float[Tensor, "n d"]:
        for k in range(start, len(self.weights)):
            mixed = product(mixed, self.weights[k])
        return mixed

    def embed(self, view: View) -> Nodes:
        """The last scale alone."""
        return self(view, ())[len(self.weights)]

    def embed_blocks(self, view: View, rows: int = ROWS) -> Iterator[Nodes]:
        """The last scale, so many rows at a time, without gradients.

        Two layers' tables are there at a time.
        """
        matrix, last = view.propagation.matrix, len(self.weights)
        starts = range(0, matrix.rows, rows)
        mixed = view.project(self.weights[0])
        for k, bias in enumerate(self.biases, start=1):

            def layer(start: int, table: Scale = mixed, bias: Tensor = bias, k: int = k) -> Scale:
                stop = min(start + rows, matrix.rows)
                part = matrix if len(starts) == 1 else matrix.part(start, stop)
                return self._layer(part.multiply(table), bias, k)

            if k == last:
                yield from map(layer, starts)
                return
            after = mixed.new_empty(matrix.rows, self.weights[k].shape[1])
            for start in starts:
                after[start : start + rows] = layer(start) @ self.weights[k]
            mixed = after
