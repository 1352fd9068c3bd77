"""Tries the program itself, not a recording of it, on several allocators, settings or builds."""
