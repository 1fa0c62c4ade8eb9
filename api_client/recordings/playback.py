"""The clock of an open recording: paused at a moment of the run, or running from it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from api_client.clock import SystemClock


class Playback(SystemClock):
    """A clock from ``begin`` to ``end``, where it stops; at first it is paused at the end.

    ``seek`` moves it to any moment, ``play`` lets it run ``speed`` times as fast as real time. It can be
    the clock of a client: only the current time is that of the recording, waits take real time.
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
        self._elapsed = elapsed
        self._at = self._bounded(self.end if at is None else at)
        self._since_s: float | None = None
        """Monotonic time at which it was started; None while it is paused."""
        self._speed = speed

    def now(self) -> datetime:
        """Return the moment of the run."""
        if self._since_s is None:
            return self._at
        passed_s = (self._elapsed() - self._since_s) * self._speed
        left_s = (self.end - self._at).total_seconds()
        return self.end if passed_s >= left_s else self._at + timedelta(seconds=passed_s)

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
        """True if time passes; at the end it does not."""
        return self._since_s is not None and self.now() < self.end

    def play(self) -> None:
        """Let time pass, from the current moment."""
        if self._since_s is None:
            self._since_s = self._elapsed()

    def pause(self) -> None:
        """Stop at the current moment."""
        self._at, self._since_s = self.now(), None

    def seek(self, moment: datetime) -> None:
        """Go to a moment, or to the nearest end; it keeps playing if it plays."""
        self._at = self._bounded(moment)
        if self._since_s is not None:
            self._since_s = self._elapsed()

    def _bounded(self, moment: datetime) -> datetime:
        return min(max(moment, self.begin), self.end)
