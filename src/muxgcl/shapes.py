"""The shape alphabet: n nodes, m candidates, e edges, d width, r affinity width, f features."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

Nodes = Float[Tensor, "n d"]
Scale = Float[Tensor, "n _"]  # one encoder layer; widths differ from layer to layer
Candidates = Float[Tensor, "m d"]
PerNode = Float[Tensor, " n"]  # the leading space keeps linters from reading a name
PerEdge = Float[Tensor, " e"]
PerFeature = Float[Tensor, " f"]
Scalar = Float[Tensor, ""]
EdgeIndex = Int[Tensor, "2 e"]
NodeIndex = Int[Tensor, " n"]
Mask = Bool[Tensor, " n"]
Array = np.ndarray[Any, np.dtype[Any]]  # of numpy, of any shape and type
