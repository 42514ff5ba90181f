"""All that determines a run apart from the graph, and the method that follows from it."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

from muxgcl.errors import UserError, unknown_name
from muxgcl.graph import Graph
from muxgcl.io.safety import check_size
from muxgcl.kernels import Backend, Chooser, Sampling
from muxgcl.methods import METHODS, Context, Method
from muxgcl.runs import auto
from muxgcl.runs.auto import Choice
from muxgcl.runs.environment import commit, versions
from muxgcl.runs.loop import Capture
from muxgcl.runs.settings import TrainConfig, convert, hints, preset, split_settings

SEEDS = 1 << 63
MOST = 10_000_000  # of anything that a setting counts
MOST_LAYERS = 1000
MOST_MEMBERS = 1000
WIDTHS = ("width", "hidden", "projection", "projection_out", "predictor")  # of tables
# settings that a method once had, though it never read them, and their defaults: old run folders
# state them
FORMER: dict[str, dict[str, Any]] = {
    "sfa": {"fanout": 0},
}
# what of a plan is in the table [run] of a run folder's config.toml
SCALARS = (
    *("method", "preset", "dataset", "seed", "device", "backend", "capture"),
    *("members", "output_width", "anchors", "keys"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that determines a run, apart from the graph."""

    method: str
    preset: str
    dataset: str
    train: TrainConfig
    settings: Any  # the method's Config
    seed: int = 0
    device: str = "auto"
    backend: Backend = "auto"
    capture: Capture = "auto"
    members: int = 1  # seeds side by side, counted up from `seed`
    output_width: int | None = None  # columns of the embedding; None: all that is read out
    choices: tuple[Choice, ...] = ()  # what preset `auto` picked and nothing overrode, and why
    anchors: int | None = None  # nodes that a step contrasts, and with how many; all by default
    keys: int | None = None

    def __post_init__(self) -> None:
        for name in ("seed", "members", "output_width"):
            value = getattr(self, name)
            if type(value) is not int and not (name == "output_width" and value is None):
                raise UserError(f"{name} must be a whole number, got {value!r}")
        if not 0 <= self.seed < SEEDS:
            raise UserError(f"a seed must be between 0 and {SEEDS - 1}, got {self.seed}")
        if self.members < 1:
            raise UserError(f"members must be at least 1, got {self.members}")
        if self.members > min(MOST_MEMBERS, SEEDS - self.seed):
            raise UserError(f"members must be at most {MOST_MEMBERS:,}, got {self.members:,}")
        if self.output_width is not None and self.output_width < 0:
            raise UserError(
                f"output_width must be at least 1, or 0 for all columns, got {self.output_width}"
            )
        if self.sampling and not find_method(self.method).samples:
            raise UserError(
                f"{self.method} has no sampled contrast (anchors, keys); these have one: "
                f"{methods_with('samples')}"
            )
        if self.sampling:
            find_method(self.method).check_sample(self.settings)

    @property
    def sampling(self) -> Sampling:
        """Whom a step contrasts with whom."""
        return Sampling(self.anchors, self.keys)

    def rounds(self, graph: Graph) -> bool:
        """Whether a CPU may round the factors of products: only where a step samples nodes."""
        return self.sampling.leaves_out(graph.num_nodes) and not self.backend.endswith("/fp32")

    @classmethod
    def make(
        cls,
        method: str = "mux-hop",
        preset_name: str = "best",
        dataset: str = "graph",
        overrides: Mapping[str, Any] | None = None,
        *,
        graph: Graph | None = None,
        seed: int = 0,
        device: str = "auto",
        backend: Backend = "auto",
        capture: Capture = "auto",
        members: int = 1,
        output_width: int | None = None,
        anchors: int | None = None,
        keys: int | None = None,
    ) -> Self:
        """A preset's settings with some overridden; preset `auto` looks at the graph.

        A method that `auto` has nothing for keeps its own settings.
        """
        kind = find_method(method)
        picked: list[Choice] = []
        if preset_name != "auto" or graph is None:
            start = preset(method, preset_name, dataset)
        elif method in auto.GENERAL:
            start, picked = auto.settings_of(method, graph)
        else:
            start = preset(method, "best", "default")
        given = overrides or {}
        values = {**start, **given}
        followed = _followed(start, given)
        values |= followed
        # what was switched off keeps its value here, and is dropped below, where nothing has it
        picked = [replace(c, value=followed.get(c.key) or c.value) for c in picked]
        if picked and method in auto.IN_LAYERS and "width" in given and "projection" not in given:
            values["projection"] = values["width"]  # as the reason for it says
        check_names(method, values)
        train, settings = split_settings(values, TrainConfig, kind.Config)
        used = asdict(train) | asdict(settings)
        return cls(
            method=method,
            preset=preset_name,
            dataset=dataset,
            train=train,
            settings=settings,
            seed=seed,
            device=device,
            backend=backend,
            capture=capture,
            members=members,
            output_width=output_width,
            anchors=anchors,
            keys=keys,
            choices=tuple(
                choice for choice in picked if used.get(choice.key, choice.value) == choice.value
            ),
        )

    @classmethod
    def from_tables(
        cls, tables: Mapping[str, Mapping[str, Any]], *, device: str | None = None
    ) -> Self:
        """The plan that a run folder's config.toml holds, maybe on another device."""
        run = tables.get("run", {})
        for name in ("method", "preset", "dataset"):
            if name not in run:
                raise UserError(f"config.toml: run.{name} is missing")
        known = {name: run[name] for name in SCALARS if run.get(name) is not None}
        if device is not None:
            known["device"] = device
        try:
            kind = find_method(run["method"])
            (train,) = split_settings(tables.get("train", {}), TrainConfig)
            stated = _without_former(run["method"], tables.get("method", {}))
            (settings,) = split_settings(stated, kind.Config)
            return cls(train=train, settings=settings, **known)
        except UserError as error:
            raise UserError(f"config.toml: {error}") from None

    def of_members(self) -> list["Plan"]:
        """One plan per member; seeds count up."""
        return [
            replace(self, seed=self.seed + k, members=1, output_width=None)
            for k in range(self.members)
        ]

    def tables(self) -> dict[str, dict[str, Any]]:
        """For config.toml."""
        run = {name: getattr(self, name) for name in SCALARS}
        run["members"] = self.members if self.members > 1 else None  # what is None is not written
        facts = {"created": datetime.now(UTC).isoformat(timespec="seconds"), "commit": commit()}
        return {
            "run": run | facts,
            "train": asdict(self.train),
            "method": asdict(self.settings),
            "versions": versions(),
        }


