"""The capacity screen's feed: limits, utilization, and the queue for GPUs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus

from api_client.errors import ErrorAnswer, RequestError, Unauthorized
from api_client.models import RUNNABLE_STATUSES
from tui.analysis.fleet.capacity import CapacityView, fold_capacity, gpu_allocations
from tui.feeds.throttle import Pause
from tui.readers.session import Session

CAPACITY_INTERVAL_S = 10.0
_NO_ROUTE = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED})


class CapacityFeed:
    """Publishes ``CapacityView``s until cancelled; keeps the last data while the server does not respond."""

    def __init__(self, session: Session, *, publish: Callable[[CapacityView], object]) -> None:
        self._session = session
        self._publish = publish
        self._view = CapacityView()
        self._pause = Pause(session.clock)

    async def run(self) -> None:
        while True:
            await self._ask_jobs()
            await self._ask_capacity()
            self._publish(self._view)
            await self._pause(CAPACITY_INTERVAL_S)

    def refresh(self) -> None:
        self._pause.end()

    async def _ask_jobs(self) -> None:
        view = self._view
        try:
            jobs = await self._session.client.jobs.search(statuses=sorted(RUNNABLE_STATUSES))
        except RequestError as error:
            self._view = replace(view, jobs_error=str(error))
            return
        now = self._session.clock.now()
        waiting, holding = gpu_allocations(jobs, now)
        self._view = replace(
            view, waiting=waiting, holding=holding, jobs_known=True, jobs_error="",
            at=view.at if view.rows else now,
        )  # fmt: skip

    async def _ask_capacity(self) -> None:
        view = self._view
        try:
            rows = fold_capacity(await self._session.client.capacity.get())
        except Unauthorized as error:
            forbidden = error.status == HTTPStatus.FORBIDDEN
            self._view = replace(view, state="forbidden" if forbidden else "failed", error=str(error))
        except RequestError as error:
            # If the route has responded before, the server has it.
            absent = not view.rows and isinstance(error, ErrorAnswer) and error.status in _NO_ROUTE
            self._view = replace(view, state="absent" if absent else "failed", error=str(error))
        else:
            self._view = replace(
                view, state="known" if rows else "empty", rows=rows, at=self._session.clock.now(), error=""
            )
