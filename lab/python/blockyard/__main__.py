"""`python -m blockyard` is the `blockyard` command."""

from blockyard.cli import run

run()
