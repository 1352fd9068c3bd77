#!/usr/bin/python3
"""The blockyard command."""

from blockyard.cli import run

run()
