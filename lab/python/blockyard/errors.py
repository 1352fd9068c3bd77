"""The one kind of error that a user sees."""


class UserError(Exception):
    """A mistake in the input or the surroundings: one sentence that says what, where and what to do."""
