"""``bt-tui guard --resume-on``: a preempted job is submitted again, once, from its newest checkpoint."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from whole_platform import furnish

from api_client.models import JobStatus
from support.cli import RunCli
from support.every_command import ENDED
from support.faulty import FaultyServer
from support.served_platform import KEY, Served, served_platform
from tui.commands.support.output import ExitCode
from tui.guard.memory import GuardMemory
from tui.settings.remembered import state_path

GUARD = ("guard", ENDED, "--resume-on", "preempted", "--once", "-o", "jsonl")


@pytest.fixture
def served(faulty: FaultyServer, tmp_path: Path) -> Iterator[Served]:
    faulty.set_faults("")
    with served_platform(faulty, tmp_path) as served:
        furnish(served)
        served.backend.by_id[ENDED] = served.backend.by_id[ENDED].model_copy(
            update={"current_status": JobStatus.PREEMPTED, "name": "llama"}
        )
        yield served


def environ(served: Served) -> dict[str, str]:
    leading = dict.fromkeys(("BASETEN_REMOTE_URL", "BASETEN_MANAGEMENT_API_URL_OVERRIDE"), served.url)
    return {"BASETEN_API_KEY": KEY} | leading


def test_preempted_job_is_resumed_once(cli: RunCli, served: Served) -> None:
    first = cli(*GUARD, environ=environ(served))
    assert [each["event"] for each in first.ndjson] == ["job-ended", "resumed"], first.err
    (spec,) = served.backend.specs
    assert spec["name"] == "llama-r2"
    (reference,) = spec["runtime"]["load_checkpoint_config"]["checkpoints"]
    assert (reference["checkpoint_name"], reference["job_id"]) == ("checkpoint-100", ENDED)
    assert cli(*GUARD, environ=environ(served)).out == ""
    assert len(served.backend.specs) == 1


@pytest.fixture
def resumed(cli: RunCli, served: Served) -> Any:
    """A job that was resumed just now; what is remembered of all runs can be changed."""
    first = cli(*GUARD, environ=environ(served), code=None)
    (job_id,) = [job_id for job_id in served.backend.spec_by_id if f"({job_id})" in first.out]
    now = {"created_at": datetime.now(UTC)}
    served.backend.by_id[job_id] = served.backend.by_id[job_id].model_copy(update=now)
    return json.loads(state_path("guard.json").read_text())


def remember(state: dict[str, Any]) -> None:
    state_path("guard.json").write_text(json.dumps(state))


def key_of_ended(state: dict[str, Any]) -> str:
    (key,) = [key for key in state["runs"] if key.endswith(ENDED)]
    return key


def test_job_submitted_before_a_kill_is_not_submitted_again(
    cli: RunCli, served: Served, resumed: Any
) -> None:
    resumed["runs"][key_of_ended(resumed)]["resume"] |= {"state": "requested", "job_id": ""}
    remember(resumed)
    assert [each["event"] for each in cli(*GUARD, environ=environ(served)).ndjson] == ["resumed"]
    assert len(served.backend.specs) == 1


def test_job_that_another_guard_resumes_at_this_moment_is_left_to_it(cli: RunCli, served: Served) -> None:
    with GuardMemory(state_path("guard.json")).resume_lock():
        first = cli(*GUARD, environ=environ(served))
    assert [each["event"] for each in first.ndjson] == ["job-ended"]
    assert served.backend.specs == []
    assert [each["event"] for each in cli(*GUARD, environ=environ(served)).ndjson] == ["resumed"]


def test_job_that_continues_another_one_of_the_same_name_is_not_taken_for_its_own(
    cli: RunCli, served: Served, resumed: Any
) -> None:
    key = key_of_ended(resumed)
    resumed["runs"][key.replace(ENDED, "another")] = resumed["runs"].pop(key)
    remember(resumed)
    again = cli(*GUARD, environ=environ(served))
    assert [each["event"] for each in again.ndjson] == ["job-ended", "resumed"]
    assert len(served.backend.specs) == 2


def test_job_that_cannot_be_resumed_is_reported_once(cli: RunCli, served: Served) -> None:
    served.backend.stored_files.clear()
    served.backend.spec_by_id.pop(ENDED)
    first = cli(*GUARD, environ=environ(served))
    assert [each["event"] for each in first.ndjson] == ["job-ended", "not-resumed"]
    assert cli(*GUARD, environ=environ(served)).out == ""
    assert served.backend.specs == []


def test_read_only_guard_may_not_resume(cli: RunCli, served: Served) -> None:
    refused = cli("--readonly", *GUARD, environ=environ(served), code=ExitCode.USAGE)
    assert "submitting a job" in refused.err
    dry = cli("--readonly", *GUARD, "--dry-run", environ=environ(served))
    assert [each["event"] for each in dry.ndjson] == ["job-ended", "not-resumed"]
    assert "would be resumed" in dry.out
    assert served.backend.specs == []
