"""What the lines tell about the server's clock, which may be minutes away from ours."""

from __future__ import annotations

from datetime import datetime

from api_client.clock import Clock
from api_client.models import TrainingJob
from api_client.streams.records import MS_PER_S, NS_PER_MS, NS_PER_S

DRIFT = 0.999
"""Our clock may run a little faster than the server's: discount what passes on it."""


class ServerTime:
    """Bounds of the server's present: never before the newest line seen and the time passed since then."""

    def __init__(self, clock: Clock) -> None:
        self.newest_ns: int | None = None
        self._clock = clock
        self._lower_ns = 0
        self._lower_at_s = 0.0
        self._job_ms = 0

    def saw_line(self, stamp_ns: int) -> None:
        """A line of this stamp exists now."""
        if self.newest_ns is not None and stamp_ns <= self.newest_ns:
            return
        if stamp_ns > (self.lower_ns() or 0):
            self._lower_ns = stamp_ns
            self._lower_at_s = self._clock.monotonic()
        self.newest_ns = stamp_ns

    def saw_job(self, job: TrainingJob) -> None:
        """The job's own dates, which widen what may be the present, but prove nothing about log stamps."""
        dates = [date for date in (job.created_at, job.updated_at) if date is not None]
        self._job_ms = max([self._job_ms, *map(_epoch_ms, dates)])

    def lower_ns(self) -> int | None:
        """The server's clock shows at least this; None before the first line."""
        if self.newest_ns is None:
            return None
        passed_s = (self._clock.monotonic() - self._lower_at_s) * DRIFT
        return self._lower_ns + int(passed_s * NS_PER_S)

    def upper_ms(self, margin_s: float) -> int:
        """The server's clock shows less than this if ours is off by ``margin_s`` seconds at most."""
        lower_ms = (self.lower_ns() or 0) // NS_PER_MS
        return max(_epoch_ms(self._clock.now()), self._job_ms, lower_ms) + int(margin_s * MS_PER_S)

    def cautious_ns(self) -> int | None:
        """``lower_ns``, but not after our own present: a line from further on may have a wrong clock."""
        lower_ns = self.lower_ns()
        return None if lower_ns is None else min(lower_ns, _epoch_ms(self._clock.now()) * NS_PER_MS)


def _epoch_ms(moment: datetime) -> int:
    return int(moment.timestamp() * MS_PER_S)
