"""A deployment on its way to serving: its status and its log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, Protocol

from api_client.clock import Clock, SystemClock
from api_client.errors import BadRequest, NotFound
from api_client.models import Deployment, LogRecord
from api_client.models.logs import MS_PER_S, NS_PER_MS, LogEntry, LogGap, LogLine
from api_client.resources.logs import CLOCK_SKEW, epoch_ms
from api_client.resources.models import Models
from api_client.streams.deduplicator import Ledger
from api_client.streams.logs import read_logs
from api_client.streams.retry import patiently

ON_ITS_WAY = frozenset({"", "BUILDING", "DEPLOYING", "LOADING_MODEL", "UPDATING", "WAKING_UP"})
"""Statuses that will change by themselves (API facts, 2.3); any other is an outcome."""

SERVING = frozenset({"ACTIVE", "SCALED_TO_ZERO"})
"""Outcomes that are a success."""

INTERVAL_S = 2.0
_LATENESS_MS = 75 * MS_PER_S
"""Lines may arrive this long after their stamp; so much is read again each time."""

_CLOCK_MARGIN = timedelta(days=1)
"""How far the server's clock may be ahead of ours."""

_UNKNOWN_START = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class DeploymentUpdate:
    """The deployment now, and the lines that are new since the update before."""

    deployment: Deployment
    lines: tuple[LogEntry, ...]

    @property
    def status(self) -> str:
        """As the server spells it."""
        return self.deployment.status

    @property
    def is_finished(self) -> bool:
        """Whether this is the last update: it serves, or it never will by itself."""
        return self.status not in ON_ITS_WAY

    @property
    def is_serving(self) -> bool:
        """Whether requests will be answered."""
        return self.status in SERVING


class ModelsClient(Protocol):
    """The part of a client that knows deployments."""

    @property
    def models(self) -> Models:
        """Statuses and logs."""
        ...


async def follow(
    client: ModelsClient,
    model_id: str,
    deployment_id: str,
    *,
    clock: Clock | None = None,
    interval_s: float = INTERVAL_S,
) -> AsyncIterator[DeploymentUpdate]:
    """An update at once and then every ``interval_s`` seconds, until it serves or has failed.

    Outlives errors that may pass. Raises NotFound, Unauthorized and other RequestErrors that will not.
    """
    clock = clock or SystemClock()

    async def fetch() -> Deployment:
        return await client.models.deployment(model_id, deployment_id)

    log: _Log | None = None
    while True:
        deployment = await patiently(fetch, clock=clock)
        log = log or _Log(client.models, model_id, deployment, clock)
        # The log is read after the status, so that the last update has the last lines.
        update = DeploymentUpdate(deployment, await log.fresh())
        yield update
        if update.is_finished:
            return
        await clock.sleep(interval_s)


class _Log:
    """A deployment's log, read a piece at a time: each line once."""

    def __init__(self, models: Models, model_id: str, deployment: Deployment, clock: Clock) -> None:
        self._models = models
        self._model_id = model_id
        self._deployment_id = deployment.id
        self._clock = clock
        start = deployment.created_at - CLOCK_SKEW if deployment.created_at else clock.now() - _UNKNOWN_START
        self._settled_ms = epoch_ms(start)
        self._ledger = Ledger()
        self._gaps: set[LogGap] = set()

    async def fresh(self) -> tuple[LogEntry, ...]:
        """What has come since the last time; nothing from a server that has no log to show."""
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
                entries += [*self._ledger.admit(lines, self._settled_ms), *gaps]
                if lines:
                    newest_ms = max(newest_ms, lines[-1].timestamp_ns // NS_PER_MS)
        except (NotFound, BadRequest):
            return tuple(entries)
        self._settled_ms = max(self._settled_ms, newest_ms - _LATENESS_MS)
        self._ledger.forget_before(self._settled_ms)
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
