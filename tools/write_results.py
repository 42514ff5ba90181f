"""Rewrite the results in README.md and docs/results.md, and docs/figures, from the records.

Usage: python tools/write_results.py
"""

from pathlib import Path

from muxgcl.reproduce.documents import write_documents

if __name__ == "__main__":
    root = Path(__file__).resolve().parents[1]
    for path in write_documents(root):
        print(path.relative_to(root))
