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
class Refusal:
    """Something that a feed asks for again and again and does not get, though the server answers.

    ``what`` names it for people ("the log"); it is asked for in vain ``since`` then, for that ``reason``.
    """

    what: str
    reason: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Connection:
    """The connection as last heard of.

    ``answered_at`` is the time of the last good answer, ``failing_since`` of the first failure after it,
    ``retry_at`` of the next try, ``reason`` the failure in the server's or the system's words.
    ``refusals`` are what feeds do not get of a server that is there: what is shown of it is old.
    """

    link: Link = Link.CONNECTING
    answered_at: datetime | None = None
    failing_since: datetime | None = None
    retry_at: datetime | None = None
    reason: str = ""
    refusals: tuple[Refusal, ...] = ()

    def refused(self, refusal: Refusal) -> Connection:
        """The same, and this is not to be had; the time of its first refusal stays."""
        kept = tuple(
            replace(refusal, since=one.since) if one.what == refusal.what else one for one in self.refusals
        )
        known = any(one.what == refusal.what for one in self.refusals)
        return replace(self, refusals=kept if known else (*kept, refusal))

    def granted(self, what: str) -> Connection:
        """The same, and this is to be had, or no longer wanted."""
        return replace(self, refusals=tuple(one for one in self.refusals if one.what != what))

    def after(self, event: RequestEvent) -> Connection:
        """The connection after one more event."""
        match event.kind:
            case "answered":
                return self._live(event.at)
            case "waiting":
                retry_at = event.at + timedelta(seconds=event.delay_s)
                return replace(self._failing(event), link=Link.RETRYING, retry_at=retry_at)
            case "failed":
                return self._after_failure(event)
            case _:
                return self

    def _after_failure(self, event: RequestEvent) -> Connection:
        if event.status == 403 and self.link is Link.LIVE:
            return self  # one route is not for this key; the rest is
        if event.status in _UNAUTHORISED:
            return replace(self._failing(event), link=Link.UNAUTHORISED)
        if event.status is not None and 400 <= event.status < 500 and event.status not in _NOT_NOW:
            return self._live(self.answered_at)  # the server is there; what is shown got no newer
        return replace(self._failing(event), link=Link.LOST)

    def _live(self, answered_at: datetime | None) -> Connection:
        return Connection(Link.LIVE, answered_at=answered_at, refusals=self.refusals)

    def _failing(self, event: RequestEvent) -> Connection:
        since = self.failing_since or event.at
        return replace(self, failing_since=since, retry_at=None, reason=event.reason)
