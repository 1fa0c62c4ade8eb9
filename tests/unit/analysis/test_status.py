import pytest

from api_client.models.jobs import JobStatus
from tui.analysis.status import status_view


@pytest.mark.parametrize(
    ("status", "word", "sign"),
    [
        (JobStatus.RUNNING, "running", "●"), (JobStatus.PENDING, "pending", "◌"), (JobStatus.QUEUED, "queued", "◌"),
        (JobStatus.CREATED, "created", "◍"), (JobStatus.DEPLOYING, "deploying", "◍"),
        (JobStatus.COMPLETED, "completed", "✓"), (JobStatus.FAILED, "failed", "✗"),
        (JobStatus.DEPLOY_FAILED, "deploy failed", "✗"), (JobStatus.STOPPED, "stopped", "■"),
        (JobStatus.PREEMPTED, "preempted", "↯"), ("TRAINING_JOB_BEING_COOLED", "being cooled", "?"), ("", "unknown", "?"),
    ],
)  # fmt: skip
def test_every_status_has_a_word_and_a_sign(status, word, sign):
    view = status_view(str(status))
    assert (view.word, view.sign, view.name) == (word, sign, status)


def test_running_first_finished_last():
    order = ["RUNNING", "DEPLOYING", "QUEUED", "FAILED"]
    views = [status_view(f"TRAINING_JOB_{name}").order for name in order]
    assert views == sorted(set(views))
    assert status_view("TRAINING_JOB_CREATED").order == status_view("TRAINING_JOB_DEPLOYING").order
    assert status_view("TRAINING_JOB_UNHEARD_OF").order == status_view("TRAINING_JOB_COMPLETED").order


def test_an_unknown_status_is_text_from_a_server():
    assert "\x1b" not in status_view("TRAINING_JOB_\x1b[31mRED").word
