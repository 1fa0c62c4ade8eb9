"""How often a kind of read is worth its cost."""

from __future__ import annotations

from api_client.clock import Clock


class Rhythm:
    """Paces one kind of read: the more pages it took the last time, the longer until the next one.

    On average it costs ``pages_per_s`` at most, unless that would take longer than ``limit_s``; it is never
    due again within ``interval_s``. All in seconds.
    """

    def __init__(self, clock: Clock, *, pages_per_s: float, interval_s: float, limit_s: float) -> None:
        self._clock = clock
        self._pages_per_s = pages_per_s
        self._shortest_s = interval_s
        self._longest_s = limit_s
        self._interval_s = interval_s
        self._began_s: float | None = None

    def is_due(self, within_s: float | None = None) -> bool:
        """Whether it is time for the next read, at the latest ``within_s`` after the last one began."""
        if self._began_s is None:
            return True
        interval_s = self._interval_s if within_s is None else min(self._interval_s, within_s)
        return self._clock.monotonic() - self._began_s >= interval_s

    def begin(self) -> None:
        """A read begins now."""
        self._began_s = self._clock.monotonic()

    def end(self, page_count: int) -> None:
        """The read has ended, and took so many pages."""
        self._interval_s = min(max(page_count / self._pages_per_s, self._shortest_s), self._longest_s)
