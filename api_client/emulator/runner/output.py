"""Bytes that a node prints → log lines."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAXIMUM_LINE_BYTES = 8 * 1024 * 1024
"""A longer line is cut into several records, so that output without line ends cannot fill memory."""
PROGRESS_AGE_S = 1.0
"""A progress bar that rewrites its line without pause is recorded this often."""
SILENCE_S = 0.5
"""A line without end (a prompt, a progress bar) is recorded once nothing came for this long."""

_LEVEL = re.compile(
    r"\b(?:"
    r"(?P<ERROR>(?:ERROR|CRITICAL|FATAL)\b|Traceback \(most recent call last\)|[A-Z]\w*(?:Error|Exception):)"
    r"|(?P<WARNING>(?:WARNING|WARN)\b|[A-Z]\w*Warning:)"
    r"|(?P<INFO>INFO\b)"
    r"|(?P<DEBUG>(?:DEBUG|TRACE)\b)"
    r")"
)
_LEVEL_SEARCH_CHARACTERS = 256
"""A level stands at the beginning of a line; a megabyte is not searched for one."""


def detect_level(message: str) -> str | None:
    """DEBUG, INFO, WARNING or ERROR if the line says so, else None."""
    found = _LEVEL.search(message, 0, _LEVEL_SEARCH_CHARACTERS)
    return found.lastgroup if found else None


class LineSplitter:
    """Cuts a byte stream into lines at LF; carriage returns inside a line stay in it.

    ``feed`` and ``overdue`` take the time on a monotonic clock, in seconds.
    """

    def __init__(self) -> None:
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._pending_since = 0.0
        self._last_data = 0.0

    @property
    def has_pending(self) -> bool:
        """Whether a line has begun and not ended."""
        return self._pending_bytes > 0

    def feed(self, data: bytes, now_s: float) -> list[str]:
        """Take more bytes; returns the lines that they complete."""
        self._last_data = now_s
        if b"\n" in data:
            *whole, rest = data.split(b"\n")
            whole[0] = b"".join((*self._pending, whole[0]))
            self._pending.clear()
            self._pending_bytes = 0
        else:
            whole, rest = [], data
        if rest:
            if not self._pending:
                self._pending_since = now_s
            self._pending.append(rest)
            self._pending_bytes += len(rest)
        lines = decoded(whole)
        if self._pending_bytes >= MAXIMUM_LINE_BYTES:
            lines += self.finish()
        return lines

    def wait_on(self, now_s: float) -> None:
        """Nobody read for a while: what is unfinished has as much time again as if it had just come."""
        self._last_data = self._pending_since = now_s

    def overdue(self, now_s: float) -> list[str]:
        """The unfinished line, if it has waited long enough to be recorded as it is."""
        if not self._pending:
            return []
        if now_s - self._last_data >= SILENCE_S:
            return self.finish()
        if now_s - self._pending_since >= PROGRESS_AGE_S:
            shown, separator, rest = b"".join(self._pending).rpartition(b"\r")
            if separator and shown:
                kept = separator + rest
                self._pending = [kept]
                self._pending_bytes = len(kept)
                self._pending_since = now_s
                return decoded([shown])
        return []

    def finish(self) -> list[str]:
        """The unfinished line at the end of the stream."""
        rest = b"".join(self._pending)
        self._pending.clear()
        self._pending_bytes = 0
        return decoded([rest]) if rest else []


def decoded(lines: Iterable[bytes]) -> list[str]:
    """Lines as text: what is not UTF-8 is replaced, the CR of a CRLF dropped."""
    return [line.removesuffix(b"\r").decode("utf-8", "replace") for line in lines]
