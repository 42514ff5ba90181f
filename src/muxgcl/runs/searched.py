"""Whether a file of settings was searched on the graph that it is now used for.

`muxgcl tune` writes the hash of the development half that its search read beside the settings.
"""

import tomllib
from pathlib import Path

from muxgcl.evaluate import development_hash
from muxgcl.evaluate.arrays import Labels


def searched_elsewhere(preset: str, labels: Labels | None) -> str | None:
    """A warning where settings were searched by labels of another development half, or nothing."""
    if labels is None or not preset.endswith(".toml"):
        return None
    searched = tomllib.loads(Path(preset).read_text(encoding="utf-8")).get("development")
    if searched is None or searched == development_hash(labels):
        return None
    return (
        f"{preset} was searched on another graph, or on this one with other labels or another "
        "order of its nodes; if it is the same graph, the search may have read labels of test nodes"
    )
