"""A search pattern for log lines: plain text or a regular expression.

Regular expressions use RE2, whose matching time is linear for all patterns and texts; Python's engine would
block the dashboard with ``(a+)+b`` on a long line. RE2 supports neither look-around nor back-references;
patterns that contain these are reported as a problem.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import re2

from tui.text.sanitize import strip_ansi

Span = tuple[int, int]
"""Start and end (exclusive) of a match, in characters."""

_ESCAPE = "\x1b"
_SYNTAX = frozenset("\\^$|?*+()[]{}")
"""Characters that make a text look like a regular expression, without the dot, which ordinary texts have."""


@dataclass(frozen=True, slots=True)
class LogPattern:
    """A search text that a user typed, and its options.

    Attributes:
        text: Plain text, or a regular expression.
        regex: True if ``text`` is a regular expression.
        case: True to match case; None to match case if ``text`` has a capital letter (smart case).
    """

    text: str
    regex: bool = False
    case: bool | None = None

    def __bool__(self) -> bool:
        """Return True unless the pattern is empty."""
        return bool(self.text)

    @property
    def matches_case(self) -> bool:
        if self.case is not None:
            return self.case
        # In \S, \W, \B …, capital letters are syntax, not text to find.
        text = re.sub(r"\\.", "", self.text) if self.regex else self.text
        return text != text.lower()

    @property
    def problem(self) -> str:
        """An error message if ``text`` is an invalid regular expression; empty otherwise."""
        if not self.regex:
            return ""
        compiled = _compile(self.text, self.matches_case)
        return compiled if isinstance(compiled, str) else ""

    @property
    def as_expression(self) -> LogPattern | None:
        """The text as a regular expression; None if invalid, or if it looks like plain text."""
        expression = replace(self, regex=True)
        looks_like_one = not (self.regex or _SYNTAX.isdisjoint(self.text))
        return expression if looks_like_one and not expression.problem else None

    def matcher(self) -> Callable[[str], bool]:
        """Return a function that tests whether a message, without its escape sequences, matches.

        An invalid pattern matches nothing.
        """
        if not self.regex:
            return self._plain_matcher()
        compiled = _compile(self.text, self.matches_case)
        if isinstance(compiled, str):
            return lambda _: False
        search = compiled.search

        def matches(message: str) -> bool:
            if _ESCAPE in message:
                message = strip_ansi(message)
            try:
                return search(message) is not None
            except UnicodeEncodeError:  # a lone surrogate
                return search(_encodable(message)) is not None

        return matches

    def _plain_matcher(self) -> Callable[[str], bool]:
        matches_case = self.matches_case
        needle = self.text if matches_case else self.text.lower()

        def matches(message: str) -> bool:
            visible_text = strip_ansi(message) if _ESCAPE in message else message
            return needle in (visible_text if matches_case else visible_text.lower())

        return matches

    def spans(self, text: str) -> list[Span]:
        """Return all matches in a displayed text, in order; they don't overlap, and none is empty."""
        if self.regex:
            compiled = _compile(self.text, self.matches_case)
        else:
            compiled = re.compile(re.escape(self.text), 0 if self.matches_case else re.IGNORECASE)
        if isinstance(compiled, str):
            return []
        matches = compiled.finditer(_encodable(text))
        return [match.span() for match in matches if match.end() > match.start()]


def _encodable(text: str) -> str:
    """Replace each lone surrogate, which RE2 can't encode, by one character, which keeps positions."""
    return re.sub(r"[\ud800-\udfff]", "\ufffd", text)


@lru_cache(maxsize=64)
def _compile(text: str, matches_case: bool) -> Any:
    """Return RE2's compiled expression, or the error message."""
    options = re2.Options()
    options.case_sensitive = matches_case
    options.log_errors = False  # RE2 would write them over the screen.
    try:
        return re2.compile(text, options)
    except (re2.error, UnicodeError) as error:
        reason = error.args[0] if error.args else "not a regular expression"
        if isinstance(reason, bytes):
            reason = reason.decode("utf-8", "replace")
        if isinstance(error, UnicodeError):
            reason = "it contains half a character"
        elif str(reason).startswith("invalid perl operator: (?"):
            reason = "look-ahead and look-behind are not supported"
        return str(reason)[:120]
