"""The events of a run: status changes, checkpoints, restarts and errors."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from api_client.models import Checkpoint, QueueEvent
from api_client.models.logs import NS_PER_S
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.status import status_view

RunEventKind = Literal["checkpoint", "restart", "error", "status"]

SAME_CHECKPOINT_S = 600.0
"""A checkpoint in the log and one from the API within this time are the same."""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An event at ``at_s`` (epoch seconds). ``text`` may come from the server and is not sanitized."""

    at_s: float
    kind: RunEventKind
    text: str


def run_events(
    history: Iterable[QueueEvent], checkpoints: Sequence[Checkpoint], progress: ProgressSnapshot | None
) -> tuple[RunEvent, ...]:
    """Return status changes, checkpoints, restarts and errors, oldest first.

    Checkpoints are those listed by the API, plus those that only the log mentions.
    """
    events = [
        RunEvent(event.created.timestamp(), "status", status_view(event.status).word)
        for event in history
        if event.created is not None
    ]
    listed = [
        RunEvent(checkpoint.created_at.timestamp(), "checkpoint", checkpoint.checkpoint_id)
        for checkpoint in checkpoints
        if checkpoint.created_at is not None
    ]
    events += listed
    if progress is not None:
        names, times = {event.text for event in listed}, sorted(event.at_s for event in listed)
        for name, at_ns in progress.saves:
            at_s = at_ns / NS_PER_S
            following = bisect_left(times, at_s - SAME_CHECKPOINT_S)
            is_listed = following < len(times) and times[following] <= at_s + SAME_CHECKPOINT_S
            if name not in names and not is_listed:
                events.append(RunEvent(at_s, "checkpoint", name))
        events += [RunEvent(at_s, "restart", "step count went back") for at_s in progress.restarts]
        events += [RunEvent(error.at_ns / NS_PER_S, "error", error.text) for error in progress.errors.kept]
    return tuple(sorted(events, key=lambda event: event.at_s))
