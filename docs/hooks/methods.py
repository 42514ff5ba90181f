"""The page of methods, made from the registry: a new method documents itself."""

import inspect
import re
import tomllib
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from importlib.resources import files as resources
from typing import Any, Literal, get_args, get_origin

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from muxgcl.methods import METHODS, Method
from muxgcl.runs.settings import hints

PAGE = "methods.md"
INTRODUCTION = """\
# Methods

Every method runs through the same commands, settings, run folders, protocols and reports:
`muxgcl run GRAPH --method NAME`, or `NodeEmbedder("NAME")` from Python. This page is made from the
methods' own docstrings, settings and presets.

*Cost* is how time grows with the number of nodes; none holds a matrix of all pairs of nodes.
*New graphs* says whether a trained run can [embed a graph](commands.md#embed) that it has not seen.
Any setting is changed with `--set key=value`; training itself has `epochs`, `lr` and `weight_decay`
in every method.
"""
# `width: int = 128  # of the embedding`
COMMENTED = re.compile(r"^\s{4}(?P<name>\w+):[^#\n]*#\s*(?P<comment>.+?)\s*$", re.M)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the page."""
    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    """The whole page, in Markdown."""
    rows = [
        f"| [`{name}`](#{name}) | {kind.cost} | {'yes' if kind.inductive else 'no'} "
        f"| {_summary(kind)} |"
        for name, kind in METHODS.items()
    ]
    table = "\n".join(
        ["| method | cost | new graphs | in a sentence |", "| --- | --- | --- | --- |", *rows]
    )
    return "\n".join([INTRODUCTION, table, *(section(*entry) for entry in METHODS.items())])


def section(name: str, kind: type[Method]) -> str:
    """One method: what it is, its settings, its presets."""
    module = inspect.getmodule(kind)
    return "\n\n".join(
        [
            f"\n## {name} {{ #{name} }}",
            f"**{_summary(kind)}**",
            inspect.getdoc(module) or "",
            settings(kind.Config),
            presets(name),
        ]
    )


def settings(config: type[Any]) -> str:
    """A table of the settings: name, default, and the comment beside it in the source."""
    comments, kinds = dict(_comments(config)), hints(config)
    rows = [
        f"| `{f.name}` | `{_default(f)}` | {_meaning(kinds[f.name], comments.get(f.name))} |"
        for f in fields(config)
    ]
    if not rows:
        return "There is nothing to set."
    return "\n".join(["| setting | default | meaning |", "| --- | --- | --- |", *rows])


def presets(name: str) -> str:
    """Where the settings of each preset come from, and the settings themselves, folded away."""
    file = resources("muxgcl.runs.presets").joinpath(f"{name}.toml")
    if not file.is_file():
        return ""
    text = file.read_text(encoding="utf-8")
    sources: dict[str, dict[str, list[str]]] = {}
    for preset, datasets in tomllib.loads(text).items():
        for dataset, values in datasets.items():
            said = values.get("source", "the defaults")
            sources.setdefault(preset, {}).setdefault(said, []).append(dataset)
    rows = [
        f"    | `{preset}` | {', '.join(datasets)} | {_cell(source)} |"
        for preset, found in sources.items()
        for source, datasets in found.items()
    ]
    table = ["    | preset | for | from |", "    | --- | --- | --- |", *rows]
    code = [f"    {line}".rstrip() for line in ["```toml", *text.splitlines(), "```"]]
    return "\n".join(['??? note "Presets"', "", *table, "", *code])


def _comments(config: type[Any]) -> Iterator[tuple[str, str]]:
    for part in reversed(config.__mro__):
        if part is not object:
            yield from COMMENTED.findall(inspect.getsource(part))


def _default(field: Field[Any]) -> str:
    if field.default is MISSING:
        return "must be given"
    value = field.default
    return ", ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value).lower()


def _meaning(hint: Any, comment: str | None) -> str:
    choices = ", ".join(f"`{choice}`" for choice in get_args(hint) if get_origin(hint) is Literal)
    return _cell("; ".join(filter(None, [choices and f"one of {choices}", comment])))


def _summary(kind: type[Method]) -> str:
    return _cell((inspect.getdoc(kind) or "").splitlines()[0])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
