"""The variants in which an allocator is replayed."""

DEFAULTS = "defaults"
PREFAULTED = "prefaulted"
