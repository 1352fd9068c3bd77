"""One self-contained HTML file to explore a campaign with: no network, no server, nothing beside it."""

from blockyard.report.page.libraries import libraries, missing
from blockyard.report.page.writer import write

__all__ = ["libraries", "missing", "write"]
