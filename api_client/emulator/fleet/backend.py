"""The emulator backend for the simulated fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from api_client.clock import SystemClock
from api_client.emulator.backend import LogQuery, StoredFile
from api_client.emulator.fleet.cache_trees import cached_files
from api_client.emulator.fleet.clock import NS_PER_S, SimClock
from api_client.emulator.fleet.log_lines import window
from api_client.emulator.fleet.sim_job import SYNCING, SimJob, SimJobRecord
from api_client.emulator.fleet.training import mix
from api_client.emulator.fleet.world import DEMO_SCRIPT, DemoScript, demo_id
from api_client.emulator.formats import epoch_ns
from api_client.emulator.store.database import Database, Records
from api_client.emulator.store.stores import StoredProject
from api_client.models import CachedFile, Checkpoint, JobMetrics, LogRecord, QueueEvent, TrainingJob

_SEED_BITS = 31
LAST_LINES_NS = 3_600 * NS_PER_S
"""No simulated job logs anything this long after its end."""


class FleetBackend:
    """Simulated jobs on a clock of their own; implements ``Backend``.

    Only user actions are stored. Logs, metrics and checkpoints are functions of the script and the time:
    the same request gets the same answer, and no answer has a timestamp in the future.
    """

    def __init__(
        self,
        database: Database,
        *,
        sim_clock: SimClock,
        now: Callable[[], datetime] | None = None,
        script: DemoScript = DEMO_SCRIPT,
    ) -> None:
        self._script = script
        self._sim_clock = sim_clock
        self._now = now or SystemClock().now
        self._plans = {plan.name: plan for plan in script.plans}
        self._projects = {project.id: project for project in script.projects}
        self._ended: dict[str, tuple[SimJobRecord, TrainingJob, int]] = {}
        self._jobs = Records(database, "fleet_jobs", SimJobRecord)
        with database.transaction():
            for number, plan in enumerate(script.plans):
                # A job that the world has already stays as it is; a deleted one does not come back.
                if (job_id := demo_id("job", plan.name)) not in self._jobs:
                    seed, created_ns = mix(number) >> (64 - _SEED_BITS), sim_clock.epoch_ns + plan.born_ns
                    model = "spot" if plan.is_spot else "dedicated"
                    job = SimJobRecord(job_id, plan.name, seed, created_ns, False, plan.priority, model)
                    self._jobs.put(job_id, job)

    def stored_projects(self, team_id: str) -> Iterator[StoredProject]:
        """Yield the projects of the demo jobs, for the caller to add to its own projects."""
        for plan in self._projects.values():
            born = self._sim_clock.stamp(self._sim_clock.epoch_ns - plan.age_ns)
            yield StoredProject(plan.id, plan.name, team_id, born, born)

    def owns(self, job_id: str) -> bool:
        entry = self._jobs.get(job_id)
        # A world created with another script may have jobs that this one lacks.
        return entry is not None and not entry.deleted and entry.plan in self._plans

    def jobs(self) -> Sequence[TrainingJob]:
        return [self.job(entry.job_id) for entry in self._jobs.all() if self.owns(entry.job_id)]

    def job(self, job_id: str) -> TrainingJob:
        """Return the job's current state, cached once nothing about it can change any more."""
        entry, now_ns = self._entry(job_id), self._now_ns()
        ended = self._ended.get(job_id)
        if ended is not None and ended[0] is entry and now_ns >= ended[2]:  # the clock may have been set back
            return ended[1]
        job = self._simulated(job_id)
        record = job.record()
        if job.is_finished and record.checkpoint_sync_status != SYNCING:
            self._ended[job_id] = (entry, record, now_ns)
        return record

    def spec(self, job_id: str) -> Mapping[str, Any]:
        return {}

    def logs(self, job_id: str, wanted: LogQuery) -> list[LogRecord]:
        sim_clock = self._sim_clock
        lines = window(
            self._simulated(job_id).sources(),
            start_ns=sim_clock.to_script(wanted.start_ns - 1) + 1,
            end_ns=min(sim_clock.to_script(wanted.end_ns - 1), self._now_ns()) + 1,
            newest_first=wanted.direction == "desc",
            limit=wanted.limit,
            levels=wanted.levels,
        )
        return [
            LogRecord(
                timestamp=str(sim_clock.to_wall(stamp_ns)),
                message=source.text(index),
                replica=source.replica,
                request_id=None,
                level=source.level,
            )
            for stamp_ns, source, index in lines
        ]

    def log_is_complete(self, job_id: str) -> bool:
        now_ns, job = self._now_ns(), self._simulated(job_id)
        return job.is_finished and all(
            source.count_before(now_ns + 1) == source.count_before(now_ns + LAST_LINES_NS)
            for source in job.sources()
        )

    def metrics(
        self, job_id: str, *, start_s: float | None, end_s: float | None, step_s: int | None
    ) -> JobMetrics:
        return self._simulated(job_id).metrics(start_s, end_s, step_s)

    def checkpoints(self, job_id: str) -> list[Checkpoint]:
        return self._simulated(job_id).checkpoints()

    def checkpoint_files(self, job_id: str) -> list[StoredFile]:
        return self._simulated(job_id).checkpoint_files()

    def events(self, job_id: str) -> list[QueueEvent]:
        return self._simulated(job_id).events()

    def cache_files(self, project_id: str) -> list[CachedFile] | None:
        project = self._projects.get(project_id)
        tree = None if project is None else self._script.caches.get(project.name)
        return cached_files(tree, self._sim_clock.epoch_ns)

    async def stop(self, job_id: str) -> TrainingJob:
        if not self._simulated(job_id).is_finished:
            self._jobs.put(job_id, replace(self._entry(job_id), stopped_ns=self._now_ns()))
        return self.job(job_id)

    async def recreate(self, job_id: str, new_job_id: str) -> TrainingJob:
        entry, now_ns = self._entry(job_id), self._now_ns()
        seed = mix(entry.seed, now_ns) >> (64 - _SEED_BITS)
        again = replace(entry, job_id=new_job_id, seed=seed, created_ns=now_ns, again=True, stopped_ns=None)
        self._jobs.put(new_job_id, again)
        return self.job(new_job_id)

    async def delete(self, job_id: str) -> None:
        self._jobs.put(job_id, replace(self._entry(job_id), deleted=True))

    async def update(self, job_id: str, changes: Mapping[str, Any]) -> TrainingJob:
        entry = self._entry(job_id)
        priority = changes.get("priority", entry.priority)
        availability = changes.get("availability_model", entry.availability)
        self._jobs.put(job_id, replace(entry, priority=priority, availability=availability))
        return self.job(job_id)

    def _now_ns(self) -> int:
        return self._sim_clock.to_script(epoch_ns(self._now()))

    def _entry(self, job_id: str) -> SimJobRecord:
        entry = self._jobs.get(job_id)
        if entry is None or not self.owns(job_id):
            raise LookupError(f"no simulated job {job_id}")
        return entry

    def _simulated(self, job_id: str) -> SimJob:
        entry = self._entry(job_id)
        return SimJob(entry, self._plans[entry.plan], self._sim_clock, self._now_ns())
