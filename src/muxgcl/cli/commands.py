"""Every command, by importing the modules that declare them."""

from muxgcl.cli import bench, lists, reproduce, run, similar, tune, use

__all__ = ["bench", "lists", "reproduce", "run", "similar", "tune", "use"]
