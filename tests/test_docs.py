"""The documentation keeps its word: its commands run, its generated pages leave nothing out."""

import re
import shlex
import tomllib
from dataclasses import fields
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import typer

pytest.importorskip("mkdocs", reason="the documentation's tools are not installed")
pytest.importorskip("latex2mathml", reason="the documentation's tools are not installed")

from muxgcl.cli import commands as declared  # noqa: F401
from muxgcl.cli.app import run
from muxgcl.methods import METHODS

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(
    r'^```(?P<kind>python|bash)?(?: title="(?P<name>[^"\n]*)")?\n(?P<code>.*?)^```', re.S | re.M
)
# what a reader waits a minute for, in a second
SHORT = ["--epochs", "2", "--splits", "2", "--set", "width=16", "--set", "affinity_epochs=1"]


def module(path: Path) -> ModuleType:
    spec = spec_from_file_location(f"docs_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_the_tutorial_runs_from_its_first_block_to_its_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    said = ""
    for block in BLOCK.finditer((DOCS / "tutorial.md").read_text(encoding="utf-8")):
        if block["kind"] == "python":
            exec(compile(block["code"], block["name"], "exec"), {})
        elif block["kind"] == "bash":
            program, *words = shlex.split(block["code"].replace("\\\n", " "))
            assert program == "muxgcl"
            assert run([*words, *(SHORT if words[0] == "run" else [])]) == 0
            said += capsys.readouterr().err
        elif "made undirected" in block["code"]:  # what the text promises to be said
            assert [line for line in block["code"].splitlines() if line not in said] == []
    assert "made undirected" in said
    assert "most of the nearest are in" in capsys.readouterr().out
    assert (tmp_path / "runs/people/report.html").is_file()


# `muxgcl run ...` in a block or between backticks, to the end of its (continued) line
TYPED = re.compile(r"(?:^|`|-m |bin/)muxgcl ((?:[^`\n\\]|\\\n)+)", re.M)


def typed() -> list[tuple[Path, list[str]]]:
    """Every command line in the pages, as words; comments are left out."""
    pages = [*DOCS.rglob("*.md"), DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"]
    return [
        (page, line.replace("\\\n", " ").split("#")[0].replace("'", "").split())
        for page in pages
        for line in TYPED.findall(re.sub(r"^ {4}", "", page.read_text("utf-8"), flags=re.M))
    ]


def test_every_command_in_the_pages_exists_with_its_options() -> None:
    commands = module(DOCS / "hooks/commands.py")
    root = typer.main.get_command(commands.app)
    known = {
        tuple(name.split()[1:]): {word for option in node.params for word in option.opts}
        | {word for option in node.params for word in option.secondary_opts}
        for name, node, _ in commands.walk(root.context_class(root, info_name="muxgcl"))
    }
    own = {word for option in root.params for word in option.opts}  # of muxgcl itself
    wrong, seen = [], set()
    for page, words in typed():
        name = next((tuple(words[:n]) for n in (2, 1) if tuple(words[:n]) in known), None)
        if name is None:
            if words[0] not in {first for first, *_ in known} | own | {"COMMAND"}:
                wrong.append(f"{page.name}: muxgcl {' '.join(words)}")
            continue
        seen.add(name[0])
        options = [word.split("=")[0].rstrip(".,;:)") for word in words if word.startswith("-")]
        wrong += [f"{page.name}: {name} {o}" for o in options if o not in {*known[name], "--help"}]
    assert wrong == []
    assert {"run", "embed", "tune", "report", "reproduce", "bench", "datasets"} <= seen


def test_every_import_in_the_pages_works() -> None:
    lines = {
        line
        for page in DOCS.rglob("*.md")
        for block in BLOCK.finditer(page.read_text(encoding="utf-8"))
        for line in re.findall(r"^(?:from|import) muxgcl.*", block["code"], re.M)
    }
    assert len(lines) > 8
    for line in lines:
        exec(line, {})


@pytest.mark.parametrize("name", ["docs/how-a-run-flows.md", "CONTRIBUTING.md"])
def test_every_file_that_a_page_names_is_there(name: str) -> None:
    root = DOCS.parent
    text = (root / name).read_text(encoding="utf-8")
    found = set(re.findall(r"(?<![\w/.-])[a-z_]+(?:/[a-z_0-9-]+)*\.(?:py|md)\b", text))
    assert len(found) > 5
    places = (root, root / "src/muxgcl")
    assert [file for file in found if not any((place / file).is_file() for place in places)] == []


def test_every_promise_of_reliability_names_a_test_that_is_there() -> None:
    named = re.findall(
        r"\| `(\S+\.py)::(test_\w+)` \|", (DOCS / "reliability.md").read_text("utf-8")
    )
    assert len(named) > 60
    tests = Path(__file__).parent
    gone = [f"{f}::{n}" for f, n in named if f"def {n}(" not in (tests / f).read_text("utf-8")]
    assert gone == []


def test_no_page_installs_from_an_index_what_is_on_none() -> None:
    wrong = re.compile(r"pip install (-\S+ )*'?muxgcl(?!.* @ )")
    for page in (*DOCS.rglob("*.md"), DOCS.parent / "README.md"):
        assert not wrong.search(page.read_text(encoding="utf-8")), page
    assert wrong.search("pip install 'muxgcl[io]'")
    assert not wrong.search("pip install 'muxgcl[io] @ git+URL'")


def test_the_package_says_who_made_it_and_what_it_is_for() -> None:
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = (DOCS.parent / "CITATION.cff").read_text(encoding="utf-8")
    assert all(author["name"] in cited for author in project["authors"])
    assert all(url in cited for url in project["urls"].values())
    minors = {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)}
    assert minors < set(project["classifiers"])


def test_the_first_page_is_not_called_as_the_site() -> None:
    config = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    assert "site_name: muxgcl\n" in config
    assert "nav:\n  - Overview: index.md\n" in config


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_of_a_method_is_described(name: str) -> None:
    rows = module(DOCS / "hooks/methods.py").settings(METHODS[name].Config).splitlines()[2:]
    bare = [row for row in rows if not row.split(" | ", 2)[2].rstrip("| ")]
    assert bare == []


def test_every_method_and_setting_is_on_its_page() -> None:
    page = module(DOCS / "hooks/methods.py").page()
    for name, kind in METHODS.items():
        section = page.split(f"## {name} {{")[1].split("\n## ")[0]
        assert [f.name for f in fields(kind.Config) if f"| `{f.name}` |" not in section] == []


def test_every_command_and_option_is_on_its_page() -> None:
    page = module(DOCS / "hooks/commands.py").page()
    for command in ("run", "train", "embed", "evaluate", "report", "tune", "reproduce"):
        assert f"## muxgcl {command} {{" in page
    section = page.split("## muxgcl run {")[1].split("\n## ")[0]
    for option in ("--set KEY=VALUE", "--label-column", "--protocol", "--resume"):
        assert f"| `{option}" in section


def test_a_formula_becomes_mathml_and_an_unknown_word_is_an_error() -> None:
    formulas = module(DOCS / "hooks/formulas.py")
    page = r'<p><span class="arithmatex">\(\mathcal L &lt; \mathbb E_i\)</span></p>'
    converted = formulas.on_page_content(page)
    assert converted.startswith('<p><math xmlns="http://www.w3.org/1998/Math/MathML"')
    assert "<mi>\N{SCRIPT CAPITAL L}</mi>" in converted
    assert "<mi>\N{MATHEMATICAL DOUBLE-STRUCK CAPITAL E}</mi>" in converted
    with pytest.raises(ValueError, match="nosuchword"):
        formulas.on_page_content(r'<div class="arithmatex">\[\nosuchword x\]</div>')


def test_formulas_on_two_lines_stay_two() -> None:
    formulas = module(DOCS / "hooks/formulas.py")
    page = formulas.on_page_content('<div class="arithmatex">\\[x\n$$\n$$y\\]</div>')
    assert page.count('display="block"') == 2
    assert "$" not in page


def test_the_figures_are_what_their_script_draws(tmp_path: Path) -> None:
    make = module(DOCS / "figures/make.py")
    for figure in make.FIGURES:
        name = f"{figure.__name__.replace('_', '-')}.svg"
        figure().save(tmp_path / name)
        assert (tmp_path / name).read_text() == (DOCS / "figures" / name).read_text()
