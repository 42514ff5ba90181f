"""Rewrite the results in README.md and docs, and docs/figures, from the records.

Usage: python tools/write_results.py
"""

import argparse
from pathlib import Path

from documents import (
    any_graph,
    coverage,
    engine,
    label_free,
    new_nodes,
    reliability,
    scales,
    short,
    widths,
)
from documents.results import with_block, write_documents
from muxgcl.io.files import write_text


def main() -> None:
    """Rewrite every marked block and every figure."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    root = Path(__file__).resolve().parents[1]
    written = write_documents(root) + engine.write_figures(root) + scales.write_figures(root)
    marked = {
        "engine": engine,
        "coverage": coverage,
        "width": widths,
        "new-nodes": new_nodes,
        "scale": scales,
        "reliability": reliability,
        "short": short,
        "label-free": label_free,
        "any-graph": any_graph,
    }
    for marker, module in marked.items():
        for path, block in module.blocks(root).items():
            text = (root / path).read_text(encoding="utf-8")
            write_text(root / path, with_block(text, block, str(path), marker))
            written.append(root / path)
    for path in written:
        print(path.relative_to(root))


if __name__ == "__main__":
    main()
