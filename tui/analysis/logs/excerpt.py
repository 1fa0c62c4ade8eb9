"""The piece of a log message that rules read.

A job prints lines of any length. Whoever shows a message keeps all of it; every rule that reads one begins
with ``excerpt``, so that no expression ever meets more text than this.
"""

from __future__ import annotations

MAX_CHARACTERS = 8192
"""Rules read only so many characters of a longer message; all of it is shown."""


def excerpt(message: str) -> str:
    """Return a message as rules read it: a long one is its newest states, or its beginning."""
    if len(message) <= MAX_CHARACTERS:  # almost every one
        return message
    return newest_states(message) or message[:MAX_CHARACTERS]


def newest_states(message: str) -> str:
    """Return the newest states of a bar that overwrote a long message; other long messages are empty."""
    if len(message) <= MAX_CHARACTERS:
        return message
    return message.rstrip("\r\n")[-MAX_CHARACTERS:].partition("\r")[2]


def without_digits(line: str) -> bytes:
    """Return what lines that differ only in their numbers have in common."""
    return line.encode("utf-8", "surrogatepass").translate(None, b"0123456789")
