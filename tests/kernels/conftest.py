"""Conditions under which the fused kernels are tested."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture
def rounded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables too are rounded, as those of real size are, unless a test is marked `small`."""
    if "small" not in request.keywords:
        monkeypatch.setattr("muxgcl.kernels.fused.FEW", 0)


@pytest.fixture
def poisoned() -> Iterator[None]:
    """Fresh memory is full of NaN, so that an output that is never written shows."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
