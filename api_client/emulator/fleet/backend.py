"""The scripted fleet as a backend of the emulator: a demo world that answers what the routes ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from api_client.clock import SystemClock
from api_client.emulator.backend import LogQuery, StoredFile
from api_client.emulator.fleet.cache_trees import cached_files
from api_client.emulator.fleet.clock import NS_PER_S, Tempo, to_ns
from api_client.emulator.fleet.job_store import Roster, RosterEntry
from api_client.emulator.fleet.load_test_jobs import crowd_jobs, crowd_projects
from api_client.emulator.fleet.log_lines import window
from api_client.emulator.fleet.scripted_job import SYNCING, ScriptedJob
from api_client.emulator.fleet.training import mix
from api_client.emulator.fleet.world import PLANS, PROJECTS, TEAM_NAME, demo_id
from api_client.emulator.store.database import Database
from api_client.emulator.world_size import WorldSize
from api_client.models import (
    CachedFile,
    Checkpoint,
    JobMetrics,
    LogRecord,
    QueueEvent,
    TrainingJob,
    TrainingProject,
)

_SEED_BITS = 31
NO_MORE = WorldSize()
LAST_LINES_NS = 3_600 * NS_PER_S
"""No scripted job says anything that long after its end."""


class FleetBackend:
    """A team's worth of scripted jobs on a clock of their own; see ``Backend`` for the methods.

    Only what users do is stored. Logs, metrics and checkpoints are functions of the script and the time:
    asked twice, they answer the same, and nothing they answer is stamped in the future.
    """

    def __init__(
        self,
        database: Database,
        *,
        tempo: Tempo,
        now: Callable[[], datetime] | None = None,
        size: WorldSize = NO_MORE,
    ) -> None:
        """Open the world kept in ``database``, or begin it; ``now`` tells the wall time.

        ``size`` says what more there is than the script has.
        """
        self._cache_files = size.cache_files
        self._tempo = tempo
        self._now = now or SystemClock().now
        plans = (*PLANS, *crowd_jobs(size))
        self._plans = {plan.key: plan for plan in plans}
        self._projects = {project.id: project for project in (*PROJECTS, *crowd_projects(size))}
        self._listed_files: tuple[RosterEntry, list[StoredFile]] | None = None
        self._ended: dict[str, tuple[RosterEntry, TrainingJob, int]] = {}
        initial = [
            RosterEntry(
                job_id=demo_id("job", plan.key),
                plan=plan.key,
                seed=mix(number) >> (64 - _SEED_BITS),
                created_ns=tempo.epoch_ns + int(plan.born_s * NS_PER_S),
                again=False,
                priority=plan.priority,
                availability=plan.availability,
            )
            for number, plan in enumerate(plans)
        ]
        self._roster = Roster(database, initial)

    def demo_projects(self) -> list[TrainingProject]:
        """The projects that the demo jobs belong to; whoever keeps projects adds them to its own."""
        epoch_ns = self._tempo.epoch_ns
        projects = []
        for plan in self._projects.values():
            created = self._tempo.stamp(epoch_ns + int(plan.born_s * NS_PER_S))
            projects.append(
                TrainingProject(
                    id=plan.id, name=plan.name, team_name=TEAM_NAME, created_at=created, updated_at=created
                )
            )
        return projects

    def owns(self, job_id: str) -> bool:
        """See ``Backend``."""
        entry = self._roster.find(job_id)
        return entry is not None and entry.plan in self._plans

    def jobs(self) -> Sequence[TrainingJob]:
        """See ``Backend``."""
        now_ns = self._now_ns()
        # A world that was once served with further jobs may be served without them.
        known = (entry for entry in self._roster.all() if entry.plan in self._plans)
        return [self._record(entry, now_ns) for entry in known]

    def job(self, job_id: str) -> TrainingJob:
        """See ``Backend``."""
        return self._record(self._entry(job_id), self._now_ns())

    def logs(self, job_id: str, wanted: LogQuery) -> list[LogRecord]:
        """See ``Backend``."""
        now_ns = self._now_ns()
        tempo = self._tempo
        lines = window(
            self._scripted(self._entry(job_id), now_ns).sources(),
            start_ns=tempo.to_script(wanted.start_ns - 1) + 1,
            end_ns=min(tempo.to_script(wanted.end_ns - 1), now_ns) + 1,
            direction=wanted.direction,
            limit=wanted.limit,
            levels=wanted.levels,
        )
        return [
            LogRecord(
                timestamp=str(tempo.to_wall(line.stamp_ns)),
                message=line.text,
                replica=line.replica,
                request_id=None,
                level=line.level,
            )
            for line in lines
        ]

    def log_is_complete(self, job_id: str) -> bool:
        """See ``Backend``."""
        now_ns = self._now_ns()
        job = self._scripted(self._entry(job_id), now_ns)
        return job.is_finished and all(
            source.count_before(now_ns + 1) == source.count_before(now_ns + LAST_LINES_NS)
            for source in job.sources()
        )

    def metrics(
        self, job_id: str, *, start_s: float | None, end_s: float | None, step_s: int | None
    ) -> JobMetrics:
        """See ``Backend``."""
        return self._find(job_id).metrics(start_s, end_s, step_s)

    def checkpoints(self, job_id: str) -> list[Checkpoint]:
        """See ``Backend``."""
        return self._find(job_id).checkpoints()

    def checkpoint_files(self, job_id: str) -> list[StoredFile]:
        """See ``Backend``; the bytes are told by ``file_bytes``."""
        entry, now_ns = self._entry(job_id), self._now_ns()
        listed = self._listed_files
        if listed is not None and listed[0] is entry:
            return listed[1]
        job = self._scripted(entry, now_ns)
        files = list(job.checkpoint_files())
        if job.is_finished:  # they are paged through: tens of thousands are not listed anew for each page
            self._listed_files = (entry, files)
        return files

    def events(self, job_id: str) -> list[QueueEvent]:
        """See ``Backend``."""
        job = self._find(job_id)
        name = self._plans[self._entry(job_id).plan].name
        return [phase.event(job_id, name, self._tempo.stamp(phase.at_ns)) for phase in job.phases]

    def cache_files(self, project_id: str) -> list[CachedFile] | None:
        """See ``Backend``."""
        project = self._projects.get(project_id)
        return (
            None if project is None else cached_files(project.name, self._tempo.epoch_ns, self._cache_files)
        )

    async def stop(self, job_id: str) -> TrainingJob:
        """See ``Backend``."""
        entry, now_ns = self._entry(job_id), self._now_ns()
        if not self._scripted(entry, now_ns).is_finished:
            entry = self._roster.stop(entry, now_ns)
        return self._scripted(entry, now_ns).record()

    async def recreate(self, job_id: str, new_job_id: str) -> TrainingJob:
        """See ``Backend``."""
        entry, now_ns = self._entry(job_id), self._now_ns()
        again = RosterEntry(
            job_id=new_job_id,
            plan=entry.plan,
            seed=mix(entry.seed, now_ns) >> (64 - _SEED_BITS),
            created_ns=now_ns,
            again=True,
            priority=entry.priority,
            availability=entry.availability,
        )
        self._roster.add(again)
        return self._scripted(again, now_ns).record()

    async def delete(self, job_id: str) -> None:
        """See ``Backend``."""
        self._roster.delete(self._entry(job_id))

    async def update(self, job_id: str, changes: Mapping[str, Any]) -> TrainingJob:
        """See ``Backend``."""
        entry = self._entry(job_id)
        entry = self._roster.change(
            entry,
            priority=changes.get("priority", entry.priority),
            availability=changes.get("availability_model", entry.availability),
        )
        return self._scripted(entry, self._now_ns()).record()

    def _record(self, entry: RosterEntry, now_ns: int) -> TrainingJob:
        """The job as it is now; one that has ended for good is told once, not for every list."""
        told = self._ended.get(entry.job_id)
        if told is not None and told[0] is entry and now_ns >= told[2]:  # clocks are set back now and then
            return told[1]
        job = self._scripted(entry, now_ns)
        record = job.record()
        if job.is_finished and record.checkpoint_sync_status != SYNCING:
            self._ended[entry.job_id] = (entry, record, now_ns)
        return record

    def _now_ns(self) -> int:
        return self._tempo.to_script(to_ns(self._now()))

    def _entry(self, job_id: str) -> RosterEntry:
        entry = self._roster.find(job_id)
        if entry is None:
            raise LookupError(f"no scripted job {job_id}")
        return entry

    def _find(self, job_id: str) -> ScriptedJob:
        return self._scripted(self._entry(job_id), self._now_ns())

    def _scripted(self, entry: RosterEntry, now_ns: int) -> ScriptedJob:
        return ScriptedJob(entry, self._plans[entry.plan], self._tempo, now_ns)