def check_names(method: str, values: Mapping[str, Any]) -> None:
    """Raise an error that names the methods with this setting."""
    own = {*hints(TrainConfig), *hints(find_method(method).Config)}
    for name in [name for name in values if name not in own]:
        if others := [one for one, kind in METHODS.items() if name in hints(kind.Config)]:
            many = f" and {len(others) - 3} more" if len(others) > 3 else ""
            raise UserError(
                f"{name} is a setting of {', '.join(others[:3])}{many}, not of {method}"
            )


def find_method(name: str) -> type[Method]:
    """The method of that name; the error about an unknown name suggests the nearest ones."""
    if name not in METHODS:
        raise UserError(unknown_name("method", name, METHODS))
    return METHODS[name]


def methods_with(ability: Literal["samples", "edge_kinds", "divides"]) -> str:
    """The names of the methods that can do something, separated by commas."""
    return ", ".join(name for name, kind in METHODS.items() if getattr(kind, ability))


def build(
    plan: Plan,
    graph: Graph,
    cache: Path | None = None,
    on_prepare: Callable[[int, int], None] | None = None,
    sampling: Chooser | None = None,
) -> Method:
    """The method on the graph's device, its weights drawn from the current random state."""
    _check_kinds(plan, graph)
    context = Context(
        backend=plan.backend,
        seed=plan.seed,
        cache=cache,
        epochs=plan.train.epochs,
        on_prepare=on_prepare,
        sampling=sampling or plan.sampling,
    )
    # weights are drawn on the CPU: the same seed begins with the same weights on every device
    return find_method(plan.method)(graph, plan.settings, context).to(graph.device)


