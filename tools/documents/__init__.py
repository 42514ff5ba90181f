"""What this repository's README and docs quote from its records; not part of the package.

`results` has the tables of `muxgcl reproduce`, the others a page or two each. All are written
between their markers by tools/write_results.py.
"""
