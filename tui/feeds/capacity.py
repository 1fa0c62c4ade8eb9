"""The capacity screen's feed: limits, utilization, and the queue for GPUs."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from api_client.errors import ErrorAnswer, RequestError, Unauthorized
from api_client.models import RUNNABLE_STATUSES
from tui.analysis.fleet.capacity import CapacityView, fold_capacity, gpu_allocations
from tui.feeds.throttle import SnapshotFeed
from tui.readers.session import Session


class CapacityFeed(SnapshotFeed[CapacityView]):
    """Publishes ``CapacityView``s until cancelled; keeps the last data while the server does not respond."""

    def __init__(self, session: Session, *, publish: Callable[[CapacityView], object]) -> None:
        super().__init__(session, CapacityView(), publish)

    async def run(self) -> None:
        while True:
            self._change(**await self._read_jobs() | await self._read_capacity())
            await self._pause(10.0)

    async def _read_jobs(self) -> dict[str, Any]:
        try:
            jobs = await self._session.client.jobs.search(statuses=sorted(RUNNABLE_STATUSES))
        except RequestError as error:
            return {"jobs_error": str(error)}
        now = self._session.clock.now()
        waiting_jobs, holding_jobs = gpu_allocations(jobs, now)
        changes = {"waiting": waiting_jobs, "holding": holding_jobs, "jobs_known": True, "jobs_error": ""}
        return changes if self.snapshot.rows else changes | {"at": now}

    async def _read_capacity(self) -> dict[str, Any]:
        try:
            rows = fold_capacity(await self._session.client.capacity.get())
        except RequestError as error:
            state = "failed"
            if isinstance(error, Unauthorized) and error.status == HTTPStatus.FORBIDDEN:
                state = "forbidden"
            elif isinstance(error, ErrorAnswer) and error.lacks_route and not self.snapshot.rows:
                state = "absent"  # unless the route has responded before
            return {"state": state, "error": str(error)}
        at = self._session.clock.now()
        return {"state": "known" if rows else "empty", "rows": rows, "at": at, "error": ""}
