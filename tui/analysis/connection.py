"""The state of the connection (live, retrying, refused …), and the offset of the local clock.

``ClockOffset`` derives the offset from the age of the newest samples. ``Connection`` derives it from the
``Date`` headers of responses, and reports it only if it is so large that charts would be empty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from api_client.events import RequestEvent


class ClockOffset:
    """Estimates the clock offset: the smallest age of the newest sample in any response.

    An age of up to a minute is a plausible delay and counts as 0. If samples stop arriving, the estimate does
    not change, because their age only grows.
    """

    def __init__(self) -> None:
        self._min_age_s = math.inf

    def add_response(self, newest_s: float, now_s: float, step_s: float = 0.0) -> None:
        """Record a response received at ``now_s`` (local epoch s) whose newest timestamp is ``newest_s``."""
        age_s = now_s - newest_s
        # samples arrive with a delay, so this age does not mean that the local clock is ahead
        if 0 <= age_s <= max(60.0, 2.0 * step_s):
            age_s = 0.0
        self._min_age_s = min(self._min_age_s, age_s)

    @property
    def ahead_s(self) -> float:
        """Seconds that the local clock is ahead of the server's; negative if it is behind."""
        return self._min_age_s if math.isfinite(self._min_age_s) else 0.0


LISTS = "projects and jobs"
STATUS, LOG, METRICS, CHECKPOINTS = "the job's status", "the log", "the metrics", "the checkpoints"
"""Display names of the data that screens poll."""


def resource_label(path: str) -> str:
    """Return the display name of the data at an API path; empty if no screen polls it."""
    from api_client import routes  # imports all models, so only when a request has failed

    labels: dict[routes.Route[Any], str] = {
        routes.PROJECTS: LISTS,
        routes.JOBS: LISTS,
        routes.SEARCH_JOBS: LISTS,
        routes.JOB: STATUS,
        routes.JOB_LOGS: LOG,
        routes.JOB_METRICS: METRICS,
        routes.CHECKPOINTS: CHECKPOINTS,
    }
    return next((name for route, name in labels.items() if route.matches(path)), "")


_TEMPORARY_STATUSES = frozenset({408, 429})
ROUTE_GRACE_S = 3.0
"""A single failing route is reported only after this time, since most of these failures end sooner."""
FORGOTTEN_S = 30.0
"""A failure is dropped if its route was not requested for this long, since nothing polls the route now."""


class ConnectionState(StrEnum):
    CONNECTING = "connecting"
    LIVE = "live"
    RETRYING = "retrying"
    LOST = "lost"
    UNAUTHORIZED = "unauthorized"


@dataclass(frozen=True, slots=True)
class StaleResource:
    """Data that a feed cannot refresh, although the server responds.

    ``name`` is the display name of the data ("the log"). The server has refused to return the data since
    ``since``, for ``reason``.
    """

    name: str
    reason: str
    since: datetime


@dataclass(frozen=True, slots=True)
class FailingRoute:
    """A route (``path``) whose requests failed from ``since`` to ``at``; next attempt at ``retries_at``."""

    path: str
    since: datetime
    at: datetime
    retries_at: datetime
    reason: str

    @property
    def name(self) -> str:
        """Display name of the data this route serves; may be empty."""
        return resource_label(self.path)

    @property
    def service(self) -> str:
        """Name shared by routes that fail together, such as those of the logs of all jobs."""
        return self.name or self.path


