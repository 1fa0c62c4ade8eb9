"""Builds successive Home snapshots with work proportional to the number of unfinished jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from heapq import heapify, heapreplace
from itertools import takewhile
from operator import attrgetter

from api_client.models import TrainingJob, TrainingProject
from tui.analysis.fleet.snapshot import UNSEEN, FleetSnapshot, Glance, JobRow, ProjectRow, job_row, older_row
from tui.text.sanitize import inert

STALE_SHARE, LONGEST_STALE_S = 0.02, 600.0
"""Maximum lag of an ended job's displayed age: this fraction of it, but at most this many seconds."""
_STALE_STEPS = 61
_RANK = attrgetter("rank")


class FleetFold:
    """Builds successive snapshots without rebuilding ended jobs, the bulk of a large account, each time.

    ``warm`` takes all jobs; after that ``fold`` receives only unfinished jobs and those that have changed
    since. Only the age of an ended job changes: its row is rebuilt when the age is off by a fiftieth, or
    by ``LONGEST_STALE_S``. Rebuilding ten thousand jobs would block the screen for a fifth of a second.
    """

    def __init__(self) -> None:
        self._ended = _EndedRows((), {}, {})
        self._projects: dict[str, tuple[TrainingProject, ProjectRow]] = {}

    def warm(self, jobs: Sequence[TrainingJob], glances: Mapping[str, Glance], now: datetime) -> None:
        """Build the rows of all ended jobs, and drop those that are gone; safe to run in a thread."""
        known = self._ended.known
        entries: dict[str, _Entry] = {}
        for job in jobs:
            if job.is_finished:
                glance = glances.get(job.id, UNSEEN)
                before = known.get(job.id)
                same = before is not None and before[0] is job and before[1] is glance
                entries[job.id] = before if before and same else (job, glance, job_row(job, glance, now))
        rows = sorted((row for _, _, row in entries.values()), key=_RANK)
        self._ended = _EndedRows(rows, entries, {row.id: place for place, row in enumerate(rows)}, now)

    def fold(
        self,
        projects: Iterable[TrainingProject],
        jobs: Iterable[TrainingJob],
        glances: Mapping[str, Glance],
        now: datetime,
        prices: Mapping[str, float] | None = None,
    ) -> FleetSnapshot:
        """Build a snapshot from both lists; running jobs first, then the newest.

        ``jobs`` are added to the ended ones known since ``warm``, or replace them.
        """
        rows = [job_row(job, glances.get(job.id, UNSEEN), now) for job in jobs]
        rows += self._ended.at(now, without=[row.id for row in rows])
        rows.sort(key=_RANK)
        return FleetSnapshot(self._project_rows(projects, rows), tuple(rows), now, prices or {})

    def _project_rows(
        self, projects: Iterable[TrainingProject], rows: Sequence[JobRow]
    ) -> tuple[ProjectRow, ...]:
        total = Counter([row.project_id for row in rows])
        running = Counter([row.project_id for row in takewhile(lambda row: row.running, rows)])
        before, self._projects = self._projects, {}
        for project in projects:
            jobs, live = total[project.id], running[project.id]
            known = before.get(project.id)
            if known is None or known[0] is not project or (known[1].jobs, known[1].running) != (jobs, live):
                name, team = inert(project.name) or project.id, inert(project.team_name or "")
                known = (project, ProjectRow(project.id, name, team, jobs, live))
            self._projects[project.id] = known
        found = [row for _, row in self._projects.values()]
        return tuple(sorted(found, key=lambda project: (-project.running, project.name.lower())))


_Entry = tuple[TrainingJob, Glance, JobRow]


class _EndedRows:
    """The rows of ended jobs in order, with a queue of when each is next due for a rebuild."""

    def __init__(
        self,
        rows: Sequence[JobRow],
        known: Mapping[str, _Entry],
        places: Mapping[str, int],
        now: datetime | None = None,
    ) -> None:
        self.known = known
        self._rows = list(rows)
        self._places = places
        now_s = now.timestamp() if now is not None else 0.0
        self._due = [(now_s + _good_for_s(row, place), place) for place, row in enumerate(rows)]
        heapify(self._due)

    def at(self, now: datetime, *, without: Iterable[str]) -> list[JobRow]:
        now_s = now.timestamp()
        while self._due and self._due[0][0] <= now_s:
            place = self._due[0][1]
            row = self._rows[place] = older_row(self._rows[place], now)
            heapreplace(self._due, (now_s + max(1.0, _good_for_s(row, place)), place))
        left_out = {self._places[job_id] for job_id in without if job_id in self._places}
        if left_out:
            return [row for place, row in enumerate(self._rows) if place not in left_out]
        return self._rows


def _good_for_s(row: JobRow, place: int) -> float:
    """Return how long a row stays valid, spread out so that rows built together expire at different times."""
    spread = 0.5 + 0.5 * (place % _STALE_STEPS) / _STALE_STEPS
    return min(LONGEST_STALE_S, row.age_s * STALE_SHARE) * spread


def fold_fleet(
    projects: Iterable[TrainingProject],
    jobs: Iterable[TrainingJob],
    glances: Mapping[str, Glance],
    now: datetime,
    prices: Mapping[str, float] | None = None,
) -> FleetSnapshot:
    return FleetFold().fold(projects, jobs, glances, now, prices)
