"""How far our clock is from the server's, as the stamps of its newest samples tell."""

from __future__ import annotations

import math
import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from api_client.events import RequestEvent

LATE_S = 60.0
"""A newest sample that old is no sign of a clock that is ahead: samples take a while …"""

LATE_STEPS = 2.0
"""… as they do when so many of their distances old."""


class ClockOffset:
    """Learns from answers: the least age that a newest sample ever had is our clock's lead, if it is long.

    Samples that stop coming do not shift it: their age only grows.
    """

    def __init__(self) -> None:
        self._least_age_s = math.inf

    def saw(self, newest_s: float, now_s: float, step_s: float = 0.0) -> None:
        """An answer that came at ``now_s`` (our epoch seconds) and whose newest stamp is ``newest_s``."""
        age_s = now_s - newest_s
        if 0 <= age_s <= max(LATE_S, LATE_STEPS * step_s):
            age_s = 0.0
        self._least_age_s = min(self._least_age_s, age_s)

    @property
    def ahead_s(self) -> float:
        """Seconds that our clock is ahead of the server's; negative if it is behind."""
        return self._least_age_s if math.isfinite(self._least_age_s) else 0.0


LISTS = "projects and jobs"
STATUS, LOG, METRICS, CHECKPOINTS = "the job's status", "the log", "the metrics", "the checkpoints"

_JOB = r"/v1/training_projects/[^/]+/jobs/[^/]+"
_ROUTES = tuple(
    (re.compile(pattern), what)
    for pattern, what in (
        (r"/v1/training_projects|/v1/training_jobs/search|/v1/training_projects/[^/]+/jobs", LISTS),
        (_JOB, STATUS),
        (f"{_JOB}/logs", LOG),
        (f"{_JOB}/metrics", METRICS),
        (f"{_JOB}/checkpoints", CHECKPOINTS),
    )
)


def asked_for_by(path: str) -> str:
    """What a request to this path is for; empty for what no screen keeps asking for."""
    return next((what for pattern, what in _ROUTES if pattern.fullmatch(path)), "")


_UNAUTHORISED = frozenset({401, 403})
_NOT_NOW = frozenset({408, 429})
CALM_S = 3.0
"""What one route alone does not answer is told of after this time: most of it has passed by then."""
FORGOTTEN_S = 30.0
"""A route that has not been asked for so long is wanted no more."""
MOST_TROUBLES = 50


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
class Trouble:
    """A route (``path``) that fails ``since`` then, last ``at``; it is asked again at ``again_at``."""

    path: str
    since: datetime
    at: datetime
    again_at: datetime
    reason: str

    @property
    def what(self) -> str:
        """What is asked for by it, in words; may be empty."""
        return asked_for_by(self.path)


@dataclass(frozen=True, slots=True)
class Connection:
    """The connection as last heard of.

    ``answered_at`` is the time of the last good answer, ``failing_since`` of the first failure after it,
    ``retry_at`` of the next try, ``reason`` the failure in the server's or the system's words.
    ``refusals`` are what feeds do not get of a server that is there: what is shown of it is old. So are
    ``troubles``, but those may pass: routes that fail by themselves, as long as others are answered. The
    link is lost only if nothing is answered at all, since ``unanswered_since``.
    """

    link: Link = Link.CONNECTING
    answered_at: datetime | None = None
    failing_since: datetime | None = None
    retry_at: datetime | None = None
    reason: str = ""
    refusals: tuple[Refusal, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    unanswered_since: datetime | None = None

    @property
    def stale(self) -> tuple[Refusal, ...]:
        """All that is not read anew, though the server is there: refused, or failing for a while."""
        found = {one.what: one for one in self.refusals}
        for one in self.troubles:
            if one.what and (one.at - one.since).total_seconds() >= CALM_S:
                found.setdefault(one.what, Refusal(one.what, one.reason, one.since))
        return tuple(found.values())

    def seen_by(self, shown: AbstractSet[str]) -> Connection:
        """The same for a screen that shows only these of all that may be stale."""
        refusals = tuple(one for one in self.refusals if one.what in shown)
        troubles = tuple(one for one in self.troubles if one.what in shown)
        if len(refusals) == len(self.refusals) and len(troubles) == len(self.troubles):
            return self
        return replace(self, refusals=refusals, troubles=troubles)

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

    def forgotten(self, what: str) -> Connection:
        """The same, and nobody asks for this any more."""
        troubles = tuple(one for one in self.troubles if one.what != what)
        return replace(self.granted(what), troubles=troubles)

    def after(self, event: RequestEvent) -> Connection:
        """The connection after one more event."""
        match event.kind:
            case "answered":
                return self._live(event, event.at)
            case "waiting":
                retry_at = event.at + timedelta(seconds=event.delay_s)
                return self._failing(event, Link.RETRYING, retry_at)
            case "failed":
                return self._after_failure(event)
            case _:
                return self

    def _after_failure(self, event: RequestEvent) -> Connection:
        if event.status == 403 and self.link is Link.LIVE:
            return self  # one route is not for this key; the rest is
        if event.status in _UNAUTHORISED:
            return self._failing(event, Link.UNAUTHORISED)
        if event.status is not None and 400 <= event.status < 500 and event.status not in _NOT_NOW:
            return self._live(event, self.answered_at)  # the server is there; what is shown got no newer
        return self._failing(event, Link.LOST)

    def _live(self, event: RequestEvent, answered_at: datetime | None) -> Connection:
        troubles = tuple(one for one in self._lasting(event.at) if one.path != event.path)
        return Connection(Link.LIVE, answered_at=answered_at, refusals=self.refusals, troubles=troubles)

    def _failing(self, event: RequestEvent, link: Link, retry_at: datetime | None = None) -> Connection:
        """One more failure: of this route alone, or of the whole server."""
        before = [one for one in self._lasting(event.at) if one.path != event.path]
        since = next((one.since for one in self.troubles if one.path == event.path), event.at)
        again_at = retry_at or event.at
        trouble = Trouble(event.path, since, event.at, again_at, event.reason)
        failing = replace(
            self,
            troubles=(*before, trouble)[-MOST_TROUBLES:],
            unanswered_since=self.unanswered_since or event.at,
        )
        if self.link is Link.LIVE and not failing._is_whole(trouble, event):
            return failing
        if self.link is Link.LOST and link is Link.RETRYING:
            link = Link.LOST  # one more round of tries says nothing new
        first = self.failing_since or failing.unanswered_since
        return replace(failing, link=link, failing_since=first, retry_at=retry_at, reason=event.reason)

    def _is_whole(self, trouble: Trouble, event: RequestEvent) -> bool:
        """Whether it is the server that fails, as far as can be told, and not this route alone."""
        if self.answered_at is not None and trouble.since < self.answered_at:
            return False  # others have been answered since
        if event.status is None and event.attempt > 1:
            return True  # there is no getting through
        may_be_a_blip = event.status is None or event.status >= 500 or event.status in _NOT_NOW
        if not may_be_a_blip or (trouble.at - trouble.since).total_seconds() >= CALM_S:
            return True
        first = self.unanswered_since
        return any(
            one.path != trouble.path and first is not None and one.since >= first for one in self.troubles
        )

    def _lasting(self, now: datetime) -> tuple[Trouble, ...]:
        """Troubles with what is still being asked for."""
        return tuple(one for one in self.troubles if (now - one.again_at).total_seconds() < FORGOTTEN_S)
