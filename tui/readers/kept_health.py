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
class KeptHealth(State):
    """The health of a job, read at ``at_s`` (epoch seconds).

    ``sign`` is the symbol of its worst finding, "" without one; ``cells`` are the texts and tones of its
    columns in a list of jobs, by column ID.
    """

    at_s: float = 0.0
    sign: str = ""
    cells: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


@dataclass(frozen=True)
class _AllKept(State):
    jobs: dict[str, KeptHealth] = field(default_factory=dict)
    """The key is ``SERVER JOB_ID``, since different emulators have jobs with the same ID."""


def kept_health(server: str, job_ids: Collection[str], now_s: float) -> dict[str, KeptHealth]:
    """Return the stored health of a server's jobs by ID, if recent; ``server`` is the server's address."""
    all_stored = read_state(state_path(FILE_NAME), _AllKept).jobs
    stored = {job_id: all_stored.get(f"{server} {job_id}", KeptHealth()) for job_id in job_ids}
    return {job_id: kept for job_id, kept in stored.items() if _is_recent(kept, now_s)}


def keep_health(server: str, jobs: Mapping[str, KeptHealth], now_s: float) -> None:
    """Store the health of these jobs, unless newer is stored, or the file cannot be written at once."""
    added = {f"{server} {job_id}": kept for job_id, kept in jobs.items()}

    def changed(before: _AllKept) -> _AllKept:
        recent = {key: kept for key, kept in before.jobs.items() if _is_recent(kept, now_s)}
        newer = {key: kept for key, kept in recent.items() if key in added and kept.at_s > added[key].at_s}
        return _AllKept(recent | added | newer)

    with suppress(OSError):
        change_state(state_path(FILE_NAME), _AllKept, changed, wait_s=0.0)


def _is_recent(kept: KeptHealth, now_s: float) -> bool:
    return 0.0 <= now_s - kept.at_s <= MAX_AGE_S
