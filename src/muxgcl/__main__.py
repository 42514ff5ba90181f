"""`python -m muxgcl`: the command line, also from a source tree."""

from muxgcl.cli import main

main()
