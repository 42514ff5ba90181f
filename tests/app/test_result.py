"""Results of several seeds as one."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from muxgcl.app.result import Result, SeedsResult


def seed(own: float, **controls: float) -> Result:
    def part(mean: float) -> dict[str, Any]:
        return {"holdout": {"accuracy": {"mean": mean, "std": 1.0, "n": 9}, "per_split": {}}}

    named = {name: part(mean) for name, mean in controls.items()}
    return cast(Result, SimpleNamespace(scores={**part(own), "controls": named}))


def test_scores_over_seeds_have_the_controls_that_all_seeds_have() -> None:
    found = SeedsResult((seed(80.0, raw=70.0, late=1.0), seed(84.0, raw=70.0))).scores
    assert found["holdout"]["accuracy"]["mean"] == 82.0
    assert found["holdout"]["accuracy"]["n"] == 2
    assert list(found["controls"]) == ["raw"]
    assert found["controls"]["raw"]["holdout"]["accuracy"] == {"mean": 70.0, "std": 0.0, "n": 2}


def test_scores_over_seeds_without_controls_have_none() -> None:
    assert list(SeedsResult((seed(80.0), seed(84.0))).scores) == ["holdout"]


def test_a_result_is_one_line_in_a_notebook() -> None:
    plan: Any = SimpleNamespace(method="mux-hop")
    one = Result(
        path=Path("runs/mine"), plan=plan, ids=np.arange(1200), embedding=np.zeros((1200, 64)),
        scores={}, verdict=None, loss=None, epoch_ms=0.0, peak_mib=0.0, seconds=0.0, device="cpu",
        backend="chunked",
    )  # fmt: skip
    assert repr(one) == "Result('runs/mine': mux-hop, 1,200 nodes, width 64)"
