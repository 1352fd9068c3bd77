"""One self-contained HTML file to explore a campaign with: no network, no server, nothing beside it."""

from blockyard.report.page.writer import missing, refuse_without_library, write

__all__ = ["missing", "refuse_without_library", "write"]
