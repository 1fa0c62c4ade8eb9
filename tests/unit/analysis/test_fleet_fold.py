"""Home's fold over several snapshots: what it need not make anew, and that nothing is missed by that."""

from datetime import UTC, datetime, timedelta
from typing import Any

from api_client.models import TrainingJob, TrainingProject
from tui.analysis.fleet.snapshot import FleetFold

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
