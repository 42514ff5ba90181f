"""A folder for the examples in docstrings of `muxgcl.app`: a graph in two files, and a run."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty nodes with a topic each, and `runs/mine`, which has propagated their features."""
    import muxgcl
    from muxgcl.io import planted

    folder, data = tmp_path_factory.mktemp("examples"), planted(nodes=60)
    edges = [f"n{a},n{b}" for a, b in data.edge_index.T.tolist() if a < b]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    names = ",".join(f"word{k}" for k in range(data.x.shape[1]))
    rows = [
        f"n{k},{','.join(map(str, row))},{'ABC'[label]}"
        for k, (row, label) in enumerate(zip(data.x.int().tolist(), data.y.tolist(), strict=True))
    ]
    (folder / "nodes.csv").write_text("\n".join([f"id,{names},topic", *rows]) + "\n")
    muxgcl.run(
        folder / "edges.csv",
        muxgcl.RunOptions(method="sgc", out=folder / "runs" / "mine", splits=2, report=False),
        load=muxgcl.LoadOptions(features=folder / "nodes.csv", label_column="topic"),
    )
    return folder


@pytest.fixture(autouse=True)
def _in_that_place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.name.startswith("muxgcl.app."):
        monkeypatch.chdir(request.getfixturevalue("place"))
