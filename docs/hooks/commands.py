"""The page of commands, made from the command line itself: it cannot lag behind."""

import re
from collections.abc import Iterator
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from muxgcl.cli import commands  # noqa: F401  (declares every command)
from muxgcl.cli.app import app

PAGE = "commands.md"
# what a help page adds to the words of an option
DEFAULT = re.compile(r"\[(?:.*; )?default: ([^;\]]+)")
LIST = re.compile(r"<list\[(.*)\]>")
NOTES = re.compile(r"\s*\[[^\]]*(?:default: |required)[^\]]*\]\s*$")
INTRODUCTION = """\
# Commands

Every command and every option, as the program itself declares them; `muxgcl COMMAND --help` shows
the same.

- Progress and messages go to standard error. With `--json` the last line of standard output is one
  JSON object, and nothing else is written there.
- A mistake is one line on standard error that says what was expected and what came, and exit
  status 2. `--debug`, anywhere on the line, adds the traceback.
- Ctrl-C or SIGTERM stops at the end of an epoch, keeps a checkpoint, prints the command that
  continues the run, and exits with status 130 or 143.
"""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the page."""
    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    """The whole page, in Markdown."""
    root: Any = typer.main.get_command(app)
    context = root.context_class(root, info_name="muxgcl")
    rows = [f"| [`{name}`](#{_anchor(name)}) | {_first(node)} |" for name, node, _ in walk(context)]
    index = "\n".join(["| command | what it does |", "| --- | --- |", *rows])
    return "\n".join([INTRODUCTION, index, *(section(*found) for found in walk(context))])


def walk(context: Any) -> Iterator[tuple[str, Any, Any]]:
    """Every command that can be typed: its full name, itself and its context."""
    root = context.command
    for name in root.list_commands(context):
        node = root.get_command(context, name)
        inner = node.context_class(node, info_name=name, parent=context)
        group = hasattr(node, "list_commands")
        if not group or node.invoke_without_command:
            yield inner.command_path, node, inner
        if group:
            yield from walk(inner)


def section(name: str, node: Any, context: Any) -> str:
    """One command: its use, then its arguments and options as its help page has them."""
    use = " ".join([name, *node.collect_usage_pieces(context)])
    blocks = [f"\n## {name} {{ #{_anchor(name)} }}", node.help or "", f"```\n{use}\n```"]
    records = [parameter.get_help_record(context) for parameter in node.params]
    if rows := [_row(*record) for record in records if record is not None]:
        blocks.append(
            "\n".join(["| option | what it does | default |", "| --- | --- | --- |", *rows])
        )
    return "\n\n".join(blocks)


def _row(names: str, text: str) -> str:
    default = DEFAULT.search(text)
    shown = f"`{default[1]}`" if default else ""
    names = LIST.sub(r"<\1>", names)  # that an option may be repeated, its text says
    return f"| `{names}` | {_cell(NOTES.sub('', text))} | {shown} |"


def _first(node: Any) -> str:
    return _cell((node.help or "").strip().split("\n\n")[0])


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def _anchor(name: str) -> str:
    return name.removeprefix("muxgcl ").replace(" ", "-")
