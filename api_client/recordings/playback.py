"""The clock of an open recording: paused at a time of the run, or running from it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from api_client.clock import SystemClock


class Playback(SystemClock):
    """A clock from ``begin`` to ``end``, where it stops; initially paused at the end.

    ``seek`` sets its time, ``play`` lets it run ``speed`` times as fast as real time. It can be the clock of
    a client: it only replaces the current time; sleeps take real time.
    """

    def __init__(
        self,
        begin: datetime,
        end: datetime,
        *,
        at: datetime | None = None,
        speed: float = 1.0,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self.begin = begin
        self.end = max(begin, end)
        self._monotonic = elapsed
        self._time_at_start = self._clamp(self.end if at is None else at)
        self._started_s: float | None = None
        """Monotonic time at which the clock was started; None while it is paused."""
        self._speed = speed

    def now(self) -> datetime:
        """Return the current time within the run."""
        if self._started_s is None:
            return self._time_at_start
        elapsed_s = (self._monotonic() - self._started_s) * self._speed
        remaining_s = (self.end - self._time_at_start).total_seconds()
        return self.end if elapsed_s >= remaining_s else self._time_at_start + timedelta(seconds=elapsed_s)

    @property
    def speed(self) -> float:
        """Seconds of the run per second."""
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        if not speed > 0:
            raise ValueError(f"the speed must be above zero, not {speed}")
        self.seek(self.now())
        self._speed = speed

    @property
    def is_playing(self) -> bool:
        """True while the clock runs; False at the end."""
        return self._started_s is not None and self.now() < self.end

    def play(self) -> None:
        """Let the clock run from its current time."""
        if self._started_s is None:
            self._started_s = self._monotonic()

    def pause(self) -> None:
        """Stop the clock at its current time."""
        self._time_at_start, self._started_s = self.now(), None

    def seek(self, moment: datetime) -> None:
        """Set the time, limited to the run; a running clock keeps running."""
        self._time_at_start = self._clamp(moment)
        if self._started_s is not None:
            self._started_s = self._monotonic()

    def _clamp(self, moment: datetime) -> datetime:
        return min(max(moment, self.begin), self.end)
