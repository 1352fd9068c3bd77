"""A program watched while it is recorded."""
