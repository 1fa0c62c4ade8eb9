"""Messages posted by a log view."""

from __future__ import annotations

from textual.message import Message
from textual.widget import Widget

from api_client.models.logs import LogEntry, LogGap
from tui.analysis.logs.pattern import LogPattern


class LogViewMessage(Message, namespace="log_view"):
    """Base class of log view messages."""

    def __init__(self, log_view: Widget) -> None:
        self.log_view = log_view
        super().__init__()

    @property
    def control(self) -> Widget:
        return self.log_view


class FollowChanged(LogViewMessage, namespace="log_view"):
    """Following started or stopped."""

    def __init__(self, log_view: Widget, follow: bool) -> None:
        self.follow = follow
        super().__init__(log_view)


class UnseenChanged(LogViewMessage, namespace="log_view"):
    """The number of new lines below the visible ones changed since following stopped."""

    def __init__(self, log_view: Widget, unseen: int) -> None:
        self.unseen = unseen
        super().__init__(log_view)


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

    def __init__(
        self,
        log_view: Widget,
        pattern: LogPattern,
        entry: LogEntry | None,
        *,
        position: int,
        total: int,
        total_is_final: bool,
        wrapped: bool,
    ) -> None:
        self.pattern = pattern
        self.entry = entry
        self.position = position
        self.total = total
        self.total_is_final = total_is_final
        self.wrapped = wrapped
        super().__init__(log_view)


class OldestReached(LogViewMessage, namespace="log_view"):
    """The user reached the oldest stored line; older ones may be prepended.

    Posted once until older lines are prepended or the log is cleared.
    """


class FirstErrorChanged(LogViewMessage, namespace="log_view"):
    """The oldest error line changed; None if there is none."""

    def __init__(self, log_view: Widget, entry: LogEntry | None) -> None:
        self.entry = entry
        super().__init__(log_view)


class GapRetryRequested(LogViewMessage, namespace="log_view"):
    """The user asked to fetch the lines missing at a gap marker."""

    def __init__(self, log_view: Widget, gap: LogGap) -> None:
        self.gap = gap
        super().__init__(log_view)


class CursorMoved(LogViewMessage, namespace="log_view"):
    """The cursor line or the selection changed; `lines` is 0 while following."""

    def __init__(self, log_view: Widget, entry: LogEntry | None, lines: int) -> None:
        self.entry = entry
        self.lines = lines
        super().__init__(log_view)
