"""One self-contained HTML file to explore a campaign with: no network, no server, nothing beside it."""

from blockyard.report.page.libraries import libraries, missing
from blockyard.report.page.writer import PageSection, write

__all__ = ["PageSection", "libraries", "missing", "write"]
