"""What GRACE and methods that follow it closely have in common: their settings."""

from dataclasses import dataclass

from muxgcl.nn.gcn import Activation
from muxgcl.nn.readout import ReadoutConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastConfig(ReadoutConfig):
    """Settings of a GCN that is trained by a contrast of two views."""

    layers: int = 2  # of the encoder
    width: int = 128  # of the embedding; between layers it is twice that
    projection: int = 128  # width inside the projector
    projection_out: int | None = None  # width of what is contrasted; `width` by default
    activation: Activation = "relu"  # of the encoder
    drop_edges: tuple[float, float] = (0.2, 0.4)  # share of edges dropped, in each view
    mask_features: tuple[float, float] = (0.3, 0.4)  # share of feature columns masked, in each view
    temperature: float = 0.4  # of the contrast; a lower one is sharper
