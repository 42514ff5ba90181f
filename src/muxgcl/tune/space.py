"""What `tune` searches, and how a point of that space becomes settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_origin

from muxgcl.errors import UserError
from muxgcl.methods import Method
from muxgcl.runs import auto
from muxgcl.runs.settings import TrainConfig, hints


@dataclass(frozen=True, slots=True)
class Range:
    """Any number from `low` to `high`; with `log`, every factor is as likely as the next."""

    low: float
    high: float
    log: bool = False

    def short(self, value: float) -> float:
        """A value as a person would write it: two decimals or, with `log`, three digits."""
        return float(f"{value:.3g}") if self.log else round(value, 2)


Values = Range | tuple[Any, ...]  # numbers, or a few values to pick from
Space = dict[str, Values]
Point = dict[str, Any]  # one value for each entry of a space

# Settings of MUX-GCL, over hops or not, and of training. Another method takes those that its Config
# has. A setting of two numbers, one a view, takes two draws. Where `auto` says so, a width is also
# the projector's.
SPACE: Space = {
    "width": (128, 256, 512),
    "temperature": Range(0.1, 2.0, log=True),
    "scale_weights": (
        (0.2, 0.2, 0.6),  # scale 0 first
        (0.2, 0.6, 0.2),
        (0.4, 0.2, 0.4),
        (0.8, 0.1, 0.1),
        (0.0, 0.0, 1.0),
    ),
    "drop_edges": Range(0.0, 0.6),
    "mask_features": Range(0.0, 0.6),
    "lr": Range(1e-4, 5e-3, log=True),
    "epochs": (100, 200, 400, 800),
    "affinity": ("deepwalk", "vgae", "none"),
    "activation": ("relu", "prelu", "rrelu"),
}
# what `mux-hop` has of its own, or searches elsewhere
HOP_SPACE: Space = {
    "temperature": Range(0.1, 0.6, log=True),
    "scale_weights": (
        (0.5, 0.25, 0.25),
        (0.6, 0.4, 0.0),
        (0.4, 0.2, 0.4),
        (0.2, 0.2, 0.6),
        (0.8, 0.1, 0.1),
    ),
    "drop_edges": Range(0.0, 0.8),
    "drop_features": Range(0.0, 0.7),
    "dropout": Range(0.0, 0.7),
    "lr": Range(2e-4, 3e-3, log=True),
    "epochs": (100, 200, 400, 800),
    "anchors": ("last", "all"),
    "convolutions": (0, 1),
    "row_normalize": (True, False),
    "affinity": ("deepwalk", "none"),
    "readout_weights": ((1.0, 1.0, 1.0), (0.5, 0.5, 1.0), (0.0, 0.0, 1.0)),
    "readout_features": (0.0, 0.5, 1.0),
    "readout_raw": (0.0, 0.5),
}
SPACES = {"mux-hop": HOP_SPACE}
OF_SCALES = ("scale_weights", "readout_weights")  # one number each


def whole_space(kind: type[Method]) -> Space:
    """What can be searched, whether or not the method has it all."""
    return SPACES.get(kind.name, SPACE)


def space_of(kind: type[Method], start: Mapping[str, Any], fixed: Mapping[str, Any]) -> Space:
    """The part of its space that a method has and the user has not fixed.

    It is widened where needed, so that it holds the settings of `start`.
    """
    space = whole_space(kind)
    known = {**(hints(TrainConfig) if kind.trainable else {}), **hints(kind.Config)}
    found: Space = {}
    for key, values in space.items():
        if key not in known or key in fixed:
            continue
        if isinstance(values, Range) and get_origin(known[key]) is tuple:
            for view, value in enumerate(start[key]):
                found[f"{key}.{view}"] = _with(values, value)
        elif key in OF_SCALES and isinstance(values, tuple):
            if count := len(start[key]):  # none are read out but the last
                found[key] = _with(tuple(one for one in values if len(one) == count), start[key])
        else:
            found[key] = _with(values, start[key])
    if not found:
        raise UserError(f"{kind.name} has no setting left to search; there are {', '.join(space)}")
    return found


def _with(values: Values, value: Any) -> Values:
    if isinstance(values, Range):
        return Range(min(values.low, value), max(values.high, value), values.log)
    return values if value in values else (*values, value)


def point_of(space: Space, settings: Mapping[str, Any]) -> Point:
    """Where in the space some settings lie."""
    point = {}
    for name in space:
        key, dot, view = name.partition(".")
        point[name] = settings[key][int(view)] if dot else settings[key]
    return point


def settings_of(
    kind: type[Method], point: Mapping[str, Any], fixed: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings at a point, with what the user has fixed."""
    settings: dict[str, Any] = {}
    for name, value in point.items():
        key, dot, _ = name.partition(".")
        settings[key] = (*settings.get(key, ()), value) if dot else value
    settings |= fixed
    if "width" in settings and kind.name in auto.IN_LAYERS and "projection" not in fixed:
        settings["projection"] = settings["width"]
    return settings
