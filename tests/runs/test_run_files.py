"""The files of a run folder: what is written comes back, and what is damaged is named."""

from pathlib import Path

import numpy as np
import pytest
import torch

from muxgcl.errors import UserError
from muxgcl.runs.folder import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    folder = Run(tmp_path / "run")
    folder.write_config({"run": {"method": "grace"}})
    return folder


def test_a_checkpoint_comes_back(run: Run) -> None:
    tensors = {"method/w": torch.randn(3, 2), "random/cpu": torch.get_rng_state()}
    run.save_checkpoint(tensors, epoch=7, method="grace")
    got, facts = run.checkpoint()
    assert facts == {"epoch": 7, "method": "grace"}
    assert all(torch.equal(got[name], tensors[name]) for name in tensors)
    assert sorted(p.name for p in run.path.iterdir()) == ["checkpoint.safetensors", "config.toml"]


@pytest.mark.parametrize("keep", [0, 5, 40, -1])
def test_a_damaged_checkpoint_is_one_clear_line(run: Run, keep: int) -> None:
    run.save_checkpoint({"method/w": torch.randn(30)}, epoch=1)
    whole = run.checkpoint_file.read_bytes()
    run.checkpoint_file.write_bytes(whole[:keep])
    with pytest.raises(UserError, match="damaged"):
        run.checkpoint()


def test_damaged_embeddings_and_scores_are_one_clear_line(run: Run) -> None:
    run.save_embeddings(np.arange(3), torch.randn(3, 2))
    run.embeddings_file.write_bytes(run.embeddings_file.read_bytes()[:-30])
    with pytest.raises(UserError, match="damaged"):
        run.embeddings()
    run.scores_file.write_text("{")
    with pytest.raises(UserError, match="damaged"):
        run.scores()


def test_pickled_embeddings_are_refused(run: Run) -> None:
    np.savez(run.embeddings_file, id=np.array([{}], dtype=object), embedding=np.zeros((1, 2)))
    with pytest.raises(UserError, match="never unpickled"):
        run.embeddings()


def test_metrics_past_the_checkpoint_and_cut_lines_are_dropped(run: Run) -> None:
    run.log([{"epoch": e, "loss": 1.0} for e in (1, 2, 3)])
    with run.metrics_file.open("a") as file:
        file.write('{"epoch": 4, "lo')
    run.keep_metrics(2)
    assert [line["epoch"] for line in run.metrics()] == [1, 2]


def test_what_was_observed_comes_back_without_a_cut_line(run: Run) -> None:
    run.log_observed(5, [80.0, 81.0], split_seed=0)
    run.log_observed(6, [82.0], split_seed=0)
    run.log_observed(7, [83.0], split_seed=1)
    with run.observed_file.open("a") as file:
        file.write('{"epoch": 8, "acc')
    assert run.observed(9, split_seed=0) == {5: (80.0, 81.0), 6: (82.0,)}
    run.log_observed(7, [84.0], split_seed=0)  # the cut line is gone
    assert run.observed(9, split_seed=0) == {5: (80.0, 81.0), 6: (82.0,), 7: (84.0,)}
    assert run.observed(5, split_seed=0) == {5: (80.0, 81.0)}


def test_scores_add_up(run: Run) -> None:
    run.save_scores({"a": 1})
    run.save_scores({"b": 2})
    assert run.scores() == {"a": 1, "b": 2}


def test_metrics_are_kept_up_to_an_epoch_and_must_all_be_there(run: Run) -> None:
    lines = [{"epoch": e, "loss": float(e)} for e in (1, 2, 3)]
    run.log(lines)
    assert run.keep_metrics(3) == run.metrics() == lines
    assert run.keep_metrics(2) == run.metrics() == lines[:2]
    with pytest.raises(UserError, match="no line for epoch 3, but the checkpoint is at epoch 4"):
        run.keep_metrics(4)
    assert run.metrics() == lines[:2]
    assert run.keep_metrics(0) == []
    run.log([{"epoch": 2, "loss": 1.0}])
    with pytest.raises(UserError, match="no line for epoch 1, but the checkpoint is at epoch 2"):
        run.keep_metrics(2)


