"""What tests of named graphs share."""

from pathlib import Path

import pytest


@pytest.fixture
def no_data_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Datasets that the user has do not count."""
    monkeypatch.setenv("MUXGCL_DATA", str(tmp_path / "nothing"))
