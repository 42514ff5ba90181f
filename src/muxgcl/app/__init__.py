"""Whole runs for Python and the command line alike: options, run folder, scores, report."""
