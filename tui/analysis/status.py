"""The display of a job's status: a word, a sign, a tone and a sort order.

The theme maps the tone to a color; the sign has the same meaning for users who cannot see colors.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from api_client.vocabulary import JobStatus, short_status
from tui.text.sanitize import sanitize

Tone = Literal["running", "starting", "waiting", "good", "bad", "muted", "caution", "unknown"]
"""The meaning of a status; the theme has a color for each."""


class StatusView(NamedTuple):
    """The display of a status; ``order`` is its sort key (running jobs first), ``name`` the API's status."""

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
    """Return the display of a status; an unknown status has its API name as word, and sorts last."""
    view = _VIEWS.get(status)
    if view is not None:
        return view
    word = sanitize(short_status(status)).replace("-", " ").strip()
    return StatusView(word or "unknown", "?", "unknown", _FINISHED, status)


_UPLOAD_TEXTS = {"SYNCING": "in progress", "COMPLETED": "up to date"}


def upload_text(sync_status: str | None) -> str:
    """Return the upload state of a job's checkpoints in words; empty if the server reports no state."""
    return _UPLOAD_TEXTS.get(sync_status or "", sanitize(sync_status or ""))
