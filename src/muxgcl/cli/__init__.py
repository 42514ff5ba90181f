"""The command line: `muxgcl run GRAPH` and its parts."""

from muxgcl.cli.app import main

__all__ = ["main"]
