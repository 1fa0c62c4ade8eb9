"""Demo worlds at a moment of the test's choosing."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from api_client.clock import epoch_ns
from api_client.emulator.backend import Direction, LogQuery
from api_client.emulator.fleet.backend import FleetBackend
from api_client.emulator.fleet.clock import open_sim_clock
from api_client.emulator.fleet.world import demo_id
from api_client.emulator.store.database import Database
from api_client.models import LogRecord, TrainingJob

EPOCH = datetime(2026, 3, 4, 9, 30, 0, 123456, tzinfo=UTC)
NS_PER_S = 1_000_000_000
MINUTE_NS = 60 * NS_PER_S


@dataclass
class World:
    """A fleet whose clock stands still until it is moved."""

    path: Path
    speed: float = 1.0
    now: datetime = EPOCH
    fleet: FleetBackend = field(init=False)
    database: Database = field(init=False)

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        self.database = Database(self.path)
        sim_clock = open_sim_clock(self.database, now=self.now, speed=self.speed)
        self.fleet = FleetBackend(self.database, sim_clock=sim_clock, now=lambda: self.now)

    def reopen(self, speed: float = 1.0) -> None:
        self.database.close()
        self.speed = speed
        self.open()

    def after(self, seconds: float) -> World:
        self.now = EPOCH + timedelta(seconds=seconds)
        return self

    @property
    def now_ns(self) -> int:
        return epoch_ns(self.now)

    def named(self, name: str) -> TrainingJob:
        return self.fleet.job(demo_id("job", name))

    def lines(
        self,
        name: str,
        start_ns: int = 0,
        end_ns: int | None = None,
        *,
        direction: Direction = "asc",
        limit: int = 10**6,
        levels: frozenset[str] | None = None,
    ) -> list[LogRecord]:
        end_ns = self.now_ns + MINUTE_NS if end_ns is None else end_ns
        return self.fleet.logs(self.named(name).id, LogQuery(start_ns, end_ns, direction, limit, levels))
