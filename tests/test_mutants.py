"""The mutation tester: what it changes, and that its list of survivors is of today's code."""

import ast
import sys
import tomllib
from pathlib import Path

import pytest

from muxgcl.io.schema import read_lines

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tools"))

from mutants import accepted, areas, interval  # noqa: E402
from mutate import mutants  # noqa: E402

CONFIG = tomllib.loads((ROOT / "tools" / "mutants.toml").read_text(encoding="utf-8"))


def changed(source: str) -> set[str]:
    """Every line that one change to this source makes."""
    return {mutant.now for mutant in mutants(source.encode())}


@pytest.mark.parametrize(
    ("source", "want"),
    [
        ("a < b", {"((a) <= (b))"}),
        ("a == b", {"((a) != (b))"}),
        ("a < b <= c", {"((a) <= (b) <= (c))", "((a) < (b) < (c))"}),
        ("a + b * c", {"((a) - (b * c))", "a + ((b) / (c))"}),
        ("'a' + b", set()),
        ("a | b", {"a"}),
        ("a and b", {"((a) or (b))"}),
        ("x = not a", {"x = (a)"}),
        ("x = -a", {"x = (a)"}),
        ("x = 3", {"x = (3 + 1)"}),
        ("x = 0.0", {"x = 1"}),
        ("x = True", {"x = False"}),
        ("x = f(a, b=c)", {"x = f(a)"}),
        ("x = min(a)", {"x = max(a)"}),
        ("x = zip(a, b, strict=True)", set()),
        ("f(a)", {"pass"}),
        ("self.a = b", {"pass"}),
        ("a += b", {"pass"}),
        ("x = b if a else c", {"x = b if (not (a)) else c"}),
        ("x: int = a", set()),
        ("x = 'text'", set()),
        ("raise UserError(f'{a + 1}')", {"pass"}),
    ],
)
def test_a_line_is_changed_in_every_way_that_a_test_should_notice(
    source: str, want: set[str]
) -> None:
    assert changed(source) == want


def test_a_change_leaves_the_rest_of_the_file_as_it_was() -> None:
    source = (ROOT / "src" / "muxgcl" / "losses" / "multiscale.py").read_bytes()
    found = mutants(source)
    assert len({mutant.key for mutant in found}) == len(found) > 50
    for mutant in found:
        after = mutant.apply(source)
        ast.parse(after)
        assert after != source
        assert after[: mutant.start] == source[: mutant.start]
        assert source.endswith(after[mutant.start + len(mutant.text.encode()) :])


def test_what_runs_when_the_module_loads_is_told_from_what_a_call_runs() -> None:
    source = b"def f(x=1):\n    return x\n\n\nclass A:\n    y = 2\n\n    def g(self):\n        h(3)"
    assert {(m.function, m.reach, m.loads) for m in mutants(source)} == {
        ("f", (1, 2), False),  # a default: whoever runs the function
        ("A", (0, 9), True),
        ("A.g", (9, 9), False),
    }


def test_every_area_names_files_that_are_there() -> None:
    for area in areas(CONFIG, None):
        for module in area.modules:
            assert (ROOT / "src" / "muxgcl" / module).is_file()
        for file in area.tests:
            assert (ROOT / "tests" / file).is_file()


def test_every_survivor_on_the_list_is_of_todays_code_and_has_a_reason() -> None:
    modules = {module for area in areas(CONFIG, None) for module in area.modules}
    found = {m: mutants((ROOT / "src" / "muxgcl" / m).read_bytes()) for m in modules}
    for entry in CONFIG["accepted"]:
        assert entry["reason"]
        assert {"function", "was", "now"} & entry.keys()
        assert any(accepted(m, entry["module"], [entry]) for m in found[entry["module"]]), entry


def test_the_interval_of_a_share_is_wilsons() -> None:
    assert interval(90, 100) == (0.826, 0.945)
    assert interval(10, 10)[1] == 1.0


def test_the_recorded_figures_add_up_and_reach_what_is_asked() -> None:
    last = {row["area"]: row for row in read_lines(ROOT / "records" / "mutants.jsonl")}
    assert last.keys() == {area.name for area in areas(CONFIG, None)}
    for row in last.values():
        assert row["mutants"] == row["killed"] + row["survived"] + row["accepted"]
        assert row["score"] == round(row["killed"] / (row["mutants"] - row["accepted"]), 4) >= 0.85
        assert row["commit"]
