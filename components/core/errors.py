"""The one exception that a user is meant to read."""

from __future__ import annotations


class UserError(Exception):
    """Bad input: the message names the file, row or key, and says what to do. Shown without a traceback."""
