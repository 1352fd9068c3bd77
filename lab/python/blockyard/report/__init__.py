"""Tables in, pictures and pages out. `build` makes the report of a campaign's folder."""

from blockyard.report.builder import build
from blockyard.report.options import ReportOptions, ReportResult

__all__ = ["ReportOptions", "ReportResult", "build"]
