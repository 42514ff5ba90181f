"""How a run folder is started, resumed or refused."""

import json
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from muxgcl.app.graph_facts import check_made, graph_facts, other_graph
from muxgcl.app.source import Source
from muxgcl.errors import UserError
from muxgcl.graph import graph_fingerprint
from muxgcl.io.load import Loaded
from muxgcl.runs.auto import brought, of_sample
from muxgcl.runs.checkpoint import checkpoint_of
from muxgcl.runs.fit import Ready
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan
from muxgcl.runs.scoring import labels_of


@dataclass(slots=True)
class Start:
    """Replaces an earlier run with a new one when first called; until then the earlier stays."""

    run: Run
    config: str
    done: bool = False

    def __call__(self) -> None:
        """Remove the earlier run and write the new one's settings."""
        if not self.done:
            self.run.start(self.config)
            self.done = True


def with_original_sample(run: Run, plan: Plan, *, exact: bool, given: Collection[str] = ()) -> Plan:
    """The plan with the sample that the run was begun with, unless another is asked for.

    The settings that came with such a sample are taken over, too, but for those in `given`.
    """
    if exact or plan.sampling or not run.exists:
        return plan
    config = run.config()
    before, kept = config["run"], config.get("method", {})
    if before.get("method") != plan.method:
        return plan
    plan = replace(plan, anchors=before.get("anchors"), keys=before.get("keys"))
    if not plan.sampling:
        return plan
    taken = [k for k in brought(plan.method, plan.preset) if k in kept and k not in given]
    changes = {key: tuple(v) if isinstance(v := kept[key], list) else v for key in taken}
    return replace(plan, settings=replace(plan.settings, **changes))


def with_original_epochs(run: Run, plan: Plan, given: Collection[str]) -> Plan:
    """The plan with the length that the run has, unless another is asked for."""
    if "epochs" in given or not run.exists:
        return plan
    epochs = Plan.from_tables(run.config()).train.epochs
    choices = tuple(choice for choice in plan.choices if choice.key != "epochs")
    return replace(plan, train=replace(plan.train, epochs=epochs), choices=choices)


def with_original_width(run: Run, plan: Plan, asked: int | None) -> Plan:
    """The plan without its default width, where the run was begun without one.

    Resuming thus keeps the embedding's columns.
    """
    if asked is not None or not run.exists:
        return plan
    before = run.config()["run"]
    width, members = before.get("output_width"), before.get("members", 1)
    if (width or 0) * plan.members == (plan.output_width or 0) * members:
        return plan
    return replace(plan, output_width=None)


def refuse_foreign(run: Run) -> None:
    """Refuse a file, or a folder with other content."""
    if run.path.is_file():
        raise UserError(f"{run.path} is a file; expected a folder")
    if (other := run.foreign_entry()) is not None:
        raise UserError(
            f"{run.path} is not empty and holds no run (there is {other}): "
            "name a new folder with --out"
        )


def check_free(run: Run, *, resume: bool, overwrite: bool) -> None:
    """Refuse a folder that holds other things, or a run that is neither resumed nor replaced."""
    refuse_foreign(run)
    if run.exists and not (resume or overwrite):
        raise UserError(
            f"{run.path} holds a run already: --resume goes on with it, --overwrite replaces it, "
            "--out names another folder"
        )


def begin(
    run: Run,
    ready: Ready,
    source: Source,
    loaded: Loaded,
    *,
    resume: bool,
    overwrite: bool,
    command: str | None,
    output_width: int | None = None,
) -> tuple[list[str], Start | None]:
    """Write the settings of a new run, or check those of one that is resumed.

    A resumed run has the same graph, method, seed, settings, sample sizes, device, backend and
    capture. Only `epochs` and `members` may grow, and another `output_width` may be asked for: 0
    for all columns. Its command is that of the first time, with what has changed since.

    Returns:
        notes on what changed; and, where an earlier run is to be replaced, the `Start` that does
        so: to be called when the new run has something to keep.
    """
    if run.exists and resume:
        return _go_on(run, ready, output_width), None
    check_free(run, resume=resume, overwrite=overwrite)
    graph, y = ready.graph, labels_of(loaded.tensors)
    facts = graph_facts(graph, loaded.notes, 0 if y is None else len(np.unique(y[y >= 0])))
    tables = ready.plan.tables()
    tables["run"] |= {"command": command, **_where(ready)}
    place = source.table()
    found = {**tables, "data": facts, **({} if place is None else {"source": place})}
    start = Start(run, run.config_text(found))
    if run.exists:
        return [], start
    start()
    return [f"no run in {run.path} to go on with: a new one begins"] if resume else [], None


def _where(ready: Ready) -> dict[str, str]:
    """The device and the backend that are used."""
    return {"device_used": ready.graph.device.type, "backend_used": ready.backend}


