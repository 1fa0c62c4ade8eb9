"""Follow a deployment until it serves: its status and its log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from api_client.client import TrainingClient
from api_client.clock import Clock, SystemClock
from api_client.errors import BadRequest, NotFound
from api_client.http.retry import ENDLESS, retrying
from api_client.models import Deployment, LogRecord
from api_client.models.jobs import CLOCK_SKEW
from api_client.models.logs import MS_PER_S, NS_PER_MS, LogEntry, LogGap, LogLine
from api_client.resources.logs import epoch_ms
from api_client.resources.models import Models
from api_client.streams.deduplicator import LineDeduplicator
from api_client.streams.logs import read_logs

STARTING_STATUSES = frozenset({"", "BUILDING", "DEPLOYING", "LOADING_MODEL", "UPDATING", "WAKING_UP"})
"""Statuses that change without intervention (API facts, 2.3); any other is final."""

SERVING = frozenset({"ACTIVE", "SCALED_TO_ZERO"})
"""Final statuses that mean success."""

INTERVAL_S = 2.0
_LATENESS_MS = 75 * MS_PER_S
"""Maximum delay of a line after its timestamp; each read overlaps the last by this much."""

_CLOCK_MARGIN = timedelta(days=1)
"""Maximum time by which the server's clock may be ahead of ours."""

_UNKNOWN_START = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class DeploymentUpdate:
    """Current deployment, and the log lines since the previous update."""

    deployment: Deployment
    lines: tuple[LogEntry, ...]

    @property
    def status(self) -> str:
        """Status as the server spells it."""
        return self.deployment.status

    @property
    def is_finished(self) -> bool:
        """True if this is the last update: the deployment serves, or never will without intervention."""
        return self.status not in STARTING_STATUSES

    @property
    def is_serving(self) -> bool:
        """True if requests will be answered."""
        return self.status in SERVING


async def follow(
    client: TrainingClient,
    model_id: str,
    deployment_id: str,
    *,
    clock: Clock | None = None,
    interval_s: float = INTERVAL_S,
) -> AsyncIterator[DeploymentUpdate]:
    """Yield an update at once and every ``interval_s`` seconds, until the deployment serves or has failed.

    Transient errors are retried. Raises NotFound, Unauthorized and other RequestErrors that are
    permanent.
    """
    clock = clock or SystemClock()

    async def fetch() -> Deployment:
        return await client.models.deployment(model_id, deployment_id)

    log: _DeploymentLog | None = None
    while True:
        deployment = await retrying(fetch, ENDLESS, sleep=clock.sleep)
        log = log or _DeploymentLog(client.models, model_id, deployment, clock)
        # Read the log after the status, so that the last update includes the last lines.
        update = DeploymentUpdate(deployment, await log.fresh())
        yield update
        if update.is_finished:
            return
        await clock.sleep(interval_s)


class _DeploymentLog:
    """Incremental reader of a deployment's log that returns each line once."""

    def __init__(self, models: Models, model_id: str, deployment: Deployment, clock: Clock) -> None:
        self._models = models
        self._model_id = model_id
        self._deployment_id = deployment.id
        self._clock = clock
        start = deployment.created_at - CLOCK_SKEW if deployment.created_at else clock.now() - _UNKNOWN_START
        self._settled_ms = epoch_ms(start)
        self._deduplicator = LineDeduplicator()
        self._gaps: set[LogGap] = set()

    async def fresh(self) -> tuple[LogEntry, ...]:
        """Return the lines since the last call; none if the server has no log."""
        end_ms = epoch_ms(self._clock.now() + _CLOCK_MARGIN)
        entries: list[LogEntry] = []
        newest_ms = self._settled_ms
        try:
            async for batch in read_logs(
                self._page, clock=self._clock, start_ms=self._settled_ms, end_ms=end_ms
            ):
                lines = [entry for entry in batch.entries if isinstance(entry, LogLine)]
                gaps = {entry for entry in batch.entries if isinstance(entry, LogGap)} - self._gaps
                self._gaps |= gaps
                entries += [*self._deduplicator.new_lines(lines, self._settled_ms), *gaps]
                if lines:
                    newest_ms = max(newest_ms, lines[-1].timestamp_ns // NS_PER_MS)
        except (NotFound, BadRequest):
            return tuple(entries)
        self._settled_ms = max(self._settled_ms, newest_ms - _LATENESS_MS)
        self._deduplicator.forget_before(self._settled_ms)
        return tuple(entries)

    async def _page(
        self, *, start_ms: int, end_ms: int, direction: Literal["asc", "desc"], limit: int
    ) -> list[LogRecord]:
        page = await self._models.deployment_logs(
            self._model_id,
            self._deployment_id,
            start_ms=start_ms,
            end_ms=end_ms,
            direction=direction,
            limit=limit,
        )
        return list(page)
