"""The variants in which an allocator is replayed, and the name that one of them had before."""

DEFAULTS = "defaults"
PREFAULTED = "prefaulted"
_FORMER = "favoured"


def current(name: str) -> str:
    """`jemalloc@favoured`, of a script or campaign that is older than the word, is `jemalloc@prefaulted`."""
    return _replaced(name, _FORMER, PREFAULTED)


def former(name: str) -> str:
    """What an older campaign calls the allocator; most names are the same."""
    return _replaced(name, PREFAULTED, _FORMER)


def _replaced(name: str, word: str, by: str) -> str:
    """A variant, `ALLOCATOR@VARIANT`, or anything else as it is: a file of the user's may be called like either."""
    is_meant = name == word or (name.endswith(f"@{word}") and "=" not in name)
    return name.removesuffix(word) + by if is_meant else name
