"""The excerpt of a log message to which rules and regular expressions are applied.

A job prints lines of any length. Screens and commands show the whole message, but rules are applied only to
its excerpt, so that their cost is bounded.
"""

from __future__ import annotations

MAX_CHARACTERS = 8192
"""Maximum length of an excerpt."""


def excerpt(message: str) -> str:
    """Return a short message whole, else its ``newest_states``, or its beginning if it has none."""
    if len(message) <= MAX_CHARACTERS:  # almost all messages
        return message
    return newest_states(message) or message[:MAX_CHARACTERS]


def newest_states(message: str) -> str:
    """Return the end of a long message after a carriage return: the newest states of a progress bar.

    Empty for a long message without carriage returns; a short message is returned whole.
    """
    if len(message) <= MAX_CHARACTERS:
        return message
    return message.rstrip("\r\n")[-MAX_CHARACTERS:].partition("\r")[2]


def without_digits(line: str) -> bytes:
    """Remove all digits from a line, so that lines that differ only in digits become equal."""
    return line.encode("utf-8", "surrogatepass").translate(None, b"0123456789")
