"""The log entry that replaces lines which were dropped from memory."""

from __future__ import annotations

from dataclasses import dataclass

from api_client.models.logs import NS_PER_MS, LogGap


@dataclass(frozen=True, slots=True)
class NotKept(LogGap):
    """A gap whose lines were dropped from memory to make room for newer ones; they can be read again.

    Its bounds are whole milliseconds, like the bounds of requests, so that each line is read again exactly
    once. ``at_once`` is the number of lines to read again with one action (perhaps a few more).
    """

    at_once: int = 0


def millisecond_of(time_ns: int) -> int:
    """Round a time down to a whole millisecond."""
    return time_ns - time_ns % NS_PER_MS
