"""What a run folder keeps of its graph, so that it is of use when the files have moved."""

import json
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from muxgcl.errors import UserError
from muxgcl.io.encode import Encoding
from muxgcl.io.files import write_atomically, write_text
from muxgcl.io.load import MASKS, Loaded
from muxgcl.runs.contents import COLUMN
from muxgcl.runs.folder import Run
from muxgcl.runs.scoring import labels_of
from muxgcl.shapes import Array
from muxgcl.tensors import Tensors

LARGEST = 64 << 20  # bytes of features and edges that are kept


def save_nodes(run: Run, loaded: Loaded) -> None:
    """Labels, edges and other columns of the nodes, for the report."""
    # the prefix keeps a user's names apart from ours and from savez's own arguments
    arrays: dict[str, Any] = {
        f"{COLUMN}{name}": np.asarray(values) for name, values in loaded.columns.items()
    }
    arrays["edge_index"] = loaded.tensors.edge_index.cpu().numpy().astype(np.int32)
    _write_nodes(run, arrays | _labels(loaded))


def save_labels(run: Run, loaded: Loaded) -> None:
    """Put these labels in the place of those that the folder has."""
    before = {n: a for n, a in run.nodes().items() if n not in ("label", "label_names")}
    _write_nodes(run, before | _labels(loaded))


def _labels(loaded: Loaded) -> dict[str, Array]:
    y = labels_of(loaded.tensors)
    if y is None:
        return {}
    names = loaded.label_names
    return {"label": y} | ({} if names is None else {"label_names": np.asarray(names)})


def _write_nodes(run: Run, arrays: dict[str, Any]) -> None:
    write_atomically(run.nodes_file, lambda file: np.savez_compressed(file, **arrays))


def save_encoding(run: Run, encoding: Encoding | None) -> None:
    """How columns became features, so that a later graph's become the same ones."""
    if encoding is not None and (encoding.numbers or encoding.categories):
        write_text(run.encoding_file, json.dumps(encoding.as_dict()) + "\n")


def save_graph(run: Run, loaded: Loaded) -> None:
    """Features and edges, where they are small."""
    data = loaded.tensors
    tensors: dict[str, Tensor] = {"edge_index": data.edge_index}
    if data.x.layout == torch.strided:
        tensors["x"] = data.x
    else:
        x = data.x.coalesce()
        row, column = x.indices()
        tensors |= {"x_row": row, "x_column": column, "x_value": x.values()}
    optional = ("edge_weight", "edge_parts", *MASKS)
    tensors |= {name: data[name] for name in optional if name in data and data[name] is not None}
    if sum(tensor.nbytes for tensor in tensors.values()) > LARGEST:
        return
    facts: dict[str, Any] = {"features": data.x.shape[1]}
    if "edge_parts" in data:
        facts |= {"directed": bool(data["directed"])}
        facts |= {"edge_types": [*data["edge_types"]]} if "edge_types" in data else {}
    run.save_graph({n: t.detach().cpu().contiguous() for n, t in tensors.items()}, **facts)


def kept_graph(run: Run) -> Loaded | None:
    """What `save_graph` wrote, to the bit, with the labels and columns of the folder."""
    if not (run.graph_file.is_file() and run.embeddings_file.is_file()):
        return None
    loaded = kept_nodes(run, run.embeddings()[0])
    found = run.graph(len(loaded.ids))
    if found is None:
        return None
    tensors, facts = found
    if "x" not in tensors:
        where = torch.stack([tensors.pop("x_row"), tensors.pop("x_column")])
        shape = len(loaded.ids), facts["features"]
        x = torch.sparse_coo_tensor(where, tensors.pop("x_value"), shape, check_invariants=True)
        tensors["x"] = x.coalesce()
    data = copy(loaded.tensors)
    data.update(tensors)
    data.update({name: facts[name] for name in ("directed", "edge_types") if name in facts})
    return replace(loaded, tensors=data)


def kept_nodes(run: Run, ids: Array) -> Loaded:
    """Ids, labels and columns, without features and edges: enough to judge embeddings."""
    columns = {
        name.removeprefix(COLUMN): array
        for name, array in run.nodes().items()
        if name.startswith(COLUMN)
    }
    bare = Loaded(Tensors(), ids, None, columns, [], run.encoding() or Encoding())
    return with_kept_labels(run, bare)


def with_kept_labels(run: Run, loaded: Loaded) -> Loaded:
    """With the labels of the folder, where it has any: those that were given last."""
    found = run.nodes()
    if (y := found.get("label")) is None:
        return loaded
    if len(y) != len(loaded.ids):
        raise UserError(f"{run.nodes_file}: {len(y):,} labels, but {len(loaded.ids):,} nodes")
    names = found["label_names"].tolist() if "label_names" in found else None
    return with_labels(loaded, y.astype(np.int64), names)


def with_labels(loaded: Loaded, y: Array, names: list[str] | None) -> Loaded:
    """A graph with other classes, -1 for none."""
    tensors = copy(loaded.tensors)
    tensors.y = torch.from_numpy(y)
    return replace(loaded, tensors=tensors, label_names=names)
