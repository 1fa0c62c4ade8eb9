"""A clock on which waiting takes no time."""

import asyncio
from datetime import UTC, datetime, timedelta

YIELD_S = 0.001
"""Real time for others: what reports its progress in a loop would fill the processor otherwise."""


class FastClock:
    def __init__(self) -> None:
        self.slept_s: list[float] = []
        self.off_by = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.off_by

    def monotonic(self) -> float:
        return sum(self.slept_s)

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        await asyncio.sleep(YIELD_S)
