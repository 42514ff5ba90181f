"""One worker of a shared search, as a process: `python workers.py STORAGE LOG TRIALS [HANG]`.

It writes a line to LOG when it begins a trial and one when it has ended it. With HANG, it stays in
its first trial until it is killed.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from muxgcl.graph import Graph
from muxgcl.io import planted
from muxgcl.io.load import load
from muxgcl.runs.plan import Plan
from muxgcl.tune import shared, tune

shared.BEAT, shared.GRACE, shared.LOOK = 0.1, 3.0, 0.1


class Logged:
    """A measure without training: highest at temperature 0.7."""

    figures = ("height",)
    words = "height"
    mark = "logged"

    def __init__(self, log: Path, hang: bool) -> None:
        self.log, self.hang = log, hang

    def write(self, what: str, plan: Plan) -> None:
        line = {"what": what, "who": os.getpid(), "point": str((plan.settings, plan.train))}
        with self.log.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def __call__(self, plan: Plan, **_: Any) -> dict[str, float]:
        self.write("begin", plan)
        time.sleep(600 if self.hang else 0.1)
        self.write("end", plan)
        return {"height": -abs(plan.settings.temperature - 0.7)}


if __name__ == "__main__":
    storage, log, trials = sys.argv[1:4]
    graph = Graph.from_data(load(planted(nodes=60, seed=3)).data)
    found = tune(
        graph,
        Logged(Path(log), len(sys.argv) > 4),
        "search",
        storage=storage,
        trials=int(trials),
        device="cpu",
        fixed={"width": 8, "hidden": 8, "affinity": "none"},
    )
    print(json.dumps([len(found.tried), found.best.value, found.auto.number]))
