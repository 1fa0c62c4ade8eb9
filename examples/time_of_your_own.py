"""Replace time and network to test a program that uses the client.

python examples/time_of_your_own.py
"""

import asyncio
from datetime import UTC, datetime, timedelta

import httpx

from api_client import Remote, TrainingClient


class StillClock:
    """A clock (``api_client.Clock``) whose sleeps return at once."""

    def __init__(self) -> None:
        self.slept_s: list[float] = []

    def now(self) -> datetime:
        """Return the date and time."""
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Return the seconds slept so far."""
        return sum(self.slept_s)

    async def sleep(self, seconds: float) -> None:
        """Record the duration instead of waiting."""
        self.slept_s.append(seconds)


class TiredServer:
    """A server that fails twice, then responds."""

    def __init__(self) -> None:
        self.request_count = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Return the response to a request."""
        self.request_count += 1
        if self.request_count < 3:
            return httpx.Response(503, headers={"Retry-After": "20"})
        return httpx.Response(200, json={"training_projects": [{"id": "p1", "name": "llama-sft"}]})


async def main() -> None:
    """List the projects."""
    clock = StillClock()
    network = httpx.MockTransport(TiredServer())
    remote = Remote("test", "https://app.test", "https://api.test", None, "none is needed")
    async with TrainingClient(remote, clock=clock, http_transport=network) as client:
        projects = await client.projects.list()
    print(f"{projects[0].name} after waits of {clock.slept_s} s")


if __name__ == "__main__":
    asyncio.run(main())
