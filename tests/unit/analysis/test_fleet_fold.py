"""Home's fold over several snapshots: what it need not make anew, and that nothing is missed by that."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from api_client.models import TrainingJob, TrainingProject
from tui.analysis.fleet.snapshot import NO_PREVIEW, FleetFold, JobPreview, JobRow, job_row
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.screens.home.columns import JOB_COLUMNS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PROJECTS = [
    TrainingProject.model_validate({"id": f"p{number}", "name": f"project {number}"}) for number in (0, 1)
]
ENDED = 200


def job(number: int, status: str = "COMPLETED", **fields: Any) -> TrainingJob:
    created = NOON - timedelta(hours=1 + number)
    return TrainingJob.model_validate(
        {
            "id": f"job-{number:03}",
            "name": f"run {number}",
            "training_project_id": f"p{number % 2}",
            "current_status": f"TRAINING_JOB_{status}",
            "created_at": created.isoformat(),
            "updated_at": (created + timedelta(minutes=30)).isoformat(),
            "instance_type": {"id": "i", "name": "H100x8", "gpu_type": "H100", "gpu_count": 8},
        }
        | fields
    )


def test_ages_of_ended_jobs_go_on_each_time_all_jobs_are_listed() -> None:
    everything = [job(number) for number in range(ENDED)]
    fold = FleetFold()
    for now in (NOON, NOON + timedelta(minutes=7), NOON + timedelta(days=2)):
        fold.warm(everything, {}, now)
        folded, fresh = (
            one.jobs
            for one in (fold.fold(PROJECTS, [], {}, now), FleetFold().fold(PROJECTS, everything, {}, now))
        )
        assert [(row, row.age_s) for row in folded] == [(row, row.age_s) for row in fresh]


def test_a_job_that_ended_since_is_shown_once_and_takes_its_place() -> None:
    running, queued = job(3, "RUNNING"), job(4, "PENDING")
    ended = [job(number) for number in range(5, 10)]
    fold = FleetFold()
    fold.warm([running, queued, *ended], {}, NOON)
    failed = job(3, "FAILED", error_message="CUDA out of memory")
    snapshot = fold.fold(PROJECTS, [queued, failed], {}, NOON)
    assert snapshot == FleetFold().fold(PROJECTS, [queued, failed, *ended], {}, NOON)
    assert snapshot.running == 0
    fold.warm([queued, failed, *ended[1:]], {}, NOON)  # one was deleted meanwhile
    again = job(3, "RUNNING")  # as a server that is restored from an older state might say
    assert fold.fold(PROJECTS, [queued, again], {}, NOON) == FleetFold().fold(
        PROJECTS, [queued, again, *ended[1:]], {}, NOON
    )


def test_projects_without_jobs_are_listed_and_the_busiest_first() -> None:
    fold = FleetFold()
    quiet = TrainingProject.model_validate({"id": "p9", "name": "a quiet one"})
    running = job(1, "RUNNING")
    fold.warm([running, job(2), job(4)], {}, NOON)
    snapshot = fold.fold([quiet, *PROJECTS], [running], {}, NOON)
    assert [(row.id, row.jobs, row.running) for row in snapshot.projects] == [
        ("p1", 1, 1),
        ("p9", 0, 0),
        ("p0", 2, 0),
    ]


def cells(row: JobRow) -> list[Any]:
    return [read(row) for column in JOB_COLUMNS for read in (column.cell, *column.without.values())]


def test_a_row_is_another_only_if_it_looks_different() -> None:
    """What is equal is not painted again: it must look alike, and what looks alike should be equal."""
    half = JobPreview(ProgressSnapshot(step=50, total_steps=100, eta_s=7200.0), trace=(0.5, 0.9))
    of_one_status = [
        (job(1, "RUNNING"), half),
        (job(2, "RUNNING"), NO_PREVIEW),
        (job(3, "PENDING"), NO_PREVIEW),
    ]
    for one, job_preview in of_one_status:
        rows = [job_row(one, job_preview, NOON + timedelta(seconds=second)) for second in range(0, 9000, 7)]
        for before, after in pairwise(rows):
            assert (before == after) == (cells(before) == cells(after))

    of_all = [job_row(one, job_preview, NOON) for one, job_preview in of_one_status]
    urgent = job_row(job(1, "RUNNING", priority=5), half, NOON)
    assert len({str(cells(row)) for row in (*of_all, urgent)}) == len({*of_all, urgent}) == 4
