r"""Formulas as MathML, made while the site is built: browsers draw it without script or network.

Arithmatex leaves `\(...\)` and `\[...\]` in the page, in docstrings too; here they are converted.
"""

import re
from html import unescape
from unicodedata import lookup

from latex2mathml.converter import convert

FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?P<open>[(\[])(?P<tex>.*?)\\[)\]]</(?P=tag)>', re.S
)
# browsers know one style of letter, italic; the others are letters of their own in Unicode
STYLED = re.compile(r'<mi mathvariant="(?P<style>script|double-struck)">(?P<letter>\w)</mi>')
UNKNOWN = re.compile(r"<m(?:i|o|text)>\\\w+")


def on_page_content(html: str, **_: object) -> str:
    """MathML in place of every formula of a page."""
    return FORMULA.sub(_formula, html)


def _formula(found: re.Match[str]) -> str:
    display = "block" if found["open"] == "[" else "inline"
    tex = " ".join(unescape(found["tex"]).split())
    # formulas on lines of their own, without a blank line between, arrive as one
    return "".join(_mathml(part, display) for part in re.split(r"\$\$ ?\$\$", tex))


def _mathml(tex: str, display: str) -> str:
    mathml = convert(tex, display=display)
    if "$" in tex or UNKNOWN.search(mathml):
        raise ValueError(f"a formula has a word that cannot be converted: {tex}")
    return STYLED.sub(_letter, mathml)


def _letter(found: re.Match[str]) -> str:
    style, letter = found["style"].upper(), found["letter"].upper()
    case = "CAPITAL" if found["letter"].isupper() else "SMALL"
    try:
        styled = lookup(f"{style} {case} {letter}")  # ℒ, 𝔼's neighbours ℝ, ℂ: older than the rest
    except KeyError:
        styled = lookup(f"MATHEMATICAL {style} {case} {letter}")
    return f"<mi>{styled}</mi>"
