"""The results of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from muxgcl.evaluate import Verdict, summarise, verdict
from muxgcl.runs.plan import Plan
from muxgcl.runs.scoring import summaries
from muxgcl.shapes import Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Result:
    """One finished run: its folder, its embeddings and its scores.

    Attributes:
        path: the run folder.
        plan: method, settings, seed and devices, as they were resolved.
        ids: of the nodes, in the order of the rows.
        embedding: [n, d]; of several workers the first alone has it.
        scores: by protocol, `controls` among them; empty without labels.
        verdict: whether training paid off; None without labels or controls.
        loss: of the last epoch; None for a method without training.
        epoch_ms: median time of an epoch, in milliseconds.
        peak_mib: peak memory of the training, in MiB.
        seconds: of training, all members together.
        device: the name of the device that trained it.
        backend: what computed the contrast.
    """

    path: Path
    plan: Plan
    ids: Array
    embedding: Array
    scores: dict[str, Any]
    verdict: Verdict | None
    loss: float | None
    epoch_ms: float
    peak_mib: float
    seconds: float
    device: str
    backend: str

    def __repr__(self) -> str:
        """One line, for a notebook."""
        nodes, width = self.embedding.shape
        return f"Result({str(self.path)!r}: {self.plan.method}, {nodes:,} nodes, width {width:,})"

    def to_dict(self) -> dict[str, Any]:
        """For JSON: all but the embeddings and single splits."""
        return {
            "dataset": self.plan.dataset,
            "method": self.plan.method,
            "preset": self.plan.preset,
            "epochs": self.plan.train.epochs,
            "seed": self.plan.seed,
            "members": self.plan.members,
            "width": self.embedding.shape[1],
            "device": self.device,
            "backend": self.backend,
            "loss": self.loss,
            "epoch_ms": round(self.epoch_ms, 4),
            "peak_mib": round(self.peak_mib, 1),
            "run": str(self.path),
            "scores": summaries(self.scores),
            "verdict": None if self.verdict is None else self.verdict.to_dict(),
        }


@dataclass(frozen=True, eq=False)
class SeedsResult:
    """Several seeds of one run."""

    runs: tuple[Result, ...]

    @cached_property
    def scores(self) -> dict[str, Any]:
        """Mean and spread of the seeds' means, for each measure that all of them have.

        `controls` holds the same for each control that all of them have.
        """
        found = _over_seeds([one.scores for one in self.runs])
        controls = [one.scores.get("controls", {}) for one in self.runs]
        shared = [name for name in controls[0] if all(name in one for one in controls)]
        if shared:
            found["controls"] = {n: _over_seeds([one[n] for one in controls]) for n in shared}
        return found

    @cached_property
    def verdict(self) -> Verdict | None:
        """Whether training paid off, over all seeds and splits."""
        plan = self.runs[0].plan
        return verdict(plan.method, [one.scores for one in self.runs], asdict(plan.settings))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "runs": [one.to_dict() for one in self.runs],
            "scores": self.scores,
            "verdict": None if self.verdict is None else self.verdict.to_dict(),
        }


def _over_seeds(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """By protocol and measure, the mean and spread of the means that each of the parts has."""
    found: dict[str, Any] = {}
    for protocol, measures in parts[0].items():
        if protocol == "controls" or any(protocol not in part for part in parts):
            continue
        for measure, value in measures.items():
            if isinstance(value, dict) and "mean" in value:
                means = [part[protocol][measure]["mean"] for part in parts]
                found.setdefault(protocol, {})[measure] = summarise(means).to_dict()
    return found
