"""How the connection to the server stands, folded from the client's events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from api_client.events import RequestEvent

_UNAUTHORISED = frozenset({401, 403})
_NOT_NOW = frozenset({408, 429})


class Link(StrEnum):
    """The states of a connection."""

    CONNECTING = "connecting"
    LIVE = "live"
    RETRYING = "retrying"
    LOST = "lost"
    UNAUTHORISED = "unauthorised"


@dataclass(frozen=True, slots=True)
class Connection:
    """The connection as last heard of.

    ``answered_at`` is the time of the last good answer, ``failing_since`` of the first failure after it,
    ``retry_at`` of the next try, ``reason`` the failure in the server's or the system's words.
    """

    link: Link = Link.CONNECTING
    answered_at: datetime | None = None
    failing_since: datetime | None = None
    retry_at: datetime | None = None
    reason: str = ""

    def after(self, event: RequestEvent) -> Connection:
        """The connection after one more event."""
        match event.kind:
            case "answered":
                return Connection(Link.LIVE, answered_at=event.at)
            case "waiting":
                retry_at = event.at + timedelta(seconds=event.delay_s)
                return replace(self._failing(event), link=Link.RETRYING, retry_at=retry_at)
            case "failed":
                return self._after_failure(event)
            case _:
                return self

    def _after_failure(self, event: RequestEvent) -> Connection:
        if event.status == 403 and self.link is Link.LIVE:
            return replace(self, answered_at=event.at)  # one route is not for this key; the rest is
        if event.status in _UNAUTHORISED:
            return replace(self._failing(event), link=Link.UNAUTHORISED)
        if event.status is not None and 400 <= event.status < 500 and event.status not in _NOT_NOW:
            return Connection(Link.LIVE, answered_at=event.at)  # an answer, if not the hoped-for one
        return replace(self._failing(event), link=Link.LOST)

    def _failing(self, event: RequestEvent) -> Connection:
        since = self.failing_since or event.at
        return replace(self, failing_since=since, retry_at=None, reason=event.reason)
