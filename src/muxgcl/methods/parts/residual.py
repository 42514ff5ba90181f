"""An encoder's output beside its propagation, as GGD and SGRL embed."""

from muxgcl.shapes import Nodes
from muxgcl.sparse import SparseMatrix


def with_propagated(nodes: Nodes, propagation: SparseMatrix, hops: int) -> Nodes:
    r"""$H + \hat A^k H$ over k `hops`; $H$ alone over none."""
    far = nodes
    for _ in range(hops):
        far = propagation @ far
    return nodes + far if hops else nodes
