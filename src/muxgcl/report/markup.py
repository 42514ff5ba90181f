"""HTML in small pieces. Whatever comes from a run passes through `text`, and cannot be markup."""

import json
import re
from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

LONG_WORD = 24  # characters; a longer one, such as a path, is broken where it has to be
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def text(value: Any) -> str:
    """Anything as text inside an element or an attribute."""
    return escape(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", str(value)))


def prose(value: Any) -> str:
    """A sentence as markup: what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text(value))


def embedded_json(value: Any) -> str:
    """JSON for a script element: nothing in it can close the element or open a comment."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def section(name: str, title: str, reading: str, body: str) -> str:
    """A card: heading, one sentence on how to read it, content (markup)."""
    intro = f"<p>{prose(reading)}</p>" if reading else ""
    return f'<section id="{name}"><h2>{text(title)}</h2>{intro}{body}</section>'


def halves(left: str, right: str) -> str:
    """Markup side by side, one above the other where the page is narrow."""
    return f'<div class="halves">{left}<div>{right}</div></div>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], own: Collection[int] = ()) -> str:
    """A table of markup cells; the first of a row names it, the rows in `own` stand out.

    A wide table scrolls in a box of its own. Only a cell with a very long word breaks words.
    """
    head = "".join(f'<th scope="col">{cell}</th>' for cell in heads)
    body = "".join(
        f'<tr{" class=own" if k in own else ""}><th scope="row">{row[0]}</th>'
        + "".join(f"<td{_wrapped(cell)}>{cell}</td>" for cell in row[1:])
        + "</tr>"
        for k, row in enumerate(rows)
    )
    top = f"<thead><tr>{head}</tr></thead>" if heads else ""
    return f'<div class="scroll"><table>{top}<tbody>{body}</tbody></table></div>'


def _wrapped(cell: str) -> str:
    return ' class="wrap"' if any(len(word) > LONG_WORD for word in cell.split()) else ""


def pairs(values: Mapping[str, Any]) -> str:
    """Names and values as a table of two columns."""
    return table((), [(text(name), text(value_text(value))) for name, value in values.items()])


def value_text(value: Any) -> str:
    """A setting as a person writes it."""
    if isinstance(value, list | tuple):
        return ", ".join(map(value_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} = {value_text(part)}" for name, part in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)


def bullets(lines: Iterable[str]) -> str:
    """Lines of markup as a list."""
    return '<ul class="plain">' + "".join(f"<li>{line}</li>" for line in lines) + "</ul>"


def template(name: str, **parts: str) -> str:
    """One of the package's HTML files, its `$parts` filled in with markup."""
    return Template(_file(name)).substitute(parts)


def _file(name: str) -> str:
    return files("muxgcl.report").joinpath(name).read_text(encoding="utf-8")


def document(title: str, body: str, data: Any, scripts: Sequence[str]) -> str:
    """The whole page. Its policy lets no request out and runs no script but the one put here."""
    script = "\n".join(map(_file, scripts))
    fingerprint = b64encode(sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{fingerprint}'"
    return template(
        "page.html",
        title=text(title),
        policy=policy,
        style=_file("page.css"),
        body=body,
        data=embedded_json(data),
        script=script,
    )
