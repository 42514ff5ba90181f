"""Settings: frozen dataclasses in code, TOML in files, `key=value` on the command line."""

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from muxgcl.errors import UserError, unknown_name

T = TypeVar("T")
MOST_EPOCHS = 100_000_000  # a year and more of the shortest ones
ORIGIN = ("source", "development", "sample")  # what else a table of settings holds


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """How long and how fast to train."""

    epochs: int = 300
    lr: float = 5e-4
    weight_decay: float = 1e-5

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise UserError(f"epochs must be at least 1, got {self.epochs}")
        if self.epochs > MOST_EPOCHS:
            shown = f"{self.epochs:,}" if self.epochs < 10**30 else "a longer number"
            raise UserError(f"epochs must be at most {MOST_EPOCHS:,}, got {shown}")
        if self.lr <= 0 or self.weight_decay < 0:
            raise UserError(
                "lr must be positive and weight_decay not negative, "
                f"got {self.lr} and {self.weight_decay}"
            )


def preset(method: str, name: str, dataset: str) -> dict[str, Any]:
    """A method's settings for a dataset: the preset's own table, or its `default`.

    `paper` has the authors' settings where they publish some, and ours elsewhere; where nothing
    better is known for a dataset, `best` is `paper`. A name that ends in `.toml` is a user's file:
    one flat table of settings.
    """
    if name.endswith(".toml"):
        return _settings_file(Path(name))
    return _without_source(_preset_table(method, name, dataset))


def _preset_table(method: str, name: str, dataset: str) -> dict[str, Any]:
    tables = _presets(method)
    if not tables:
        return {}  # a method of one's own: its Config says it all
    if name == "best" and not {dataset, "default"} & tables.get(name, {}).keys():
        name = "paper"
    if name not in tables:
        known = ", ".join(dict.fromkeys(["best", *tables, "auto"]))
        message = f"{method} has no preset {name!r}; it has {known}, or a .toml file"
        if name == "paper":
            message += " (published methods have `paper`, as with --method mux-gcl)"
        raise UserError(message)
    found: dict[str, Any] = tables[name].get(dataset) or tables[name].get("default") or {}
    return found


@cache
def _presets(method: str) -> dict[str, Any]:
    """What the method's file of presets holds; nothing where it has none."""
    file = files("muxgcl.runs.presets").joinpath(f"{method}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def source(method: str, name: str, dataset: str) -> str:
    """Where the settings of a preset come from, in the words of its file."""
    table = _preset_table(method, name, dataset)
    return str(table.get("source", "ours"))


def origin(method: str, name: str, dataset: str) -> str:
    """Whose settings a preset has for a dataset: "official", "mixed" or "ours"."""
    words = source(method, name, dataset)
    if not words.startswith("official"):
        return "ours"
    return "mixed" if " ours" in words else "official"


def searches(method: str, name: str, dataset: str) -> tuple[str, ...]:
    """The records of searches, by file, that the settings of a preset come from in some part."""
    return tuple(re.findall(r"records/([\w-]+\.jsonl)", source(method, name, dataset)))


def trainings(method: str, name: str, dataset: str) -> int:
    """How many trainings of a search found nothing better than a preset, by its file; or 0."""
    told = re.search(r"(\d+) trainings on the development half", source(method, name, dataset))
    return int(told[1]) if told else 0


def _settings_file(path: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:  # neither TOML nor text
        raise UserError(f"{path} is not a table of settings: {error}") from None
    if nested := [key for key, value in table.items() if isinstance(value, dict)]:
        raise UserError(f"{path} must be one flat table of settings, but has [{nested[0]}]")
    return _without_source(table)


def _without_source(table: Mapping[str, Any]) -> dict[str, Any]:
    """The settings alone: the rest tells a reader of the file where they come from."""
    return {key: value for key, value in table.items() if key not in ORIGIN}


def split_settings(values: Mapping[str, Any], *kinds: type[Any]) -> list[Any]:
    """Build several configs from one flat table; a key that none of them has is an error."""
    types = [hints(kind) for kind in kinds]
    known = [name for table in types for name in table]
    if unknown := [key for key in values if key not in known]:
        raise UserError(unknown_name("setting", unknown[0], known))
    return [
        kind(**{k: convert(k, v, table[k]) for k, v in values.items() if k in table})
        for kind, table in zip(kinds, types, strict=True)
    ]


def hints(kind: type[Any]) -> dict[str, Any]:
    """The fields of a config and their types."""
    types = get_type_hints(kind)
    return {field.name: types[field.name] for field in fields(kind)}


def parse_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """`["key=value", ...]` as the command line takes them."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UserError(f"a setting is written key=value, got {pair!r}")
        found[key.strip()] = value.strip()
    return found


def convert(key: str, value: Any, hint: Any) -> Any:
    """A value from TOML or from the command line as the type that the field has."""
    try:
        return _convert(value, hint)
    except (TypeError, ValueError, OverflowError, AttributeError):
        shown = repr(value)
        shown = shown if len(shown) <= 60 else shown[:60] + "..."
        raise UserError(f"{key} must be {_describe(hint)}, got {shown}") from None


def _convert(value: Any, hint: Any) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        if value is None or value == "none":
            return None
        return _convert(value, next(a for a in args if a is not NoneType))
    if origin is Literal:
        if value not in args:
            raise ValueError
        return value
    if origin is tuple:
        parts = value.strip("()[] ").split(",") if isinstance(value, str) else list(value)
        kinds = [args[0]] * len(parts) if args[-1] is Ellipsis else args
        return tuple(_convert(part, kind) for part, kind in zip(parts, kinds, strict=True))
    if hint is bool:
        if (word := str(value).lower()) not in ("true", "false"):
            raise ValueError
        return word == "true"
    if hint in (int, float) and isinstance(value, bool):
        raise ValueError
    if hint is int and not isinstance(value, str) and int(value) != value:
        raise ValueError
    found = hint(value)
    if hint is float and not math.isfinite(found):
        raise ValueError
    return found


def _describe(hint: Any) -> str:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join("none" if a is NoneType else _describe(a) for a in args)
    if origin is Literal:
        return "one of " + ", ".join(map(str, args))
    if origin is tuple:
        count = "" if args[-1] is Ellipsis else f"{len(args)} "
        return f"{count}numbers separated by commas"
    return {int: "a whole number", float: "a number", bool: "true or false"}.get(hint, "text")


def to_toml(table: Mapping[str, Any]) -> str:
    """A table, or tables in one, as TOML text; what is None is left out."""
    import tomli_w  # only where something is written

    return tomli_w.dumps(_without_none(table))


def _without_none(table: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_none(value) if isinstance(value, Mapping) else value
        for key, value in table.items()
        if value is not None
    }
