"""The dashboard's client and its connection state; also reads prices and status histories.

Importing the client takes as long as painting Home, so the client is created when first used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from api_client.clock import Clock, SystemClock
from api_client.errors import (
    BadRequest,
    ErrorAnswer,
    InvalidAnswer,
    NotFound,
    RateLimited,
    RequestError,
    Unauthorized,
)
from api_client.events import RequestEvent
from api_client.http.retry import LASTING, RetryPolicy, retrying
from api_client.remotes import ENVIRONMENT_REMOTE, Remote
from tui.analysis.connection import Connection, StaleResource
from tui.text.sanitize import sanitize

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.models import QueueContext, TrainingJob
    from api_client.replay import Replay

CHECK_S = 8.0
"""Timeout of the connection check: a server silent for this long counts as unreachable."""
REPORT_INTERVAL_S = 2.0
"""Minimum interval for reporting the time of the last response to screens, which show ages from 15 s on."""


class Session:
    """A client and its connection state.

    ``on_connection`` is called with each new state; if only the time of the last response changed, at most
    every ``REPORT_INTERVAL_S``. ``read_only_by`` names the setting that forbids changes, if any. For
    recordings, ``replay`` takes the place of the server, and ``recordings_label`` returns the
    recordings' name and the shown time.
    """

    def __init__(
        self,
        remote: Remote,
        *,
        clock: Clock | None = None,
        replay: Replay | None = None,
        recordings_label: Callable[[], str] | None = None,
        on_connection: Callable[[Connection], None] | None = None,
        read_only_by: str = "",
    ) -> None:
        self.remote = remote
        self.clock: Clock = clock or (SystemClock() if replay is None else replay.clock)
        self.connection = self._reported_connection = Connection(recorded=recordings_label)
        self.on_connection = on_connection
        self._replay = replay
        self._read_only_by = read_only_by
        self._retry = RetryPolicy(cap_s=2.0)  # short delays, because a user is waiting
        self.polling_retry = self._retry.for_polling()
        """The retry policy of polls: a request that hangs must not block Home."""

    @cached_property
    def client(self) -> TrainingClient:
        """The client; ``import_client`` imports its module beforehand, without blocking the screen."""
        from api_client.client import TrainingClient

        return TrainingClient(
            self.remote,
            clock=self.clock,
            replay=self._replay,
            retry=self._retry,
            on_event=self._on_request_event,
            read_only_by=self._read_only_by,
        )

    async def import_client(self) -> None:
        await asyncio.to_thread(import_module, "api_client.client")

    @property
    def remote_name(self) -> str:
        """Display name of the remote: its name, or its host if it has none."""
        remote = self.remote
        has_name = remote.name and remote.name != ENVIRONMENT_REMOTE
        return sanitize(remote.name if has_name else urlsplit(remote.api_url).netloc)

    def report_failure(self, resource: str, error: RequestError) -> None:
        """Record that a feed cannot get ``resource``, such as "the log".

        After a lasting error, screens mark this data as stale until ``report_success`` is called for it.
        Temporary errors affect only the connection's state, which shows them already.
        """
        if error.retryable:
            if self.connection.stale_resources:
                self._change(self.connection.with_fresh_resource(resource))
        else:
            self._change(
                self.connection.with_stale_resource(
                    StaleResource(resource, sanitize(str(error)), self.clock.now())
                )
            )

    def report_success(self, resource: str) -> None:
        """Record that the feed got ``resource``, or has ended."""
        if self.connection.stale_resources or self.connection.failing_routes:
            self._change(self.connection.without_resource(resource))

    def _on_request_event(self, event: RequestEvent) -> None:
        if not isinstance(self.clock, SystemClock):
            event = replace(event, server_time=None)  # the clock of a recording is not the server's
        self._change(self.connection.after(event))

    def _change(self, connection: Connection) -> None:
        self.connection = connection
        if self.on_connection is not None and not self._is_reported(connection):
            self._reported_connection = connection
            self.on_connection(connection)

    def _is_reported(self, connection: Connection) -> bool:
        """True if screens show this state already, apart from a slightly newer time of the last response."""
        reported_at, answered_at = self._reported_connection.answered_at, connection.answered_at
        if connection.recorded is not None or reported_at is None or answered_at is None:
            return False
        if abs((answered_at - reported_at).total_seconds()) >= REPORT_INTERVAL_S:
            return False
        return replace(connection, answered_at=reported_at) == self._reported_connection

    async def find_job(self, job_id: str) -> TrainingJob | None:
        """Find a job, retrying while the server is unreachable; None if the server has no such job."""

        async def find() -> TrainingJob | None:
            with suppress(NotFound):
                return await self.client.jobs.find(job_id)
            return None

        return await retrying(find, LASTING, sleep=self.clock.sleep)

    async def check(self) -> None:
        """Check once that the server responds and accepts the key; raises the client's errors if not."""
        with suppress(NotFound, BadRequest, RateLimited):  # the server responded, too
            await self.client.projects.list(retry=RetryPolicy(max_attempts=1, silence_s=CHECK_S))

    async def aclose(self) -> None:
        if "client" in vars(self):
            await self.client.aclose()


async def listed_prices(
    client: TrainingClient, own_prices: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Return the USD per minute of a node by instance ID; empty if the server lists no prices.

    ``own_prices``, the user's by ID or name, take precedence. Raises RequestError.
    """
    price_by_id = dict(own_prices or {})
    try:
        price_list = await client.account.instance_type_prices()
    except (ErrorAnswer, InvalidAnswer) as error:
        if error.retryable or (isinstance(error, Unauthorized) and error.is_key_invalid):
            raise
        return price_by_id
    for item in price_list:
        instance = item.instance_type
        price = price_by_id.get(instance.id, price_by_id.get(instance.name, item.price))
        if price is not None:
            price_by_id[instance.id] = price
    return price_by_id


async def read_status_changes(client: TrainingClient, job: TrainingJob) -> QueueContext | None:
    """Return a job's status changes; None if the user may not read them, or the server lacks them."""
    with suppress(ErrorAnswer, InvalidAnswer):
        return await client.jobs.queue_context(job.id)
    return None