def check_plan(plan: Plan, graph: Graph) -> None:
    """Refuse what is wrong with a plan, as far as that shows without building its method."""
    _check_kinds(plan, graph)
    check_sizes(plan, graph.num_nodes, graph.num_features)
    if (temperature := getattr(plan.settings, "temperature", 1.0)) <= 0:
        raise UserError(f"temperature must be positive, got {temperature}")


def _check_kinds(plan: Plan, graph: Graph) -> None:
    if graph.edge_kinds is not None and not find_method(plan.method).edge_kinds:
        raise UserError(
            f"{plan.method} supports neither directed edges nor types of edges (--directed, "
            f"--edge-type); {methods_with('edge_kinds')} does"
        )


def _without_former(method: str, stated: Mapping[str, Any]) -> dict[str, Any]:
    """A method's settings without those that it no longer has, where these hold their default."""
    former = FORMER.get(method, {})
    return {k: v for k, v in stated.items() if k not in former or v != former[k]}


def check_sizes(plan: Plan, nodes: int, features: int) -> None:
    """Refuse widths whose tables have no room, and counts that would never end."""
    for name, value in asdict(plan.settings).items():
        if not isinstance(value, int) or isinstance(value, bool):
            continue
        most = MOST_LAYERS if name in ("layers", "steps", "embed_steps") else MOST
        if value > most:
            shown = f"{value:,}" if value < 10**30 else "a longer number"
            raise UserError(f"{name} must be a whole number of at most {most:,}, got {shown}")
        if name.endswith(WIDTHS):
            if value < 0:
                raise UserError(f"{name} must not be negative, got {value}")
            rows = max(nodes, features, value)
            check_size(f"a table of {name} {value:,}", 4 * rows * value)


def _followed(start: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a preset that follow where a user changed the readout or the number of scales."""
    values, changed = {**start, **given}, dict[str, Any]()
    other_scales = bool({"hops", "layers"} & given.keys())
    if start.get("scale_weights") and other_scales:
        changed["scale_weights"] = _shared_out(values, start["scale_weights"])
    if start.get("readout_weights") and (other_scales or "readout" in given):
        changed["readout_weights"] = _weights_for(values, start["readout_weights"])
    if given.get("readout") == "last":
        beside = ("readout_features", "readout_raw")
        changed |= {name: 0.0 for name in beside if start.get(name)}
    return {name: value for name, value in changed.items() if name not in given}


def _weights_for(values: Mapping[str, Any], given: Any) -> tuple[float, ...]:
    """A preset's weights in the readout for another readout or another number of scales.

    The last scales keep their weights; the first weight stands for all earlier ones.
    """
    weights: tuple[float, ...] = convert("readout_weights", given, tuple[float, ...])
    if values.get("readout") == "last":
        return ()
    if (scales := _scales(values)) is None:
        return weights
    before = max(0, min(scales, MOST_LAYERS) - len(weights))
    return (*weights[:1] * before, *weights[max(0, len(weights) - scales) :])


def _shared_out(values: Mapping[str, Any], given: Any) -> tuple[float, ...]:
    """A preset's weights of the contrasts for another number of scales.

    Scale 0 keeps its weight; all others share the rest alike.
    """
    weights: tuple[float, ...] = convert("scale_weights", given, tuple[float, ...])
    scales = _scales(values)
    if scales is None or scales == len(weights) or not 2 <= scales <= MOST_LAYERS + 1:
        return weights
    return (weights[0], *[(1 - weights[0]) / (scales - 1)] * (scales - 1))


def _scales(values: Mapping[str, Any]) -> int | None:
    """How many scales there are; None where that is no number, which is said where it is read."""
    try:
        return 1 + int(next(values[key] for key in ("hops", "layers") if key in values))
    except (StopIteration, TypeError, ValueError, OverflowError):
        return None
