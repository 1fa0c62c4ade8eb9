"""The work since the last checkpoint, which is lost if the run is stopped now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from statistics import median

from api_client.models import JobStatus
from tui.analysis.checkpoints.facts import newest_of, sync_state
from tui.analysis.run.snapshot import RunSnapshot
from tui.text.sanitize import sanitize
from tui.text.units import duration, money


@dataclass(frozen=True, slots=True)
class UnsavedWork:
    """The work since the last stored checkpoint, or since the start of the run if there is none."""

    seconds: float
    checkpoint: str | None
    """The name of the last stored checkpoint."""
    usd: float | None = None
    """An estimate of the cost of this work; None without a price."""
    next_due_s: float | None = None
    """Seconds until the next checkpoint is due; negative if overdue, None until there are three."""
    uploading: str | None = None
    """The name of the newest checkpoint that is being uploaded."""

    @property
    def words(self) -> str:
        """Sentences for the confirmation question, sanitized."""
        scope = f"since {sanitize(self.checkpoint)}" if self.checkpoint else "so far, without a checkpoint"
        cost = f", ≈ {money(self.usd)}" if self.usd is not None else ""
        sentence = f"Unsaved work: {duration(self.seconds)} {scope}{cost}."
        if self.uploading is not None:
            return f"{sentence} {sanitize(self.uploading)} is still being uploaded."
        if self.next_due_s is None:
            return sentence
        if self.next_due_s < 0:
            return f"{sentence} The next checkpoint is overdue by {duration(-self.next_due_s)}."
        return f"{sentence} The next checkpoint is due in about {duration(self.next_due_s)}."


def unsaved_work(run: RunSnapshot) -> UnsavedWork | None:
    """Return the work that stopping the run would lose.

    None if the job is not running, or if its checkpoints or its start are unknown.
    """
    checkpoints, now, price = run.checkpoints, run.server_now, run.price_per_minute
    if checkpoints is None or run.job.current_status != JobStatus.RUNNING:
        return None
    times = sorted(checkpoint.created_at for checkpoint in checkpoints if checkpoint.created_at is not None)
    stored = [
        checkpoint
        for checkpoint in checkpoints
        if checkpoint.created_at is not None and sync_state(checkpoint) != "uploading"
    ]
    last_stored = newest_of(stored)
    since = last_stored.created_at if last_stored is not None else run.running_since
    if since is None:
        return None
    uploading = newest_of(checkpoint for checkpoint in checkpoints if sync_state(checkpoint) == "uploading")
    seconds = max(0.0, (now - since).total_seconds())
    intervals_s = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    # a single interval does not predict the next checkpoint
    due_at = times[-1] + timedelta(seconds=median(intervals_s)) if len(intervals_s) >= 2 else None
    return UnsavedWork(
        seconds,
        last_stored.checkpoint_id if last_stored is not None else None,
        None if price is None else price * run.node_count * seconds / 60,
        None if due_at is None else (due_at - now).total_seconds(),
        uploading.checkpoint_id if uploading is not None else None,
    )


def unsaved_words(run: RunSnapshot) -> str:
    """Return the sentences of ``UnsavedWork.words``; empty if the unsaved work is unknown."""
    work = unsaved_work(run)
    return work.words if work is not None else ""
