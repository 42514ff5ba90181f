"""Write a graph of `muxgcl datasets make` as two CSV files: edges, and nodes with a column a word.

    muxgcl datasets make sbm --nodes 18333 --classes 15 --features 6805 --degree 9 --words 59 \
        --out g
    python benchmarks/as_csv.py g --out csv

`muxgcl run edges.csv --features nodes.csv --label-column label` in the new folder takes them.
"""

import argparse
import csv
import json
from pathlib import Path

import numpy as np


def main() -> None:
    """Both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    args = parser.parse_args()
    names = ("edges", "features_indptr", "features_indices", "labels")
    edges, start, words, labels = (np.load(args.graph / f"{name}.npy") for name in names)
    columns = json.loads((args.graph / "graph.json").read_text(encoding="utf-8"))["features"]
    args.out.mkdir(parents=True)
    with (args.out / "edges.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        writer.writerows([f"n{a}", f"n{b}"] for a, b in edges.tolist())
    with (args.out / "nodes.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *(f"w{k}" for k in range(columns)), "label"])
        for node, label in enumerate(labels.tolist()):
            row = np.zeros(columns, dtype=int)
            row[words[start[node] : start[node + 1]]] = 1
            writer.writerow([f"n{node}", *row.tolist(), f"c{label}"])
    print(f"{len(labels):,} nodes with {columns:,} columns in {args.out}")


if __name__ == "__main__":
    main()
