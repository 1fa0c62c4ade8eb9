"""Messages posted by a log view."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from api_client.models.logs import LogEntry, LogGap
from tui.analysis.logs.pattern import LogPattern


class StatusChanged(Message):
    """Following, the number of new lines below the visible ones, or the first error changed."""


@dataclass
class MatchChanged(Message):
    """Progress of a search; posted when the nearest match is known, and again as matches are counted.

    Attributes:
        pattern: The search pattern.
        entry: The current match; None if nothing matches.
        position: Position of the match, counted from 1; 0 if not known yet.
        total: Matches counted so far.
        total_is_final: True if all lines have been searched.
        wrapped: True if the search wrapped around an end of the log.
    """

    pattern: LogPattern
    entry: LogEntry | None
    position: int
    total: int
    total_is_final: bool
    wrapped: bool


@dataclass
class GapRetryRequested(Message):
    """The user asked to fetch the lines missing at a gap marker."""

    gap: LogGap
