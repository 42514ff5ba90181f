"""Settings from presets, TOML and `key=value`."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from muxgcl.errors import UserError
from muxgcl.graph import Graph
from muxgcl.io.planted import planted
from muxgcl.runs.plan import Plan
from muxgcl.runs.settings import TrainConfig, parse_pairs, preset, split_settings, to_toml


@dataclass(frozen=True, kw_only=True)
class Example:
    width: int = 8
    rates: tuple[float, float] = (0.1, 0.2)
    weights: tuple[float, ...] = (1.0,)
    kind: Literal["a", "b"] = "a"
    out: int | None = None
    flag: bool = False


def build(**values: object) -> Example:
    return split_settings(values, TrainConfig, Example)[1]


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("width=12", "width", 12),
        ("rates=.3,.4", "rates", (0.3, 0.4)),
        ("weights=.2,.2,.6", "weights", (0.2, 0.2, 0.6)),
        ("kind=b", "kind", "b"),
        ("out=none", "out", None),
        ("out=5", "out", 5),
        ("flag=true", "flag", True),
    ],
)
def test_text_becomes_the_fields_type(text: str, field: str, value: object) -> None:
    assert getattr(build(**parse_pairs([text])), field) == value


@pytest.mark.parametrize("method", ["homogcl", "gca", "mux-gcl"])
def test_auto_lets_the_projector_follow_where_the_rules_are_its_own(method: str) -> None:
    graph = Graph.from_data(planted(nodes=40))
    before, after = (
        Plan.make(method, "auto", overrides=given, graph=graph).settings.projection
        for given in ({}, {"width": 32})
    )
    assert after == (32 if method == "mux-gcl" else before)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("width=x", "width must be a whole number, got 'x'"),
        ("width=1.5", "width must be a whole number"),
        ("rates=.3", "rates must be 2 numbers"),
        ("kind=c", "kind must be one of a, b, got 'c'"),
        ("flag=yes", "flag must be true or false, got 'yes'"),
        ("widht=3", "unknown setting 'widht'; did you mean width"),
        ("epochs=0", "epochs must be at least 1, got 0"),
        ("lr=-1", "lr must be positive"),
        ("width", "key=value, got 'width'"),
        ("source=x", "unknown setting 'source'"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(text: str, words: str) -> None:
    with pytest.raises(UserError, match=words) as error:
        build(**parse_pairs([text]))
    assert "\n" not in str(error.value)


def test_toml_comes_back_as_it_went() -> None:
    table = {"a": 1, "b": 0.1, "c": 'x "y" \\ ü\n 🜁 \x7f', "d": [0.2, 0.3], "e": True, "f": ["x"]}
    assert tomllib.loads(to_toml({"t": table | {"gone": None}})) == {"t": table}


@pytest.mark.parametrize("key", ["epochs", "lr", "width"])
def test_a_truth_value_is_no_number(key: str) -> None:
    with pytest.raises(UserError, match=f"{key} must be a .*number, got True"):
        build(**{key: True})


def test_where_settings_come_from_may_stand_in_a_file_of_them(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text('source = "a search"\nwidth = 4\n')
    assert preset("grace", str(file), "cora") == {"width": 4}
    assert "source" not in preset("grace", "paper", "cora")


@pytest.mark.parametrize("tables", [{}, {"run": {}}, {"run": {"method": "grace"}}, {"train": {}}])
def test_tables_that_are_no_runs_are_one_clear_line(tables: dict[str, dict[str, str]]) -> None:
    with pytest.raises(UserError, match=r"config.toml: run.(method|preset) is missing"):
        Plan.from_tables(tables)


def test_a_plan_comes_back_from_its_tables() -> None:
    plan = Plan.make("grace", "paper", "cora", {"width": 16, "epochs": 3}, seed=4)
    assert Plan.from_tables(tomllib.loads(to_toml(plan.tables()))) == plan


def test_an_unknown_preset_is_named_with_those_there_are() -> None:
    with pytest.raises(UserError, match=r"grace has no preset 'fast'; it has .*paper"):
        preset("grace", "fast", "cora")


def test_a_dataset_without_its_own_table_gets_the_default() -> None:
    assert preset("grace", "paper", "no-such-graph") == preset("grace", "paper", "default")


def test_a_setting_of_another_method_is_told_so() -> None:
    with pytest.raises(UserError, match=r"layers is a setting of mux-gcl, .*, not of mux-hop"):
        Plan.make("mux-hop", "quick", overrides={"layers": 3})
    with pytest.raises(UserError, match="unknown setting 'layrs'"):
        Plan.make("mux-hop", "quick", overrides={"layrs": 3})
