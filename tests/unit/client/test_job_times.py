"""From when on a job may have log lines and samples."""

from datetime import UTC, datetime, timedelta

import pytest

from api_client.models import TrainingJob

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("created", "begins_ago"),
    [
        (NOW - timedelta(days=2), timedelta(days=2, minutes=5)),
        (NOW + timedelta(minutes=2), timedelta(minutes=3)),
        (None, timedelta(days=7)),
        (NOW + timedelta(days=400), timedelta(days=7)),
    ],
)
def test_lines_begin_shortly_before_a_job_was_created(
    created: datetime | None, begins_ago: timedelta
) -> None:
    job = TrainingJob(id="a", current_status="TRAINING_JOB_RUNNING", created_at=created)
    assert NOW - job.earliest_time(NOW) == begins_ago
