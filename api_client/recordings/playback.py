"""The clock of a recording that is open: it stands at a moment of the run, or moves on from it."""

from __future__ import annotations

import asyncio
import math
import struct
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from mmap import mmap

from api_client.recordings.stamps import EPOCH

_STATE = struct.Struct("<qdd")
MEMORY_BYTES = _STATE.size


class Playback:
    """A clock between ``begin`` and ``end``, where it stops; it is paused at the end by default.

    ``seek`` moves it to any moment, ``play`` lets it run ``speed`` times as fast as real time. It can be
    the clock of a client: only the current time is that of the recording, waits take real time.

    ``memory`` is that of a clock in another process, from ``share``.
    """

    def __init__(
        self,
        begin: datetime,
        end: datetime,
        *,
        at: datetime | None = None,
        speed: float = 1.0,
        elapsed: Callable[[], float] = time.monotonic,
        memory: mmap | None = None,
    ) -> None:
        self.begin = begin
        self.end = max(begin, end)
        self._elapsed = elapsed
        self._memory: bytearray | mmap = bytearray(MEMORY_BYTES)
        self._set(self._bounded(self.end if at is None else at), None, speed)
        if memory is not None:
            self._memory = memory

    def share(self, memory: mmap) -> None:
        """Continue in memory of ``MEMORY_BYTES`` that other processes have, too."""
        memory[:] = bytes(self._memory)
        self._memory = memory

    @property
    def _state(self) -> tuple[datetime, float | None, float]:
        """The moment, the time since when it moves on, and the speed."""
        at_us, since_s, speed = _STATE.unpack_from(self._memory)
        return EPOCH + timedelta(microseconds=at_us), None if math.isnan(since_s) else since_s, speed

    def _set(self, at: datetime, since_s: float | None, speed: float) -> None:
        at_us = (at - EPOCH) // timedelta(microseconds=1)
        _STATE.pack_into(self._memory, 0, at_us, math.nan if since_s is None else since_s, speed)

    def now(self) -> datetime:
        """Return the moment of the run."""
        at, since_s, speed = self._state
        if since_s is None:
            return at
        passed_s = (self._elapsed() - since_s) * speed
        left_s = (self.end - at).total_seconds()
        return self.end if passed_s >= left_s else at + timedelta(seconds=passed_s)

    @property
    def speed(self) -> float:
        """Seconds of the run per second."""
        return self._state[2]

    @speed.setter
    def speed(self, speed: float) -> None:
        if not speed > 0:
            raise ValueError(f"the speed must be above zero, not {speed}")
        self.seek(self.now())
        self._set(*self._state[:2], speed)

    @property
    def is_playing(self) -> bool:
        """True if time passes; at the end it does not."""
        return self._state[1] is not None and self.now() < self.end

    def play(self) -> None:
        """Let time pass, from the current moment."""
        at, since_s, speed = self._state
        self._set(at, self._elapsed() if since_s is None else since_s, speed)

    def pause(self) -> None:
        """Stop at the current moment."""
        self._set(self.now(), None, self.speed)

    def seek(self, moment: datetime) -> None:
        """Go to a moment, or to the nearest end; it keeps playing if it plays."""
        _, since_s, speed = self._state
        self._set(self._bounded(moment), None if since_s is None else self._elapsed(), speed)

    def _bounded(self, moment: datetime) -> datetime:
        return min(max(moment, self.begin), self.end)

    def monotonic(self) -> float:
        """Return seconds on a monotonic clock, for measuring intervals."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds of real time."""
        await asyncio.sleep(seconds)
