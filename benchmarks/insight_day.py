"""Every job of the demo world watched from its beginning: what is found, and how soon.

    python benchmarks/insight_day.py [HOURS] [LOOK_S] [NAME …]

Time is simulated: each job is looked at every LOOK_S seconds from the moment it was submitted on, as the job
screen does it, for HOURS or until it ends. Prints for each job what was found, when the finding says that it
began, and how long after that it was first told. A healthy job must print nothing. A day of all jobs at
30 s takes an hour; without arguments six hours of each are looked at every two minutes.
"""

# ruff: noqa: T201 (what a benchmark prints is its product)

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from api_client.emulator.backend import LogQuery
from api_client.emulator.fleet.backend import FleetBackend
from api_client.emulator.fleet.clock import SimClock
from api_client.emulator.store.database import Database
from api_client.models import JobStatus, QueueContext
from api_client.models.logs import LogLine
from tui.analysis.health.judge import health
from tui.analysis.health.registry import KINDS
from tui.analysis.node_metrics import MetricsFold
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.readers.health_metrics import HEALTH_STEP_S as HEALTH_METRICS_STEP_S
from tui.readers.health_metrics import health_metrics_fold

EPOCH = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
DEFAULT_HOURS, DEFAULT_LOOK_S = 6.0, 120.0
LATE_S = 120.0


@dataclass
class Watcher:
    """Follows one job on a clock of its own."""

    backend: FleetBackend
    job_id: str
    progress: ProgressFold = field(default_factory=ProgressFold)
    metrics: MetricsFold | None = None
    read_until: datetime | None = None
    found: tuple[HealthFinding, ...] = ()

    def look(self, now: datetime) -> tuple[HealthFinding, ...]:
        """What is found now; the first look reads from the job's beginning."""
        job = self.backend.job(self.job_id)
        since = self.read_until or (job.created_at or now) - timedelta(minutes=5)
        wanted = LogQuery(
            start_ns=round(since.timestamp() * 1e9),
            end_ns=round(now.timestamp() * 1e9),
            direction="asc",
            limit=10**7,
            levels=None,
        )
        lines = self.backend.logs(job.id, wanted)
        self.progress.add(
            LogLine(int(line["timestamp"]), line["message"], line["replica"], line["level"]) for line in lines
        )
        self.metrics = self.metrics or health_metrics_fold(job)
        self.metrics.fold(
            self.backend.metrics(
                job.id,
                start_s=since.timestamp() - LATE_S,
                end_s=now.timestamp(),
                step_s=HEALTH_METRICS_STEP_S,
            )
        )
        self.read_until = now
        run = RunSnapshot(
            job,
            now,
            now,
            progress=self.progress.snapshot(),
            health_metrics=self.metrics.snapshot,
            checkpoints=tuple(self.backend.checkpoints(job.id)),
            queue=QueueContext(target_job_id=job.id, events=self.backend.events(job.id)),
            history_known=True,
            log_read=True,
        )
        self.found = health(run, previous=self.found)
        return self.found


class Clock:
    """The moment that a backend takes for now."""

    def __init__(self) -> None:
        self.now = EPOCH


def watch(backend: FleetBackend, clock: Clock, job_id: str, hours: float, look_s: float) -> int:
    """Watch one job; prints its findings. Returns how many looks there were at the running job."""
    clock.now = EPOCH
    job = backend.job(job_id)
    watcher, looks = Watcher(backend, job_id), 0
    first_told: dict[str, tuple[datetime, HealthFinding]] = {}
    gone: dict[str, datetime] = {}
    clock.now = begin = job.created_at or EPOCH
    end = clock.now + timedelta(hours=hours)
    while clock.now < end and not backend.job(job_id).is_finished:
        looks += backend.job(job_id).current_status == JobStatus.RUNNING
        keys = set()
        for found in watcher.look(clock.now):
            if found.kind != KINDS["queued"]:
                first_told.setdefault(found.key, (clock.now, found))
                keys.add(found.key)
        for key in first_told.keys() - keys:
            gone.setdefault(key, clock.now)
        clock.now += timedelta(seconds=look_s)
    for key, (at, found) in first_told.items():
        began = found.since or at
        over = f", gone after {gone[key] - at}" if key in gone else ""
        print(
            f"  {job.name}: {key} {(at - begin)} into its life, {(at - began).total_seconds():.0f} s after it"
            f" began{over}: {found.text}"
        )
    return looks


def main() -> None:
    """All jobs of the demo world that run or are about to, or those named."""
    hours = float(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_HOURS
    look_s = float(sys.argv[2]) if len(sys.argv) > 2 else DEFAULT_LOOK_S
    named = set(sys.argv[3:])
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock()
        backend = FleetBackend(
            Database(Path(folder) / "state.db"), sim_clock=SimClock.starting(EPOCH), now=lambda: clock.now
        )
        for job in [job for job in backend.jobs() if not job.is_finished]:
            if named and job.name not in named:
                continue
            start = time.perf_counter()
            looks = watch(backend, clock, job.id, hours, look_s)
            print(f"{job.name}: {looks} looks in {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
