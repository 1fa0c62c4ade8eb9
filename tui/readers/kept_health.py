"""The health of the running jobs as it was read lately, for commands that are to be quick.

Whoever watches all jobs (the dashboard, ``top``, ``--health``) keeps it in a file that they share.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from tui.settings.remembered import State, change_state, read_state, state_path

FILE_NAME = "health.json"
MAX_AGE_S = 900.0
"""What was read longer ago says nothing about now."""


@dataclass(frozen=True)
class KeptHealth(State):
    """The health of a job as it was read at ``at_s`` (epoch seconds).

    ``sign`` is that of its worst finding, "" without one; ``cells`` are the texts and tones of its
    columns in a list of jobs.
    """

    at_s: float = 0.0
    sign: str = ""
    cells: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


@dataclass(frozen=True)
class _AllKept(State):
    jobs: dict[str, KeptHealth] = field(default_factory=dict)
    """By server and job id: different emulators have jobs with the same id."""


def kept_health(server: str, job_ids: Collection[str], now_s: float) -> dict[str, KeptHealth]:
    """Return what was read of these jobs of a server (its address) lately, by id."""
    everything = read_state(state_path(FILE_NAME), _AllKept).jobs
    lately = {job_id: everything.get(f"{server} {job_id}", KeptHealth()) for job_id in job_ids}
    return {job_id: kept for job_id, kept in lately.items() if _is_recent(kept, now_s)}


def keep_health(server: str, jobs: Mapping[str, KeptHealth], now_s: float) -> None:
    """Write what was read of these jobs, unless that is impossible now; newer readings of others stay."""
    ours = {f"{server} {job_id}": kept for job_id, kept in jobs.items()}

    def changed(before: _AllKept) -> _AllKept:
        recent = {key: kept for key, kept in before.jobs.items() if _is_recent(kept, now_s)}
        newer = {key: kept for key, kept in recent.items() if key in ours and kept.at_s > ours[key].at_s}
        return _AllKept(recent | ours | newer)

    with suppress(OSError):
        change_state(state_path(FILE_NAME), _AllKept, changed, wait_s=0.0)


def _is_recent(kept: KeptHealth, now_s: float) -> bool:
    return 0.0 <= now_s - kept.at_s <= MAX_AGE_S
