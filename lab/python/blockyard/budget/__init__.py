"""Holds a running program to limits of allocation."""
