"""One self-contained HTML file to explore a campaign with: no network, no server, nothing beside it."""
