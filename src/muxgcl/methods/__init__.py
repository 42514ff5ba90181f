"""The registry: one file per method, one word here."""

from muxgcl.methods.base import Context, Method, total
from muxgcl.methods.grace import Grace
from muxgcl.methods.mux_gcl import MuxGcl

METHODS: dict[str, type[Method]] = {method.name: method for method in (MuxGcl, Grace)}

__all__ = ["METHODS", "Context", "Method", "total"]
