"""What a run's embeddings say of nodes without a label: their most likely class."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from muxgcl.app.folder_graph import kept_nodes
from muxgcl.app.observer import Observer
from muxgcl.app.options import LoadOptions
from muxgcl.app.source import relabelled
from muxgcl.errors import UserError
from muxgcl.evaluate import classify
from muxgcl.io.files import write_atomically
from muxgcl.io.save import harmless, write_csv
from muxgcl.runs.folder import Run
from muxgcl.runs.scoring import labels_of
from muxgcl.shapes import Array


@dataclass(frozen=True, slots=True, eq=False)
class PredictedClasses:
    """The most likely class of every node, in the order of the embeddings."""

    ids: Array
    predicted: Array  # names of classes; their numbers where they have no names
    probability: Array
    label: list[Any]  # the given class, None where there is none
    accuracy: float  # to expect, in percent
    judged: int  # labelled nodes that the accuracy is counted on
    path: Path | None  # of the file that was written

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the counts, and the accuracy to expect."""
        labelled = sum(label is not None for label in self.label)
        return {
            "nodes": len(self.ids),
            "labelled": labelled,
            "accuracy": self.accuracy,
            "judged": self.judged,
            "out": None if self.path is None else str(self.path),
        }


def predict_classes(
    run: Path | str,
    *,
    load: LoadOptions | None = None,
    out: Path | str | None = None,
    observer: Observer | None = None,
) -> PredictedClasses:
    """Predict the class of every node by the probe of the scores, learned from all labels.

    Args:
        run: a run folder.
        load: `labels` (with `label_column`, `id_column`) gives labels that the run did not have;
            the run keeps its own.
        out: a .csv file to write, with the columns id, class, probability and label, which is blank
            where none was given; none by default.
        observer: called at every event; none by default.

    Example:
        >>> found = predict_classes("runs/mine")
        >>> found.predicted[:3].tolist()
        ['A', 'B', 'C']
        >>> found.accuracy > 90
        True
    """
    trained, load, observer = Run(Path(run)), load or LoadOptions(), observer or Observer()
    path = None if out is None else Path(out)
    if path is not None and path.suffix != ".csv":
        raise UserError(f"predicted classes are written as .csv, got {path.name!r}")
    observer.phase("loading")
    ids, z = trained.embeddings()
    loaded = kept_nodes(trained, ids)
    loaded = loaded if load.labels is None else relabelled(loaded, load)
    for note in loaded.notes:
        observer.note(note)
    y = labels_of(loaded.tensors)
    if y is None:
        raise UserError(f"{run} has no labels to learn from: name a file of them with --labels")
    observer.phase("predicting")
    found = classify(z, y)
    if found.learned < (labelled := int((y >= 0).sum())):
        observer.note(f"learned from {found.learned:,} of {labelled:,} labelled nodes")
    names = np.asarray(
        range(int(y.max()) + 1) if loaded.label_names is None else loaded.label_names
    )
    label = [names[one].item() if one >= 0 else None for one in y.tolist()]
    result = PredictedClasses(
        ids, names[found.predicted], found.probability, label, found.accuracy, found.judged, path
    )
    if path is not None:
        lists = (ids.tolist(), result.predicted.tolist(), found.probability.tolist(), label)
        rows = ([*map(harmless, row)] for row in zip(*lists, strict=True))
        columns = ["id", "class", "probability", "label"]
        write_atomically(path, lambda file: write_csv(file, columns, rows))
    return result
