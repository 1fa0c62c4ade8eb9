"""Store the running jobs' recently read health in a file, for commands that must be fast.

Everything that watches all jobs (the dashboard, ``top``, ``--health``) updates this file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from tui.settings.remembered import State, change_state, read_state, state_path

FILE_NAME = "health.json"
MAX_AGE_S = 900.0
"""Health that was read longer ago is ignored."""


@dataclass(frozen=True)
class StoredHealth(State):
    """The health of a job, read at ``at_s`` (epoch seconds).

    ``sign`` is the symbol of the job's worst finding, "" without findings; ``cells`` are the texts and tones
    of the health columns in a list of jobs, by column ID.
    """

    at_s: float = 0.0
    sign: str = ""
    cells: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


@dataclass(frozen=True)
class _HealthFile(State):
    jobs: dict[str, StoredHealth] = field(default_factory=dict)
    """Health by ``SERVER JOB_ID``, since different emulators have jobs with the same ID."""


def stored_health(server: str, job_ids: Collection[str], now_s: float) -> dict[str, StoredHealth]:
    """Return the stored health of jobs by ID, if recent; ``server`` is the address of their server."""
    in_file = read_state(state_path(FILE_NAME), _HealthFile).jobs
    health_by_job = {job_id: in_file.get(f"{server} {job_id}", StoredHealth()) for job_id in job_ids}
    return {job_id: health for job_id, health in health_by_job.items() if _is_recent(health, now_s)}


def store_health(server: str, jobs: Mapping[str, StoredHealth], now_s: float) -> None:
    """Store the health of jobs, unless newer health is stored or the file cannot be written at once."""
    new_health = {f"{server} {job_id}": health for job_id, health in jobs.items()}

    def merged(before: _HealthFile) -> _HealthFile:
        recent = {key: health for key, health in before.jobs.items() if _is_recent(health, now_s)}
        shared_keys = recent.keys() & new_health
        newer = {key: recent[key] for key in shared_keys if recent[key].at_s > new_health[key].at_s}
        return _HealthFile(recent | new_health | newer)

    with suppress(OSError):
        change_state(state_path(FILE_NAME), _HealthFile, merged, wait_s=0.0)


def _is_recent(health: StoredHealth, now_s: float) -> bool:
    return 0.0 <= now_s - health.at_s <= MAX_AGE_S
