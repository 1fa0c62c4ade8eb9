"""Conversion between the demo world's script time and the wall clock.

Both are nanoseconds since the Unix epoch. They are equal until the user sets a speed; from then on, script
time runs ``speed`` times as fast. The integer arithmetic is exact, so that a range of wall time selects
exactly the script times with timestamps inside it::

    to_wall(script) <= wall   if and only if   script <= to_script(wall)
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from api_client.clock import epoch_ns, moment_at
from api_client.emulator.store.database import Database, Records

PER_MILLE = 1_000
"""Speeds are rounded to 1/1000, so that conversions are exact."""


@dataclass(frozen=True, slots=True)
class SimClock:
    """A clock whose script time is ``script_ns`` at ``wall_ns``, and then runs at ``speed`` × wall time.

    ``epoch_ns`` is the script time at which the world began.
    """

    epoch_ns: int
    wall_ns: int
    script_ns: int
    speed: float

    def __post_init__(self) -> None:
        if self._speed_per_mille <= 0:
            raise ValueError(f"the demo speed must be above zero, not {self.speed}")

    @classmethod
    def starting(cls, epoch: datetime, speed: float = 1.0) -> SimClock:
        return cls(epoch_ns(epoch), epoch_ns(epoch), epoch_ns(epoch), speed)

    def changed(self, now: datetime, speed: float) -> SimClock:
        """Return a clock that shows the same script time now and continues at another speed."""
        now_ns = epoch_ns(now)
        return self if speed == self.speed else SimClock(self.epoch_ns, now_ns, self.to_script(now_ns), speed)

    def to_script(self, wall_ns: int) -> int:
        """Return the script time at a wall time, rounded down."""
        elapsed_ns = wall_ns - self.wall_ns
        return self.script_ns + (
            elapsed_ns if elapsed_ns <= 0 else elapsed_ns * self._speed_per_mille // PER_MILLE
        )

    def to_wall(self, script_ns: int) -> int:
        """Return the first wall time at which the script has reached a script time."""
        elapsed_ns = script_ns - self.script_ns
        return self.wall_ns + (
            elapsed_ns if elapsed_ns <= 0 else -(-elapsed_ns * PER_MILLE // self._speed_per_mille)
        )

    def stamp(self, script_ns: int) -> datetime:
        """Return the wall time at which the script reaches a script time (see ``to_wall``), as a datetime."""
        return moment_at(self.to_wall(script_ns))

    @property
    def _speed_per_mille(self) -> int:
        return round(self.speed * PER_MILLE)


def open_sim_clock(database: Database, *, now: datetime, speed: float) -> SimClock:
    """Load the world's clock, continuing at ``speed``; a new world starts ``now``."""
    clocks = Records(database, "fleet_clock", SimClock)
    stored_clock = clocks.get("clock")
    clock = SimClock.starting(now, speed) if stored_clock is None else stored_clock.changed(now, speed)
    return clocks.put("clock", clock)