@dataclass(frozen=True, slots=True)
class Connection:
    """The last known state of the connection."""

    link: ConnectionState = ConnectionState.CONNECTING
    answered_at: datetime | None = None
    """Time of the last successful response."""
    failing_since: datetime | None = None
    """Time of the first failure, on any route, after the last successful response."""
    retry_at: datetime | None = None
    reason: str = ""
    """The error text of the server or the operating system."""
    stale_resources: tuple[StaleResource, ...] = ()
    """Data that the server refuses, so that the screen shows old data."""
    failing_routes: tuple[FailingRoute, ...] = ()
    """Routes that fail while other routes succeed; they may recover."""
    clock_ahead_s: float = 0.0
    """Seconds that the local clock is ahead of the server's (negative: behind); 0 if too few to matter."""
    recorded: Callable[[], str] | None = None
    """For a recording: returns its name and the displayed time."""

    @property
    def stale(self) -> tuple[StaleResource, ...]:
        """Data that is not refreshed although the server responds: refused, or failing for a while."""
        resources = {resource.name: resource for resource in self.stale_resources}
        for route in self.failing_routes:
            if route.name and (route.at - route.since).total_seconds() >= ROUTE_GRACE_S:
                resources.setdefault(route.name, StaleResource(route.name, route.reason, route.since))
        return tuple(resources.values())

    def limited_to(self, resources: AbstractSet[str], job_id: str = "") -> Connection:
        """Keep only the stale and failing resources that a screen displays; return ``self`` if all are kept.

        ``resources`` are display names of data. With ``job_id``, keep only failing routes of this job.
        """
        stale_resources = tuple(resource for resource in self.stale_resources if resource.name in resources)
        failing_routes = tuple(
            route
            for route in self.failing_routes
            if route.name in resources and (not job_id or job_id in route.path.split("/"))
        )
        limited = replace(self, stale_resources=stale_resources, failing_routes=failing_routes)
        return self if limited == self else limited

    def with_stale_resource(self, refusal: StaleResource) -> Connection:
        """Return a copy with this refusal added, keeping the start time of an earlier refusal."""
        resources = {resource.name: resource for resource in self.stale_resources}
        since = resources.get(refusal.name, refusal).since
        resources[refusal.name] = replace(refusal, since=since)
        return replace(self, stale_resources=tuple(resources.values()))

    def with_fresh_resource(self, name: str) -> Connection:
        """Return a copy without the refusal of ``name``, because the data can be read again."""
        return replace(
            self,
            stale_resources=tuple(resource for resource in self.stale_resources if resource.name != name),
        )

    def without_resource(self, name: str) -> Connection:
        """Return a copy without refusals and failures of ``name``, because no feed reads this data now."""
        failing_routes = tuple(route for route in self.failing_routes if route.name != name)
        return replace(self.with_fresh_resource(name), failing_routes=failing_routes)

    def after(self, event: RequestEvent) -> Connection:
        """Return the state of the connection after an event of a request."""
        match event.kind:
            case "answered":
                return self._after_response(event, event.at)
            case "waiting":
                retry_at = event.at + timedelta(seconds=event.delay_s)
                return self._with_failure(event, ConnectionState.RETRYING, retry_at)
            case "failed":
                return self._after_failure(event)
            case _:
                return self

    def _after_failure(self, event: RequestEvent) -> Connection:
        if event.status == 403 and self.link is ConnectionState.LIVE:
            return self  # The API key may not use this route; other routes work.
        if event.status in {401, 403}:
            return self._with_failure(event, ConnectionState.UNAUTHORIZED)
        if event.status is not None and 400 <= event.status < 500 and event.status not in _TEMPORARY_STATUSES:
            # The server responds, but without new data to display.
            return self._after_response(event, self.answered_at)
        return self._with_failure(event, ConnectionState.LOST)

    def _after_response(self, event: RequestEvent, answered_at: datetime | None) -> Connection:
        failing_routes = tuple(route for route in self._recent_failures(event.at) if route.path != event.path)
        return Connection(
            ConnectionState.LIVE,
            answered_at=answered_at,
            stale_resources=self.stale_resources,
            failing_routes=failing_routes,
            clock_ahead_s=_clock_ahead_s(event),
            recorded=self.recorded,
        )

    def _with_failure(
        self, event: RequestEvent, link: ConnectionState, retry_at: datetime | None = None
    ) -> Connection:
        other_routes = [route for route in self._recent_failures(event.at) if route.path != event.path]
        since = next((route.since for route in self.failing_routes if route.path == event.path), event.at)
        retries_at = retry_at or event.at
        failing_route = FailingRoute(event.path, since, event.at, retries_at, event.reason)
        updated = replace(
            self,
            failing_routes=(*other_routes, failing_route)[-50:],
            failing_since=self.failing_since or event.at,
        )
        if self.link is ConnectionState.LIVE and not updated._is_server_failing(failing_route, event):
            return updated
        if self.link is ConnectionState.LOST and link is ConnectionState.RETRYING:
            link = ConnectionState.LOST  # stay LOST until a request succeeds
        return replace(updated, link=link, retry_at=retry_at, reason=event.reason)

    def _is_server_failing(self, failing_route: FailingRoute, event: RequestEvent) -> bool:
        """Return True if the whole server appears to be failing, not only this route."""
        since = min(route.since for route in self.failing_routes if route.service == failing_route.service)
        if self.answered_at is not None and since < self.answered_at:
            # Another route succeeded after this failure: the server is failing only if that was long ago.
            return (event.at - self.answered_at).total_seconds() >= FORGOTTEN_S
        if event.status is None and event.attempt > 1:
            return True  # The server is unreachable.
        may_be_temporary = event.status is None or event.status >= 500 or event.status in _TEMPORARY_STATUSES
        if not may_be_temporary or (failing_route.at - since).total_seconds() >= ROUTE_GRACE_S:
            return True
        first_failure_at = self.failing_since
        return any(
            route.service != failing_route.service
            and first_failure_at is not None
            and route.since >= first_failure_at
            for route in self.failing_routes
        )

    def _recent_failures(self, now: datetime) -> tuple[FailingRoute, ...]:
        return tuple(
            route for route in self.failing_routes if (now - route.retries_at).total_seconds() < FORGOTTEN_S
        )


def _clock_ahead_s(event: RequestEvent) -> float:
    ahead_s = (event.at - event.server_time).total_seconds() if event.server_time is not None else 0.0
    # if the clock is off by more than this, the shortest charts are empty
    return ahead_s if abs(ahead_s) > 300.0 else 0.0
