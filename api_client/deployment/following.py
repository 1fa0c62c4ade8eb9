"""Follow a deployment until it serves: its status and its log."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from api_client.client import TrainingClient
from api_client.errors import BadRequest, NotFound
from api_client.http.retry import ENDLESS, retrying
from api_client.models import Deployment
from api_client.models.deployments import FINAL_STATUSES, SERVING_STATUSES
from api_client.models.jobs import CLOCK_SKEW
from api_client.models.logs import LogEntry, LogLine
from api_client.streams.logs import LogIncrements


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
        """True if this is the last update: the deployment serves, or never will without intervention.

        A status that is not known may change.
        """
        return self.status in FINAL_STATUSES

    @property
    def is_serving(self) -> bool:
        """True if requests will be answered."""
        return self.status in SERVING_STATUSES


async def follow(
    client: TrainingClient,
    model_id: str,
    deployment_id: str,
    *,
    interval_s: float = 2.0,
    changed_from: str = "",
    known: Iterable[LogLine] = (),
) -> AsyncGenerator[DeploymentUpdate, None]:
    """Yield an update at once and every ``interval_s`` seconds, until the deployment serves or has failed.

    After a change that the server has accepted, ``changed_from`` is the status before it, which does not
    count as the end for half a minute: it may not have changed yet. ``known`` are lines that were read
    before, and are left out. Transient errors are retried. Raises NotFound, Unauthorized and other
    RequestErrors that are permanent.
    """
    clock = client.clock

    async def fetch() -> Deployment:
        deployment = await client.models.deployment(model_id, deployment_id)
        return deployment.model_copy(update={"model_id": model_id})

    log: LogIncrements | None = None
    begun = clock.now()
    while True:
        deployment = await retrying(fetch, ENDLESS, sleep=clock.sleep)
        start = deployment.created_at - CLOCK_SKEW if deployment.created_at else begun - timedelta(hours=1)
        log = log or client.models.increments(model_id, deployment.id, start=start, known=known)
        # Read the log after the status, so that the last update includes the last lines.
        update = DeploymentUpdate(deployment, await _new_lines(log))
        yield update
        is_unchanged = update.status == changed_from and clock.now() - begun < timedelta(seconds=30)
        if update.is_finished and not is_unchanged:
            return
        await clock.sleep(interval_s)


async def _new_lines(log: LogIncrements) -> tuple[LogEntry, ...]:
    """Return the lines since the last call; none if the server has no log."""
    entries: list[LogEntry] = []
    with suppress(NotFound, BadRequest):
        async for new in log.poll():
            entries += new
    return tuple(entries)
