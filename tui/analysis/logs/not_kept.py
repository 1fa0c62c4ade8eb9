"""The mark that stands for lines of a log that were read and then left memory."""

from __future__ import annotations

from dataclasses import dataclass

from api_client.models.logs import NS_PER_MS, LogGap


@dataclass(frozen=True, slots=True)
class NotKept(LogGap):
    """A gap of our own making: its lines left memory for newer ones, and can be read again.

    Its bounds are whole milliseconds, as those of requests are, so that no line is read twice or never.
    ``at_once`` is the number of lines to read again at once, or a few more.
    """

    at_once: int = 0


def millisecond_of(time_ns: int) -> int:
    """Return the start of the millisecond of a time."""
    return time_ns - time_ns % NS_PER_MS
