"""The settings of patch affinity estimation."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from muxgcl.affinity.pooling import Pooling
from muxgcl.errors import UserError

Affinity = Literal["node2vec", "deepwalk", "vgae", "none"]
WALK_EPOCHS, WALK_LR = 4, 0.02
VGAE_EPOCHS, VGAE_LR = 100, 5e-4  # the authors'


@dataclass(frozen=True, slots=True, kw_only=True)
class AffinityConfig:
    """Where patches lie in the graph: which embedding says so, and how it is pooled."""

    affinity: Affinity = "deepwalk"  # deepwalk is node2vec with p = q = 1
    pooling: Pooling = "mean"  # how a patch's nodes become its row, see `affinity/pooling.py`
    affinity_width: int = 128  # columns of the affinity tables
    affinity_epochs: int | None = None  # 4 on walks, 100 of a vgae
    affinity_lr: float | None = None  # 0.02 on walks, falling to 0; 0.0005 of a vgae
    walk_length: int = 20  # nodes, the first included
    walk_context: int = 10  # nodes of a walk closer than this are a pair
    walks_per_node: int = 10  # in one epoch
    walk_p: float = 1.0  # return; above 1 a walk seldom turns back
    walk_q: float = 1.0  # in-out; below 1 a walk moves away
    walk_negatives: float = 1.0  # how much a pair's negatives weigh

    def __post_init__(self) -> None:
        for name, known in (("affinity", Affinity), ("pooling", Pooling)):
            if getattr(self, name) not in get_args(known):
                expected = ", ".join(get_args(known))
                raise UserError(f"{name} must be one of {expected}, got {getattr(self, name)!r}")
        for name in ("affinity_width", "affinity_epochs", "walks_per_node"):
            if (count := getattr(self, name)) is not None and count < 1:
                raise UserError(f"{name} must be at least 1, got {count}")
        for name in ("affinity_lr", "walk_p", "walk_q", "walk_negatives"):
            if (number := getattr(self, name)) is not None and not 0 < number < float("inf"):
                raise UserError(f"{name} must be a positive number, got {number}")
        if not 2 <= self.walk_context <= self.walk_length:
            raise UserError(
                "walk_context must be at least 2 and at most walk_length "
                f"({self.walk_length}), got {self.walk_context}"
            )

    def embedding_settings(self) -> dict[str, Any]:
        """The settings that this kind of embedding reads, with its defaults filled in."""
        common = {"width": self.affinity_width}
        if self.affinity == "none":
            raise UserError("affinity is none, so there are no patches to estimate")
        if self.affinity == "vgae":
            return common | {
                "epochs": self.affinity_epochs or VGAE_EPOCHS,
                "lr": self.affinity_lr or VGAE_LR,
            }
        second_order = self.affinity == "node2vec"
        return common | {
            "epochs": self.affinity_epochs or WALK_EPOCHS,
            "lr": self.affinity_lr or WALK_LR,
            "length": self.walk_length,
            "context": self.walk_context,
            "walks_per_node": self.walks_per_node,
            "negatives": self.walk_negatives,
            "p": self.walk_p if second_order else 1.0,
            "q": self.walk_q if second_order else 1.0,
        }
