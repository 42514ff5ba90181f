"""Reports: one HTML page about a run, a comparison of several, or figures for a paper.

A run folder is all that is read (`read`); `page` and `comparison` write HTML, `static` figures. The
application and `reproduce` call these.
"""

from muxgcl.report.comparison import compare
from muxgcl.report.page import write_report
from muxgcl.report.read import read_run
from muxgcl.report.record import RunRecord
from muxgcl.report.static import save_figures

__all__ = ["RunRecord", "compare", "read_run", "save_figures", "write_report"]
