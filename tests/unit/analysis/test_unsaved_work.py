"""What stopping a run would lose, and waiting for its next checkpoint."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from api_client.models import Checkpoint, TrainingJob
from tui.analysis.checkpoints.unsaved import unsaved_words
from tui.analysis.run.snapshot import RunSnapshot
from tui.readers.stopping import next_checkpoint

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def job(status: str = "RUNNING") -> TrainingJob:
    fields = {"id": "j1", "instance_type": {"id": "x"}, "node_count": 2}
    return TrainingJob.model_validate(fields | {"current_status": f"TRAINING_JOB_{status}"})


def saved(name: str, minutes_ago: float, sync: str = "COMPLETE") -> Checkpoint:
    at = NOW - timedelta(minutes=minutes_ago)
    return Checkpoint(checkpoint_id=name, created_at=at, sync_status=sync, training_job_id="j1")


REGULAR = [saved("c-1", 90), saved("c-2", 60), saved("c-3", 30)]


@pytest.mark.parametrize(
    ("checkpoints", "words"),
    [
        (REGULAR, "Unsaved work: 30m since c-3, ≈ $60.00. The next checkpoint is due in about 0s."),
        ([*REGULAR, saved("c-4", 10)], "Unsaved work: 10m since c-4, ≈ $20.00. The next checkpoint is due in about 20m."),
        (REGULAR[:2], "Unsaved work: 1h 00m since c-2, ≈ $120."),
        ([saved("c-1", 150), saved("c-2", 120), saved("c-3", 90)],
         "Unsaved work: 1h 30m since c-3, ≈ $180. The next checkpoint is overdue by 1h 00m."),
        ([*REGULAR, saved("c-4", 1, "SYNCING")],
         "Unsaved work: 30m since c-3, ≈ $60.00. c-4 is still being uploaded."),
        ([], "Unsaved work: 2h 00m so far, without a checkpoint, ≈ $240."),
    ],
)  # fmt: skip
@pytest.mark.proves("docs/commands.md", "Submit a job")
def test_the_work_that_stopping_now_loses(checkpoints: list[Checkpoint], words: str) -> None:
    begun = job().model_copy(update={"created_at": NOW - timedelta(hours=2)})
    run = RunSnapshot(
        begun, NOW, NOW, checkpoints=tuple(checkpoints), history_known=True, price_per_minute=1.0
    )
    assert unsaved_words(run) == words


def test_nothing_is_said_of_what_does_not_run_or_has_no_known_start() -> None:
    assert unsaved_words(RunSnapshot(job("PENDING"), NOW, NOW, checkpoints=tuple(REGULAR))) == ""
    assert unsaved_words(RunSnapshot(job(), NOW, NOW, checkpoints=())) == ""


@pytest.mark.parametrize(
    ("later", "status", "name"),
    [
        ([*REGULAR, saved("c-4", 0)], "RUNNING", "c-4"),
        ([*REGULAR[:2], saved("c-3", 0)], "RUNNING", "c-3"),  # written again after a restart
        ([*REGULAR, saved("c-4", 0)], "FAILED", None),
    ],
)
async def test_the_next_checkpoint_is_awaited(later: list[Checkpoint], status: str, name: str | None) -> None:
    uploading = [*REGULAR, saved("c-4", 0, "SYNCING")]
    answers = [REGULAR, uploading, uploading, later]
    jobs = SimpleNamespace(find=AsyncMock(side_effect=[job(), job(), job(), job(status)]))
    checkpoints = SimpleNamespace(list=AsyncMock(side_effect=answers))
    client: Any = SimpleNamespace(jobs=jobs, checkpoints=checkpoints, clock=AsyncMock())
    found, now = await next_checkpoint(client, job())
    assert (found.checkpoint_id if found is not None else None) == name
    assert now.current_status == f"TRAINING_JOB_{status}"
    assert checkpoints.list.await_count == len(answers)
