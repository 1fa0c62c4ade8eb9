"""The display of a job's status: a word, a sign, a tone and a sort order.

The tone is a name that the theme maps to a color; the sign conveys the same without color.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from api_client.vocabulary import JobStatus, short_status
from tui.text.sanitize import sanitize

Tone = Literal["running", "starting", "waiting", "good", "bad", "muted", "caution", "unknown"]
"""The meaning of a status; the theme has a color for each."""


class StatusView(NamedTuple):
    """The display of a status: ``order`` sorts running first, finished last; ``name`` is the API's."""

    word: str
    sign: str
    tone: Tone
    order: int
    name: str


_RUNNING, _STARTING, _WAITING, _FINISHED = range(4)

_VIEWS: dict[str, StatusView] = {
    JobStatus.RUNNING: StatusView("running", "●", "running", _RUNNING, JobStatus.RUNNING),
    JobStatus.DEPLOYING: StatusView("deploying", "◍", "starting", _STARTING, JobStatus.DEPLOYING),
    JobStatus.CREATED: StatusView("created", "◍", "starting", _STARTING, JobStatus.CREATED),
    JobStatus.QUEUED: StatusView("queued", "◌", "waiting", _WAITING, JobStatus.QUEUED),
    JobStatus.PENDING: StatusView("pending", "◌", "waiting", _WAITING, JobStatus.PENDING),
    JobStatus.COMPLETED: StatusView("completed", "✓", "good", _FINISHED, JobStatus.COMPLETED),
    JobStatus.FAILED: StatusView("failed", "✗", "bad", _FINISHED, JobStatus.FAILED),
    JobStatus.DEPLOY_FAILED: StatusView("deploy failed", "✗", "bad", _FINISHED, JobStatus.DEPLOY_FAILED),
    JobStatus.STOPPED: StatusView("stopped", "■", "muted", _FINISHED, JobStatus.STOPPED),
    JobStatus.PREEMPTED: StatusView("preempted", "↯", "caution", _FINISHED, JobStatus.PREEMPTED),
    JobStatus.EXPIRED: StatusView("expired", "■", "muted", _FINISHED, JobStatus.EXPIRED),
}


def status_view(status: str) -> StatusView:
    """Return the display of a status; an unknown one is shown by its own name, as finished."""
    view = _VIEWS.get(status)
    if view is not None:
        return view
    word = sanitize(short_status(status)).replace("-", " ").strip()
    return StatusView(word or "unknown", "?", "unknown", _FINISHED, status)


_UPLOADS = {"SYNCING": "in progress", "COMPLETED": "up to date"}


def upload_text(sync_status: str | None) -> str:
    """Return the state of the upload of a job's checkpoints; empty if the server reports none."""
    return _UPLOADS.get(sync_status or "", sanitize(sync_status or ""))
