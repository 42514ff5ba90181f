"""`muxgcl bench methods`: each pair once, at its preset, timed after what does not count."""

from pathlib import Path
from typing import Any

import pytest
import torch

from muxgcl.bench.contrast import bench_kernels
from muxgcl.bench.methods import bench_methods
from muxgcl.errors import UserError
from muxgcl.io.files import append_lines
from muxgcl.methods.gae import Gae
from muxgcl.methods.progcl import ProGcl
from muxgcl.reproduce.table5 import method_rows
from muxgcl.runs.plan import Plan

TINY = "random-40"


def measure(*methods: str, **how: Any) -> list[dict[str, Any]]:
    return bench_methods(methods, [TINY], "cpu", **({"epochs": 4, "warm_up": 2} | how))


def count_losses(monkeypatch: pytest.MonkeyPatch, kind: type[Any]) -> list[int]:
    calls, loss = [0], kind.loss

    def counted(self: Any, graph: Any) -> Any:
        calls[0] += 1
        return loss(self, graph)

    monkeypatch.setattr(kind, "loss", counted)
    return calls


def test_timed_epochs_come_after_the_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_losses(monkeypatch, Gae)
    (row,) = measure("gae")
    assert calls == [6]
    assert row["timed"] == 4
    low, high = row["quartiles_ms"]
    assert 0 < low <= row["epoch_ms"] <= high


def test_a_step_that_changes_is_timed_after_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_losses(monkeypatch, ProGcl)
    (row,) = measure("progcl", epochs=8)
    switch = round(row["settings"]["warm_up"] * 10)
    assert switch > 2
    assert calls == [switch + 8]
    assert row["timed"] == 8


def test_timing_kernels_leaves_the_callers_randomness_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("clock", "contrast"):
        monkeypatch.setattr(f"muxgcl.bench.{module}.milliseconds", lambda *given: 1.0)
    before = torch.get_rng_state()
    bench_kernels("cpu", nodes=20, width=4, rank=4)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_row_states_the_preset_as_it_is() -> None:
    (row,) = measure("mux-hop")
    plan = Plan.make("mux-hop", "best", TINY)
    assert row["preset"] == "best"  # it has no other
    assert row["train"]["epochs"] == plan.train.epochs
    assert row["settings"]["affinity_epochs"] == plan.settings.affinity_epochs


def test_what_is_there_is_not_measured_again() -> None:
    first = measure("gae", "dgi")
    assert [row["method"] for row in first] == ["gae", "dgi"]
    assert measure("gae", "dgi", done=first) == []
    stale = [first[0] | {"settings": {}}, first[1] | {"device": "another"}]
    assert len(measure("gae", "dgi", done=stale)) == 2


def test_nothing_is_begun_when_time_is_up() -> None:
    assert measure("gae", time_limit=-1.0) == []


def test_a_method_that_fails_costs_the_others_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any, graph: Any) -> Any:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(Gae, "loss", fail)
    failed = []
    rows = measure("gae", "dgi", on_failure=lambda plan, error: failed.append(plan.method))
    assert (failed, [row["method"] for row in rows]) == (["gae"], ["dgi"])
    with pytest.raises(RuntimeError, match="out of memory"):
        measure("gae")


def test_methods_without_training_have_no_time_and_no_number_of_epochs_is_an_error() -> None:
    with pytest.raises(UserError, match="sgc is not trained: nothing to time"):
        measure("gae", "sgc")
    with pytest.raises(UserError, match="epochs must be at least 1"):
        measure("gae", epochs=0)


def test_the_table_takes_what_the_command_wrote(tmp_path: Path) -> None:
    rows = measure("gae")
    append_lines(tmp_path / "times.jsonl", rows)
    found = method_rows(tmp_path / "times.jsonl")
    assert list(found) == [("gae", TINY, rows[0]["device"])]
