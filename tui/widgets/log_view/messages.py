"""What a log view tells its screen."""

from __future__ import annotations

from textual.message import Message
from textual.widget import Widget

from api_client.models.logs import LogEntry, LogGap
from tui.analysis.logs.pattern import LogPattern


class LogViewMessage(Message, namespace="log_view"):
    """A message of a log view."""

    def __init__(self, log_view: Widget) -> None:
        self.log_view = log_view
        super().__init__()

    @property
    def control(self) -> Widget:
        """The view it happened in."""
        return self.log_view


class FollowChanged(LogViewMessage, namespace="log_view"):
    """Following began or ended."""

    def __init__(self, log_view: Widget, follow: bool) -> None:
        self.follow = follow
        super().__init__(log_view)


class UnseenChanged(LogViewMessage, namespace="log_view"):
    """Another number of lines came below the reader since following ended."""

    def __init__(self, log_view: Widget, unseen: int) -> None:
        self.unseen = unseen
        super().__init__(log_view)


class MatchChanged(LogViewMessage, namespace="log_view"):
    """How a search stands: told at once for the first match, and again as the others are counted.

    Attributes:
        pattern: what is looked for.
        entry: where it has come to; None when nothing matches.
        position: which match that is, counted from 1; 0 while that is not known.
        total: matches counted so far.
        total_is_final: whether all lines have been looked at.
        wrapped: whether the search went around an end of the log to get there.
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
    """The reader came to the oldest line held; older ones may be prepended."""


class FirstErrorChanged(LogViewMessage, namespace="log_view"):
    """Another line is the oldest that tells an error; None when there is none any more."""

    def __init__(self, log_view: Widget, entry: LogEntry | None) -> None:
        self.entry = entry
        super().__init__(log_view)


class GapRetryRequested(LogViewMessage, namespace="log_view"):
    """The reader wants the lines that are missing at a gap marker."""

    def __init__(self, log_view: Widget, gap: LogGap) -> None:
        self.gap = gap
        super().__init__(log_view)


class CursorMoved(LogViewMessage, namespace="log_view"):
    """The reader's line, or the selection, is another one; 0 lines while following."""

    def __init__(self, log_view: Widget, entry: LogEntry | None, lines: int) -> None:
        self.entry = entry
        self.lines = lines
        super().__init__(log_view)
