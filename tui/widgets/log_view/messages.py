"""What a log view tells its screen."""

from __future__ import annotations

from textual.message import Message
from textual.widget import Widget

from api_client.streams.records import LogEntry


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
    """A search ended: at an entry, or nowhere."""

    def __init__(self, log_view: Widget, text: str, entry: LogEntry | None) -> None:
        self.text = text
        self.entry = entry
        super().__init__(log_view)


class OldestReached(LogViewMessage, namespace="log_view"):
    """The reader came to the oldest line held; older ones may be prepended."""