def _go_on(run: Run, ready: Ready, asked_width: int | None) -> list[str]:
    before, plan = run.config(), ready.plan
    _same(run, "method", before["run"].get("method"), plan.method)
    mark = graph_fingerprint(ready.graph)
    facts = before.get("data", {})
    if facts.get("fingerprint") != mark:
        check_made(run)
        raise UserError(
            f"{run.path} was begun with another graph: this one has "
            f"{other_graph(facts, ready.graph)}"
        )
    _same(run, "seed", before["run"].get("seed"), plan.seed)
    for what, name in {"anchors": "anchors", "negatives": "keys"}.items():
        _same(run, what, before["run"].get(name) or "all", getattr(plan, name) or "all")
    for name, now in _where(ready).items():
        _same(run, name.removesuffix("_used"), before["run"].get(name, now), now)
    _same(run, "capture", before["run"].get("capture"), plan.capture)
    asked, begun = plan.tables(), Plan.from_tables(before).tables()
    epochs = int(before.get("train", {}).get("epochs", 0))
    longer = plan.train.epochs > epochs
    if plan.train.epochs < epochs:
        raise UserError(
            f"{run.path} was begun with epochs = {epochs}; {plan.train.epochs} was asked for, but "
            "a run can only be trained longer"
        )
    for table in ("train", "method"):
        for key, value in asked[table].items():
            wanted = list(value) if isinstance(value, tuple) else value
            if not (key == "epochs" and longer):
                known = begun[table].get(key)  # the default, of a setting that came later
                _same(run, key, list(known) if isinstance(known, tuple) else known, wanted)
    members, width = (before["run"].get("members", 1), before["run"].get("output_width"))
    if plan.members < members:
        _same(run, "members", members, plan.members)
    if width is not None and plan.output_width is None and asked_width != 0:
        _same(run, "output_width", width, plan.output_width)
    for k, member in enumerate(plan.of_members()[:members]):
        one = Run(run.path, k)
        if one.checkpoint_file.is_file():  # damage is found before anything is written
            one.metrics_until(checkpoint_of(one, member)[1])
    notes, changes = [], dict[str, int]()
    if longer:
        notes.append(f"training goes on beyond epoch {epochs}, to {plan.train.epochs}")
        changes["--epochs"] = plan.train.epochs
    if plan.members > members:
        notes.append(f"members are added: {plan.members} instead of {members}")
        changes["--members"] = plan.members
    if plan.output_width != width:
        now = (
            "as wide as what is read out" if not plan.output_width else f"{plan.output_width} wide"
        )
        notes.append(f"the embedding becomes {now}")
        changes["--output-width"] = plan.output_width or 0
    if notes:
        before["train"]["epochs"] = plan.train.epochs
        before["run"] |= {key: asked["run"][key] for key in ("members", "output_width")}
        before["run"]["command"] = _with_options(before["run"].get("command"), changes)
        run.write_config(before)
    return notes


def _with_options(command: str | None, changes: Mapping[str, int]) -> str | None:
    """A command with other values of some options."""
    if command is None:
        return None
    try:
        words = iter(shlex.split(command))
    except ValueError:  # someone changed the file
        return command
    kept = []
    for word in words:
        if word in changes:
            next(words, None)
        elif word.partition("=")[0] not in changes:
            kept.append(word)
    return shlex.join([*kept, *(str(word) for change in changes.items() for word in change)])


def with_decided_sample(command: str | None, plan: Plan, given: Collection[str]) -> str | None:
    """A command with the sample that this machine's speed decided, so that it can be repeated.

    The settings that came with the sample are named as well, but for those in `given`.
    """
    if not plan.sampling:
        return _with_words(command, ["--exact"])
    words = []
    for option, size in {"--anchors": plan.anchors, "--negatives": plan.keys}.items():
        words += [] if size is None else [option, str(size)]
    for key in of_sample(plan.method, plan.preset):
        if key not in given:
            value = getattr(plan.settings, key)
            words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return _with_words(command, words)


def _with_words(command: str | None, words: list[str]) -> str | None:
    return None if command is None else f"{command} {shlex.join(words)}"


def observed_so_far(
    run: Run, plan: Plan, split_seed: int, last: int
) -> dict[int, tuple[float, ...]]:
    """What protocol `paper` saw before a run was resumed: all of the last epochs, or an error."""
    done = run.checkpoint()[1]["epoch"] if run.checkpoint_file.is_file() else 0
    seen = run.observed(done, split_seed)
    first = max(0, plan.train.epochs - last) + 1
    if not set(range(first, done + 1)) <= set(seen):
        raise UserError(
            f"protocol paper looks at every epoch from {first} on, but {run.path} is at epoch "
            f"{done} without it (on these splits): start again with --overwrite"
        )
    return seen


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool | None) else str(value)


def _same(run: Run, what: str, before: Any, now: Any) -> None:
    if before != now:
        raise UserError(
            f"{run.path} was begun with {what} = {_toml(before)}; {_toml(now)} was asked for"
        )
