"""A short run of which members and widths are asked for."""

from typing import Any

import numpy as np

from muxgcl import RunOptions

OPTIONS = RunOptions(
    method="grace",
    preset="quick",
    settings={"width": 8, "projection": 8},
    epochs=4,
    splits=2,
    device="cpu",
    controls=False,
    report=False,
)


def unit(table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
