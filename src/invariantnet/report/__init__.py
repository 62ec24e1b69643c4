"""The page people show: one self-contained HTML file about a run."""

from invariantnet.report.evaluation import evaluate, fit_plain
from invariantnet.report.page import write_report

__all__ = ["evaluate", "fit_plain", "write_report"]
