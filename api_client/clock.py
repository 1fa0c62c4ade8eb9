"""A source of time that tests can replace, and conversions of times to numbers."""

from __future__ import annotations

import asyncio
import time
from contextvars import Context
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Source of the current time."""

    def now(self) -> datetime:
        """Return the current time: timezone-aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a monotonic clock, for measuring intervals."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> datetime:
        """Return the current time: timezone-aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds on a monotonic clock, for measuring intervals."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds without blocking the event loop.

        Runs in a task with an empty context: asyncio keeps a cancelled timer until it is due, and with it
        everything that its context refers to, such as the feed and the log of a closed screen.
        """
        await asyncio.create_task(asyncio.sleep(seconds), context=Context())


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def epoch_ms(moment: datetime) -> int:
    """Convert to milliseconds since the epoch, rounded down. Raises ValueError without a timezone."""
    if moment.tzinfo is None:
        raise ValueError("a datetime without time zone")
    return (moment - EPOCH) // timedelta(milliseconds=1)


def epoch_ns(moment: datetime) -> int:
    """Convert to nanoseconds since the epoch; a datetime is exact to the microsecond."""
    return (moment - EPOCH) // timedelta(microseconds=1) * 1_000


def utc_text(moment: datetime) -> str:
    """Return the time in ISO 8601, in UTC with a Z, as the API formats times."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def moment_at(stamp_ns: int) -> datetime:
    """Convert nanoseconds since the epoch to an aware UTC datetime, truncated to microseconds."""
    return EPOCH + timedelta(microseconds=stamp_ns // 1_000)
