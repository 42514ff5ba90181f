"""What came out of a run, to look at: one HTML file, a comparison, or figures for a paper."""

from muxgcl.report.comparison import compare
from muxgcl.report.page import write_report
from muxgcl.report.read import read_run
from muxgcl.report.record import RunRecord
from muxgcl.report.static import save_figures

__all__ = ["RunRecord", "compare", "read_run", "save_figures", "write_report"]
