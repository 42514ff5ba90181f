"""Declares every command: each of these modules adds its own to `cli.app.app`."""

from muxgcl.cli import bench, lists, reproduce, run, similar, tune, use

__all__ = ["bench", "lists", "reproduce", "run", "similar", "tune", "use"]
