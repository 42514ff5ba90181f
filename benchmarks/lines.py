"""One JSON line after the other."""

import json
from pathlib import Path
from typing import Any


def append(path: Path, row: Any) -> None:
    """Add a line to a file, which need not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
