"""What tests of a run's stages share: a small plan, a folder that was begun, an ear."""

from dataclasses import replace
from typing import Any

from muxgcl import Observer, RunOptions
from muxgcl.app.source import Source
from muxgcl.app.start_or_resume import begin
from muxgcl.graph import Graph
from muxgcl.io.load import Loaded
from muxgcl.runs.fit import Fitted, Ready, make_ready
from muxgcl.runs.folder import Run
from muxgcl.runs.plan import Plan

SMALL = {"width": 8, "projection": 8, "projection_out": 8, "epochs": 5}


def plan_of(**changes: Any) -> Plan:
    settings = {**SMALL, **changes.pop("settings", {})}
    return Plan.make("grace", "quick", "toy", settings, device="cpu", **changes)


def ready_of(loaded: Loaded, **changes: Any) -> Ready:
    return make_ready(plan_of(**changes), Graph.from_data(loaded.tensors))


def begun(
    run: Run, ready: Ready, loaded: Loaded, *, resume: bool = False, overwrite: bool = False
) -> list[str]:
    source = Source("toy.csv")
    how = {"resume": resume, "overwrite": overwrite, "command": "muxgcl run toy.csv"}
    notes, start = begin(run, ready, source, loaded, **how)
    if start is not None:
        start()
    return notes


class Heard(Observer):
    def __init__(self) -> None:
        self.phases: list[str] = []
        self.steps: list[tuple[int, int]] = []
        self.notes: list[str] = []

    def phase(self, name: str) -> None:
        self.phases.append(name)

    def step(self, done: int, total: int) -> None:
        self.steps.append((done, total))

    def note(self, text: str) -> None:
        self.notes.append(text)


def fitted_of(ready: Ready) -> Fitted:
    return Fitted(ready.method, ready.graph, 1.5, 2.5, 3.5, 4.5, "a CPU", "chunked")


OPTIONS = RunOptions(
    method="grace",
    preset="quick",
    settings={k: v for k, v in SMALL.items() if k != "epochs"},
    epochs=2,
    splits=2,
    device="cpu",
    score=False,
)
SCORED = replace(OPTIONS, score=True, report=False)
