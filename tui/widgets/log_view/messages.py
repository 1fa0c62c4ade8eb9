"""Messages posted by a log view."""

from __future__ import annotations

from dataclasses import dataclass, field

from textual.message import Message
from textual.widget import Widget

from api_client.models.logs import LogEntry, LogGap
from tui.analysis.logs.pattern import LogPattern


@dataclass
class LogViewMessage(Message, namespace="log_view"):
    """Base class of log view messages."""

    log_view: Widget

    @property
    def control(self) -> Widget:
        return self.log_view


@dataclass
class FollowChanged(LogViewMessage, namespace="log_view"):
    """Following started or stopped."""

    follow: bool


@dataclass
class UnseenChanged(LogViewMessage, namespace="log_view"):
    """The number of new lines below the visible ones changed since following stopped."""

    unseen: int


@dataclass
class MatchChanged(LogViewMessage, namespace="log_view"):
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
    position: int = field(kw_only=True)
    total: int = field(kw_only=True)
    total_is_final: bool = field(kw_only=True)
    wrapped: bool = field(kw_only=True)


class OldestReached(LogViewMessage, namespace="log_view"):
    """The user reached the oldest stored line; older ones may be prepended.

    Posted once until older lines are prepended or the log is cleared.
    """


@dataclass
class FirstErrorChanged(LogViewMessage, namespace="log_view"):
    """The oldest error line changed; None if there is none."""

    entry: LogEntry | None


@dataclass
class GapRetryRequested(LogViewMessage, namespace="log_view"):
    """The user asked to fetch the lines missing at a gap marker."""

    gap: LogGap


@dataclass
class CursorMoved(LogViewMessage, namespace="log_view"):
    """The cursor line or the selection changed; `lines` is 0 while following."""

    entry: LogEntry | None
    lines: int
