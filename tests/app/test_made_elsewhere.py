"""A run whose features were made from edges by an earlier version, which made others."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import muxgcl
from muxgcl import LoadOptions, RunOptions, UserError
from muxgcl.app.use import predict_links
from muxgcl.io.structure import BINS, NAMES

OPTIONS = RunOptions(
    method="mux-hop",
    preset="quick",
    settings={"hidden": 8, "width": 8, "projection": 8, "projection_out": 8, "affinity": "none"},
    epochs=2,
    device="cpu",
    score=False,
    report=False,
)
ONE_LINE = "its 48 features from edges were made by another version, and this one makes 304"


@pytest.fixture(
    params=[
        ("alone", "16 bins of degree and 32 of position made from edges"),
        ("beside columns", "made from the edges (16 of degree, 32 of position)"),
    ]
)
def older(files: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A run folder that says, as an earlier version would, that it made 32 positions."""
    load = LoadOptions()
    columns, told = request.param
    if columns == "beside columns":
        load = LoadOptions(features=files / "nodes.csv", label_column="topic", structure=True)
    out = tmp_path / "run"
    muxgcl.run(files / "edges.csv", replace(OPTIONS, out=out), load=load)
    text = (out / "config.toml").read_text()
    today = f"made from the edges ({BINS} of degree, {len(NAMES) - BINS} of position)"
    assert today in text
    (out / "config.toml").write_text(text.replace(today, told))
    return out


def hidden_links(run: Path, files: Path) -> object:
    return predict_links(run, repeats=1)


def new_nodes(run: Path, files: Path) -> object:
    (run.parent / "new.csv").write_text("id\nnew\n")
    (run.parent / "links.csv").write_text("from,to\nnew,n1\n")
    return muxgcl.embed(run, new_nodes=run.parent / "new.csv", new_edges=run.parent / "links.csv")


def other_features(run: Path, files: Path) -> object:
    text = (run / "config.toml").read_text()
    line = next(line for line in text.splitlines() if line.startswith("features = "))
    (run / "config.toml").write_text(text.replace(line, "features = 48"))
    load = LoadOptions(features=files / "nodes.csv", label_column="topic")
    with_columns = "beside the columns" in text
    return muxgcl.embed(run, files / "edges.csv", load=load if with_columns else None)


@pytest.mark.parametrize("use", [hidden_links, new_nodes, other_features])
def test_what_needs_them_anew_is_refused_in_one_line(
    use: Callable[[Path, Path], object], older: Path, files: Path
) -> None:
    with pytest.raises(UserError, match=ONE_LINE):
        use(older, files)


def test_the_embedding_that_it_has_can_be_read(older: Path) -> None:
    assert len(muxgcl.embed(older).table) == 60
