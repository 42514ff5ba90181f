"""Labels that are numbers: classes where there are few, pointed out or refused where many."""

from pathlib import Path

import numpy as np
import pytest

from muxgcl import UserError
from muxgcl.io.load import Loaded, load


def loaded(folder: Path, label: str, cells: list[str], **options: str) -> Loaded:
    (folder / "edges.csv").write_text("source,target\n0,1\n1,2\n")
    rows = "".join(f"{row},{row % 7},{cell}\n" for row, cell in enumerate(cells))
    (folder / "nodes.csv").write_text(f"id,age,{label}\n{rows}")
    return load(folder / "edges.csv", features=folder / "nodes.csv", **options)


def test_numbers_as_labels_are_pointed_out_where_there_are_many(tmp_path: Path) -> None:
    cells = [str(row % 56) for row in range(400)]
    told = "label 'messages': the numbers are read as 56 classes"
    assert told in loaded(tmp_path, "messages", cells, label_column="messages").notes
    few = loaded(tmp_path, "label", [str(row % 20) for row in range(400)])
    assert not any("are read as" in note for note in few.notes)
    words = loaded(tmp_path, "label", [f"c{row % 56}" for row in range(400)])
    assert not any("are read as" in note for note in words.notes)


def test_a_quantity_is_refused_as_a_label_and_trained_without(tmp_path: Path) -> None:
    cells = [f"{row % 315}.5" for row in range(400)]
    told = (
        "^column 'citations' holds 315 different numbers: muxgcl scores classes only; "
        "--exclude citations trains without it, or bin it first$"
    )
    with pytest.raises(UserError, match=told):
        loaded(tmp_path, "citations", cells, label_column="citations")
    with pytest.raises(UserError, match="--exclude y trains without it"):
        loaded(tmp_path, "y", cells)
    graph = loaded(tmp_path, "citations", cells, label_column="citations", exclude="citations")
    assert graph.label_names is None
    graph = loaded(tmp_path, "y", cells, exclude="y")
    assert graph.label_names is None
    assert list(graph.columns) == ["age"]
    with pytest.raises(UserError, match="the labels: 400 different numbers"):
        load([(0, 1)], features=np.eye(400), labels=np.arange(400) / 3)
