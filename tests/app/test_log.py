"""MLflow and W&B are sent what metrics.jsonl says; a resumed run goes on where it was."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import muxgcl
from muxgcl import RunOptions, UserError
from muxgcl.app.log import logged
from muxgcl.io import planted
from muxgcl.runs.fit import Stopped
from muxgcl.runs.folder import Run
from muxgcl.runs.loop import Epoch


def train(out: Path, log: str, epochs: int = 3, **rest: Any) -> Run:
    options = RunOptions(
        method="grace",
        preset="quick",
        settings={"width": 8, "projection": 8},
        epochs=epochs,
        device="cpu",
        score=False,
        log=log,
        out=out,
        **rest,
    )
    return Run(muxgcl.run(planted(nodes=60), options).path)


def lines_of(run: Run) -> dict[int, float]:
    return {line["epoch"]: line["loss"] for line in run.metrics()}


def one_epoch(run: Run, log: str, error: BaseException | None = None) -> None:
    """Log an epoch; then training ends with the error."""
    with logged(run, log, lambda _: None) as on_block:
        on_block([Epoch(9, {"a": 1.0}, 0.1)])
        if error is not None:
            raise error


class Client:
    """As much of MlflowClient as is asked for; runs are kept by the module."""

    runs: dict[str, SimpleNamespace]  # by id

    def get_experiment_by_name(self, name: str) -> None:
        return None

    def create_experiment(self, name: str) -> str:
        assert name == "muxgcl"
        return "7"

    def search_runs(self, places: list[str], filter_string: str) -> list[SimpleNamespace]:
        assert places == ["7"]
        wanted = filter_string.split("'")[1]
        return [run for run in self.runs.values() if run.tags["muxgcl.run"] == wanted]

    def create_run(self, place: str, tags: dict[str, str], run_name: str) -> SimpleNamespace:
        run = SimpleNamespace(
            info=SimpleNamespace(run_id=f"run {len(self.runs)}"), tags=tags, name=run_name,
            params={}, metrics={}, status="RUNNING",
        )  # fmt: skip
        self.runs[run.info.run_id] = run
        return run

    def update_run(self, run_id: str, status: str) -> None:
        self.runs[run_id].status = status

    def log_batch(self, run_id: str, metrics: Any = (), params: Any = ()) -> None:
        run = self.runs[run_id]
        run.params |= dict(params)
        for name, value, _, step in metrics:
            run.metrics.setdefault(name, {})[step] = value

    def set_terminated(self, run_id: str, status: str) -> None:
        self.runs[run_id].status = status


@pytest.fixture
def mlflow(monkeypatch: pytest.MonkeyPatch) -> dict[str, SimpleNamespace]:
    Client.runs = {}
    entities = SimpleNamespace(Param=lambda *p: p, Metric=lambda *m: m)
    fake = SimpleNamespace(MlflowClient=Client, entities=entities)
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    return Client.runs


def test_mlflow_gets_settings_and_losses_and_a_resumed_run_goes_on(
    tmp_path: Path, mlflow: dict[str, SimpleNamespace]
) -> None:
    run = train(tmp_path / "run", "mlflow")
    (sent,) = mlflow.values()
    assert sent.metrics["loss"] == pytest.approx(lines_of(run))
    assert {"ms per epoch", *(f"terms/{t}" for t in run.metrics()[0]["terms"])} < {*sent.metrics}
    assert (sent.name, sent.status) == ("run", "FINISHED")
    assert (sent.params["method"], sent.params["width"], sent.params["epochs"]) == (
        "grace", "8", "3",
    )  # fmt: skip
    run = train(tmp_path / "run", "mlflow", epochs=5, resume=True)
    assert len(mlflow) == 1
    assert sent.metrics["loss"] == pytest.approx(lines_of(run))
    train(tmp_path / "other", "mlflow")
    assert len(mlflow) == 2


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Stopped("stopped after epoch 1 of 3"), "KILLED"),
        (KeyboardInterrupt(), "KILLED"),
        (UserError("the loss is NaN"), "FAILED"),
    ],
)
def test_mlflow_knows_how_training_ended_and_its_own_trouble_hides_no_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mlflow: dict[str, SimpleNamespace],
    error: BaseException,
    status: str,
) -> None:
    run = train(tmp_path / "run", "mlflow")
    (sent,) = mlflow.values()

    with pytest.raises(type(error)) as caught:
        one_epoch(run, "mlflow", error)
    assert caught.value is error
    assert sent.status == status

    def gone(self: Client, run_id: str, status: str) -> None:
        raise RuntimeError("no answer")

    monkeypatch.setattr(Client, "set_terminated", gone)
    with pytest.raises(type(error)) as caught:
        one_epoch(run, "mlflow", error)
    assert caught.value is error
    with pytest.raises(UserError, match="--log mlflow: no answer"):
        one_epoch(run, "mlflow")


def test_members_have_curves_of_their_own(
    tmp_path: Path, mlflow: dict[str, SimpleNamespace]
) -> None:
    train(tmp_path / "run", "mlflow", members=2)
    (sent,) = mlflow.values()
    for k, name in enumerate(("loss", "member 2/loss")):
        assert sent.metrics[name] == pytest.approx(lines_of(Run(tmp_path / "run", k)))


def test_the_file_store_of_mlflow_holds_the_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed", exc_type=ImportError)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    from mlflow import MlflowClient

    train(tmp_path / "run", "mlflow")
    run = train(tmp_path / "run", "mlflow", epochs=5, resume=True)
    client = MlflowClient()
    place = client.get_experiment_by_name("muxgcl")
    (found,) = client.search_runs([place.experiment_id])
    history = client.get_metric_history(found.info.run_id, "loss")
    assert {m.step: m.value for m in history} == pytest.approx(lines_of(run))
    assert found.data.params["method"] == "grace"
    assert found.info.status == "FINISHED"


def test_a_store_that_mlflow_refuses_is_one_line_with_the_remedy_before_any_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mlflow: dict[str, SimpleNamespace]
) -> None:
    def refuse() -> None:
        raise RuntimeError(
            f"the folder is {'old ' * 60} set `MLFLOW_ALLOW_FILE_STORE=true` to go on"
        )

    monkeypatch.setattr(sys.modules["mlflow"], "MlflowClient", refuse)
    remedy = "--log mlflow: .*set MLFLOW_ALLOW_FILE_STORE=true, or MLFLOW_TRACKING_URI=sqlite"
    with pytest.raises(UserError, match=remedy):
        train(tmp_path / "run", "mlflow")
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


def test_wandb_gets_settings_and_losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions: list[dict[str, Any]] = []

    class Session:
        def __init__(self, **given: Any) -> None:
            self.given = given
            sessions.append(given | {"loss": {}})

        def log(self, numbers: dict[str, float], step: int) -> None:
            sessions[-1]["loss"][step] = numbers["loss"]

        def finish(self, exit_code: int) -> None:
            sessions[-1]["code"] = exit_code

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=Session))
    train(tmp_path / "run", "wandb")
    run = train(tmp_path / "run", "wandb", epochs=5, resume=True)
    one, two = sessions
    assert one["loss"] | two["loss"] == pytest.approx(lines_of(run))
    assert one["id"] == two["id"]
    assert (one["project"], one["name"], one["resume"]) == ("muxgcl", "run", "allow")
    assert one["config"]["method"] == "grace"
    assert (one["code"], two["code"]) == (0, 0)
    with pytest.raises(Stopped):
        one_epoch(run, "wandb", Stopped("stopped after epoch 6 of 9"))
    assert sessions[-1]["code"] == 1


@pytest.mark.parametrize(("log", "name"), [("mlflow", "MLflow"), ("wandb", "Weights & Biases")])
def test_a_log_without_its_package_or_of_no_name_is_one_line_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, name: str
) -> None:
    monkeypatch.setitem(sys.modules, log, None)
    with pytest.raises(UserError, match=rf"--log {log} needs {name}: pip install {log}"):
        train(tmp_path / "run", log)
    with pytest.raises(UserError, match="one of tensorboard, mlflow, wandb, got 'paper'"):
        train(tmp_path / "run", "paper")
    assert not (tmp_path / "run").exists()


def test_a_server_that_does_not_answer_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**given: Any) -> None:
        raise RuntimeError("no answer\nfrom the server")

    run = train(tmp_path / "run", None)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    told = "--log wandb: no answer from the server"
    with pytest.raises(UserError, match=told), logged(run, "wandb", lambda _: None) as on_block:
        on_block([Epoch(1, {"a": 1.0}, 0.1)])


def test_curves_are_not_written_through_a_link(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    elsewhere, run = tmp_path / "elsewhere", tmp_path / "run"
    elsewhere.mkdir()
    train(run, "tensorboard")
    for file in (run / "tensorboard").iterdir():
        file.unlink()
    (run / "tensorboard").rmdir()
    (run / "tensorboard").symlink_to(elsewhere)
    with pytest.raises(UserError, match="tensorboard is a link; expected a folder of muxgcl"):
        train(run, "tensorboard", epochs=5, resume=True)
    assert not list(elsewhere.iterdir())