@pytest.mark.parametrize("again", [2, 1])
def test_epochs_of_the_metrics_ascend(run: Run, again: int) -> None:
    run.log([{"epoch": e, "loss": 1.0} for e in (1, 2, again)])
    with pytest.raises(UserError, match=f"line 3: epoch must be more than 2, got {again}"):
        run.metrics()


def test_what_was_observed_past_the_checkpoint_is_dropped(run: Run) -> None:
    for epoch in (1, 2, 3):
        run.log_observed(epoch, [float(epoch)], split_seed=0)
    assert run.observed(2, split_seed=0) == {1: (1.0,), 2: (2.0,)}
    assert run.observed(9, split_seed=0) == {1: (1.0,), 2: (2.0,)}  # for good


def test_a_map_to_the_output_comes_back_or_is_no_more(run: Run) -> None:
    with pytest.raises(UserError, match="no map to its output_width yet"):
        run.output_map()
    run.save_output_map(None)
    columns = torch.randn(4, 2, requires_grad=True)
    run.save_output_map(columns.T)
    assert torch.equal(run.output_map(), columns.T)
    run.save_output_map(None)
    assert not run.output_file.exists()
    for wrong in (torch.ones(3), torch.tensor([[1.0, float("nan")]]), torch.ones(1, 1, 1)):
        run.save_output_map(wrong)
        with pytest.raises(UserError, match="is damaged: map must be a matrix of numbers"):
            run.output_map()


def test_embeddings_come_back_in_32_bits_and_must_be_numbers(run: Run) -> None:
    with pytest.raises(UserError, match="has no embeddings yet"):
        run.embeddings()
    table = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    run.save_embeddings(np.array(["a", "b", "c"]), table)
    ids, found = run.embeddings()
    assert ids.tolist() == ["a", "b", "c"]
    assert found.dtype == np.float32
    assert np.array_equal(found, table.detach().float().numpy())
    with pytest.raises(UserError, match="NaN or infinity"):
        run.save_embeddings(ids, torch.full((3, 2), float("nan")))
    assert np.array_equal(run.embeddings()[1], found)


def test_later_scores_replace_those_of_the_same_name(run: Run) -> None:
    run.save_scores({"a": 1, "b": 1})
    run.save_scores({"b": 2})
    assert run.scores() == {"a": 1, "b": 2}


def test_a_checkpoint_keeps_facts_and_tensors_of_any_layout(run: Run) -> None:
    tensors = {"a": torch.arange(6.0).reshape(2, 3).T, "b": torch.ones(2, requires_grad=True)}
    run.save_checkpoint(tensors, epoch=4, method="grace")
    found, facts = run.checkpoint()
    assert facts == {"epoch": 4, "method": "grace"}
    assert torch.equal(found["a"], tensors["a"])
    assert torch.equal(found["b"], torch.ones(2))


def test_a_checkpoint_larger_than_allowed_is_not_read(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.save_checkpoint({"w": torch.zeros(1000)}, epoch=1)
    run.checkpoint()
    monkeypatch.setenv("MUXGCL_MAX_BYTES", "1000")
    with pytest.raises(UserError, match="MUXGCL_MAX_BYTES"):
        run.checkpoint()


def test_one_tensor_under_two_names_is_kept_under_both(run: Run) -> None:
    table, other = torch.randn(3), torch.randn(2)
    run.save_checkpoint({"a": table, "b": table, "c": other}, epoch=1)
    found = run.checkpoint()[0]
    assert torch.equal(found["a"], table)
    assert torch.equal(found["b"], table)
    assert torch.equal(found["c"], other)
