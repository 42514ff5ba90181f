"""Scores and facts as a person reads them."""

from collections.abc import Iterator, Mapping
from textwrap import fill
from typing import Any

from rich.console import Console
from rich.table import Table

from muxgcl.evaluate.controls import control_name
from muxgcl.io.safety import how_many

MEASURES = {
    "accuracy": "accuracy %",
    "macro_f1": "macro F1 %",
    "nmi": "NMI",
    "ari": "ARI",
    "auc": "AUC",
    "ap": "average precision",
    "structure": "structure",
    "stability": "stability",
    "modularity": "modularity",
}
PERCENT = ("accuracy", "macro_f1")
OPTIMISTIC = "optimistic: the epoch was chosen on test nodes"


def say(sentence: str, where: Console, style: str | None = None) -> None:
    """Print a sentence: on a terminal broken between words, with paths whole; else in one line."""
    if where.is_terminal:
        sentence = fill(sentence, where.width, break_long_words=False, break_on_hyphens=False)
    where.print(sentence, style=style, soft_wrap=True)


def show_scores(
    method: str, scores: Mapping[str, Any], verdict: Mapping[str, Any] | None, where: Console
) -> None:
    """A table a protocol: the method, then each control under its name; then the verdict."""
    controls = scores.get("controls") or {}
    sign = "±" if where.encoding.lower().startswith("utf") else "+/-"
    protocols = [name for name in scores if name != "controls" and _figures(scores[name])]
    for protocol in protocols:
        named = {method: scores[protocol]}
        named |= {
            control_name(name): part[protocol]
            for name, part in controls.items()
            if protocol in part
        }
        where.print(_table(protocol, named, sign))
    if verdict is not None:
        say(str(verdict["sentence"]).replace("±", sign), where)


def _figures(part: Any) -> dict[str, Mapping[str, Any]]:
    """The measures that are shown."""
    if not isinstance(part, Mapping):
        return {}
    found = {name: part.get(name) for name in MEASURES}
    return {name: x for name, x in found.items() if isinstance(x, Mapping) and "mean" in x}


def _table(protocol: str, named: Mapping[str, Mapping[str, Any]], sign: str) -> Table:
    own = _figures(next(iter(named.values())))
    repeats = next(iter(own.values())).get("n", 1)
    title = f"{protocol} (n = {repeats}{'; ' + OPTIMISTIC if protocol == 'paper' else ''})"
    table = Table(box=None, pad_edge=False)
    table.add_column(title, overflow="fold")
    for measure in own:
        table.add_column(MEASURES[measure], justify="right", no_wrap=True)
    for name, part in named.items():
        figures = _figures(part)
        cells = [
            _figure(m, figures[m], own[m].get("n", 1), sign) if m in figures else "" for m in own
        ]
        table.add_row(f"  {name}", *cells)
    return table


def _figure(measure: str, value: Mapping[str, Any], usual: int, sign: str) -> str:
    """Mean and spread; the number of repeats where it is not the usual one."""
    digits, n = 2 if measure in PERCENT else 3, value.get("n", 1)
    spread = f" {sign} {value.get('std', 0.0):.{digits}f}" if n > 1 else ""
    other = f" (n = {n})" if n > 1 and n != usual else ""
    return f"{value['mean']:.{digits}f}{spread}{other}"


def edges_of(entries: int, *, directed: bool = False) -> str:
    """How many edges a graph has, each counted once; a graph stores two entries for each."""
    if directed:
        return f"{how_many(entries // 2, 'pair')} of nodes with directed edges"
    return how_many(entries // 2, "edge")


def info_rows(info: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The rows of `muxgcl info`: a name and a value each."""
    yield "run", str(info["run"])
    members = f", {info['members']} members" if info["members"] > 1 else ""
    yield "method", f"{info['method']} (preset {info['preset']}, seed {info['seed']}{members})"
    counts = [
        edges_of(info[name], directed=info["directed"]) if name == "edges" else f"{count:,} {name}"
        for name in ("nodes", "edges", "features", "classes")
        if (count := info[name]) is not None and (count or name in ("nodes", "edges"))
    ]
    yield "graph", f"{info['dataset']}: {', '.join(counts)}"
    state = "finished" if info["finished"] else "not finished: --resume goes on"
    loss = "" if info["loss"] is None else f", loss {info['loss']:.4f}"
    yield "epochs", f"{info['epochs_done']} of {info['epochs']}{loss}, {state}"
    width = info["output_width"]
    yield "width", "all columns that are read out" if width is None else f"{width:,} columns"
    yield "settings", ", ".join(f"{key} = {value}" for key, value in info["settings"].items())
    yield "created", str(info["created"])
    if info["command"]:
        yield "command", str(info["command"])
    yield "files", ", ".join(info["files"])
