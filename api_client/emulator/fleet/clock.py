"""Conversion between the demo world's script time and the wall clock.

Before the world's epoch the two are the same; after it, script time runs ``speed`` times as fast. Both
are integers of nanoseconds since the Unix epoch. The arithmetic is exact, so that a range of wall time
selects exactly the script moments with timestamps inside it::

    to_wall(script) <= wall   if and only if   script <= to_script(wall)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from api_client.emulator.store.database import Database

NS_PER_S = 1_000_000_000
NS_PER_US = 1_000
SPEED_DENOMINATOR = 1_000
"""Speeds are rounded to a thousandth."""

_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SCHEMA = """
CREATE TABLE IF NOT EXISTS fleet_tempo (
    wall_ns INTEGER PRIMARY KEY,
    script_ns INTEGER NOT NULL,
    speed REAL NOT NULL
);
"""


def to_ns(moment: datetime) -> int:
    """Convert an aware datetime to nanoseconds since the Unix epoch, without rounding."""
    return (moment - _UNIX_EPOCH) // timedelta(microseconds=1) * NS_PER_US


def to_datetime(stamp_ns: int) -> datetime:
    """Convert nanoseconds since the Unix epoch to an aware UTC datetime, truncated to microseconds."""
    return _UNIX_EPOCH + timedelta(microseconds=stamp_ns // NS_PER_US)


@dataclass(frozen=True, slots=True)
class SpeedSegment:
    """From ``wall_ns`` (= ``script_ns``) on, script time runs ``speed`` times as fast as the wall clock."""

    wall_ns: int
    script_ns: int
    speed: Fraction


class SimClock:
    """Maps wall time to script time: the same up to ``epoch``, ``speed`` times as fast after it."""

    def __init__(self, epoch: datetime, speed: float = 1.0) -> None:
        """Start the world at ``epoch``; raise ValueError unless ``speed`` is positive."""
        start_ns = to_ns(epoch)
        self._stretches: tuple[SpeedSegment, ...] = (SpeedSegment(start_ns, start_ns, _exact(speed)),)

    @classmethod
    def _of(cls, stretches: Sequence[SpeedSegment]) -> SimClock:
        sim_clock = cls.__new__(cls)
        sim_clock._stretches = tuple(stretches)
        return sim_clock

    @property
    def epoch_ns(self) -> int:
        """Moment at which the world began; wall and script time are equal there."""
        return self._stretches[0].wall_ns

    @property
    def speed(self) -> float:
        return float(self._stretches[-1].speed)

    def changed(self, now: datetime, speed: float) -> SimClock:
        """Return a clock with the same past and another speed from ``now`` on."""
        now_ns = to_ns(now)
        if _exact(speed) == self._stretches[-1].speed or now_ns <= self._stretches[-1].wall_ns:
            return self
        return SimClock._of((*self._stretches, SpeedSegment(now_ns, self.to_script(now_ns), _exact(speed))))

    def to_script(self, wall_ns: int) -> int:
        """Return the script moment at that wall time, rounded down."""
        found = bisect_right(self._stretches, wall_ns, key=lambda stretch: stretch.wall_ns)
        if found == 0:
            return wall_ns
        stretch = self._stretches[found - 1]
        passed_ns = wall_ns - stretch.wall_ns
        return stretch.script_ns + passed_ns * stretch.speed.numerator // stretch.speed.denominator

    def to_wall(self, script_ns: int) -> int:
        """Return the first wall nanosecond at which the script has reached that moment."""
        found = bisect_left(self._stretches, script_ns, key=lambda stretch: stretch.script_ns)
        if found == 0:
            return script_ns
        stretch = self._stretches[found - 1]
        passed_ns = script_ns - stretch.script_ns
        return stretch.wall_ns - (-passed_ns * stretch.speed.denominator // stretch.speed.numerator)

    def stamp(self, script_ns: int) -> datetime:
        """Return the wall time at which the script reaches that moment, as a datetime."""
        return to_datetime(self.to_wall(script_ns))


def open_sim_clock(database: Database, *, now: datetime, speed: float) -> SimClock:
    """Load the world's clock, continuing at ``speed``; a new world starts ``now``."""
    database.create(_SCHEMA)
    rows = database.rows("SELECT wall_ns, script_ns, speed FROM fleet_tempo ORDER BY wall_ns")
    if rows:
        stored = [SpeedSegment(row["wall_ns"], row["script_ns"], _exact(row["speed"])) for row in rows]
        sim_clock = SimClock._of(stored).changed(now, speed)
    else:
        sim_clock = SimClock(now, speed)
    database.write_many(
        "INSERT OR IGNORE INTO fleet_tempo (wall_ns, script_ns, speed) VALUES (?, ?, ?)",
        [(each.wall_ns, each.script_ns, float(each.speed)) for each in sim_clock._stretches],
    )
    return sim_clock


def _exact(speed: float) -> Fraction:
    exact = Fraction(speed).limit_denominator(SPEED_DENOMINATOR)
    if exact <= 0:
        raise ValueError(f"the demo speed must be above zero, not {speed}")
    return exact
