"""What config.toml tells of a graph, and how another graph differs from it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from muxgcl.errors import UserError
from muxgcl.graph import Graph, graph_fingerprint
from muxgcl.io.structure import NAMES
from muxgcl.runs.folder import Run

MADE = re.compile(  # a note; older run folders have the second form
    r"made from the edges \((\d+) of degree, (\d+) of position\)"
    r"|(\d+) bins of degree and (\d+) of position made from edges"
)


def graph_facts(graph: Graph, notes: Sequence[str] = (), classes: int = 0) -> dict[str, Any]:
    """The facts on a graph that config.toml holds."""
    return {
        **_counts(graph),
        "classes": classes,
        **kinds_of(graph),
        "fingerprint": graph_fingerprint(graph),
        "notes": [*notes],
    }


def _counts(graph: Graph) -> dict[str, int]:
    edges = len(graph.adjacency.col) - graph.num_nodes  # both ways, without self-loops
    return {"nodes": graph.num_nodes, "edges": edges, "features": graph.num_features}


def kinds_of(graph: Graph) -> dict[str, Any]:
    """Whether edges are directed, and their types, where there is more to say than usual."""
    if graph.edge_kinds is None:
        return {}
    types = {"edge_types": [*graph.edge_kinds.names]} if graph.edge_kinds.names else {}
    return {"directed": graph.edge_kinds.directed, **types}


def check_kinds(before: Mapping[str, Any], graph: Graph) -> None:
    """Refuse a graph whose edges are of other kinds than those that were trained on."""
    now = kinds_of(graph)
    for name, none, what in (("directed", False, "directed edges"), ("edge_types", [], "types")):
        trained, here = before.get(name, none), now.get(name, none)
        if trained != here:
            raise UserError(
                f"trained on {_shown(what, trained)}, this graph has {_shown(what, here)}"
            )


def _shown(what: str, value: bool | list[str]) -> str:
    if isinstance(value, list):
        return f"{what} of edges {', '.join(value)}" if value else "one type of edges"
    return what if value else "undirected edges"


def other_graph(before: Mapping[str, Any], graph: Graph) -> str:
    """In which counts a graph differs from the one that config.toml tells of."""
    differ = [
        f"{count:,} {name} instead of {before[name]:,}"
        for name, count in _counts(graph).items()
        if before.get(name, count) != count
    ]
    return ", ".join(differ) or "as many nodes, edges and features, but other ones"


def check_made(run: Run) -> None:
    """Refuse a run whose features were made from edges in another way than is done here."""
    for note in run.config().get("data", {}).get("notes", []):
        found = MADE.search(note)
        if found and (made := sum(int(part) for part in found.groups() if part)) != len(NAMES):
            raise UserError(
                f"{run.path}: its {made} features from edges were made by another version, and "
                f"this one makes {len(NAMES)}: train it again"
            )
