"""Every kind of bad input gets the one line that docs/data-formats.md says it gets."""

from pathlib import Path

import mistakes_in_arrays
import mistakes_in_text
import pytest

from muxgcl.errors import UserError

DOCUMENT = Path(__file__).parents[2] / "docs" / "data-formats.md"
MISTAKES = mistakes_in_text.MISTAKES | mistakes_in_arrays.MISTAKES  # in the document's order


def documented() -> dict[str, str]:
    """The table of mistakes in the documentation."""
    text = DOCUMENT.read_text().split("## What it says when something is wrong")[1]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {name: message.strip("`") for name, message in rows[2:]}


def test_the_documentation_lists_every_mistake() -> None:
    assert list(documented()) == list(MISTAKES)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_the_line_that_is_documented(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as error:
        MISTAKES[name](monkeypatch)
    said, want = str(error.value), documented()[name]
    assert "\n" not in said
    if want.endswith("..."):  # a parser's own words follow, and change with its version
        assert said.startswith(want.removesuffix("..."))
    else:
        assert said == want
