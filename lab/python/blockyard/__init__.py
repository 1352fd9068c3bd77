"""Blockyard: what memory allocation costs a program with a frame budget, measured and made cheaper."""

__version__ = "0.1.0"
