import pytest

from api_client.vocabulary import JobStatus
from tui.analysis.status import status_view, upload_text

VIEWS = {
    JobStatus.RUNNING: "● running", JobStatus.PENDING: "◌ pending", JobStatus.QUEUED: "◌ queued",
    JobStatus.CREATED: "◍ created", JobStatus.DEPLOYING: "◍ deploying", JobStatus.COMPLETED: "✓ completed",
    JobStatus.FAILED: "✗ failed", JobStatus.DEPLOY_FAILED: "✗ deploy failed", JobStatus.STOPPED: "■ stopped",
    JobStatus.PREEMPTED: "↯ preempted", "TRAINING_JOB_EXPIRED": "■ expired", "TRAINING_JOB_BEING_COOLED": "? being cooled", "": "? unknown",
    "TRAINING_JOB_\x1b[31mRED": "? red",
}  # fmt: skip


@pytest.mark.parametrize("status", VIEWS)
def test_every_status_has_a_sign_and_a_word(status):
    view = status_view(str(status))
    assert (f"{view.sign} {view.word}", view.name) == (VIEWS[status], status)


def test_upload_of_checkpoints_is_in_plain_words():
    shown = [upload_text(status) for status in ("SYNCING", "COMPLETED", "PAUSED", None)]
    assert shown == ["in progress", "up to date", "PAUSED", ""]


def test_running_first_finished_last():
    names = ["RUNNING", "CREATED", "DEPLOYING", "QUEUED", "COMPLETED", "UNHEARD_OF"]
    orders = [status_view(f"TRAINING_JOB_{name}").order for name in names]
    assert orders == sorted(orders) and len(set(orders)) == 4
