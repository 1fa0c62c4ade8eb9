"""bt-tui summary: one call that says what a run does, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, job
from support.fake_runs import STEADY, finished_run, live_run
from tui.analysis.summary.rendering import LIMIT_BYTES

BROKEN = [*STEADY, *["nan"] * 60]


@pytest.mark.proves("docs/commands.md", "`summary`")
def test_sick_run_is_summarized_alike_in_every_format(cli: RunCli, baseten: FakeBaseten) -> None:
    live_run(baseten, "nan", BROKEN)
    text, markdown, document = cli("summary nan"), cli("summary nan -o markdown"), cli("summary nan -o json")
    assert (text.code, text.err, markdown.code, document.code) == (0, "", 0, 0)
    shown = document.json
    assert (shown["job_id"], shown["status"], shown["verdict"]) == ("nan", "running", "1 critical")
    (problem,) = shown["problems"]
    assert (problem["kind"], problem["severity"]) == ("loss-not-finite", "critical")
    assert shown["metrics"][0]["newest"] == "NaN" and shown["metrics"][0]["best"] == 1.205
    for out in (text.out, markdown.out):
        assert "loss-not-finite" in out and "bt-tui stop nan" in out and "best 1.21 at step 360" in out
    assert all(len(each.out.encode()) <= LIMIT_BYTES for each in (text, markdown, document))


def test_completed_run_whose_loss_was_nan_is_not_called_sound(cli: RunCli, baseten: FakeBaseten) -> None:
    finished_run(baseten, "nan", losses=[2.0, 1.5, *["nan"] * 60], status="COMPLETED")
    finished_run(baseten, "fine", losses=[2.0, 1.5, 1.2], status="COMPLETED")
    broken, sound = cli("summary nan -o json").json, cli("summary fine -o json").json
    assert broken["verdict"] == "ended with 1 critical"
    assert [problem["kind"] for problem in broken["problems"]] == ["loss-not-finite"]
    assert (sound["verdict"], sound["problems"]) == ("ended", [])


def test_suggested_commands_repeat_the_remote_and_are_understood(
    cli: RunCli, baseten: FakeBaseten, trussrc: Path
) -> None:
    trussrc.write_text(
        f"[my lab]\nremote_provider = baseten\nremote_url = {baseten.url}\napi_key = {baseten.key}\n"
    )
    trussrc.chmod(0o600)
    live_run(baseten, "nan", BROKEN)
    finished_run(baseten, "over", losses=[1.0], status="FAILED")
    baseten.jobs.append(job("waits", "PENDING"))
    for job_id in ("nan", "over", "waits"):
        steps = cli(f"--remote 'my lab' summary {job_id} -o json", environ={}).json["next"]
        assert steps
        for step in steps:
            program, *arguments = shlex.split(step["command"])
            assert (program, arguments[:2]) == ("bt-tui", ["--remote", "my lab"])
            assert cli(*arguments, "--help", environ={}).code == 0
            changes = arguments[2] in ("stop", "update", "recreate")
            assert step.get("changes", False) == changes


def test_read_only_session_is_offered_no_change_that_it_refuses(cli: RunCli, baseten: FakeBaseten) -> None:
    live_run(baseten, "nan", BROKEN)
    steps = cli("--readonly summary nan -o json").json["next"]
    lines = {shlex.split(step["command"])[-2]: step["command"] for step in steps}
    assert lines["stop"] == "bt-tui stop nan" and lines["why"] == "bt-tui --readonly why nan"


def test_part_that_cannot_be_read_is_named_and_nothing_is_called_healthy(
    cli: RunCli, baseten: FakeBaseten
) -> None:
    live_run(baseten, "runs")
    baseten.on("GET", r".*/jobs/\w+/metrics", Answer({"code": "NO", "message": "not for you"}, status=403))
    shown = cli("summary runs -o json").json
    assert shown["unread"] == ["the metrics"] and "healthy" not in shown["verdict"]


@pytest.mark.proves("docs/commands.md", "`summary`")
@pytest.mark.usefixtures("no_waits")
def test_follow_prints_what_changes_and_returns_the_outcome(cli: RunCli, baseten: FakeBaseten) -> None:
    live_run(baseten, "runs", BROKEN)
    states = _states(baseten)
    baseten.on("GET", r".*/jobs/runs", lambda asked: next(states))
    result = cli("summary runs --follow -o jsonl")
    assert result.code == 3
    statuses = [each["status"] for each in result.ndjson]
    assert statuses == ["running", "failed"], "three looks at a running job, of which two show nothing new"


def _states(baseten: FakeBaseten) -> Iterator[Answer]:
    known = baseten.jobs[-1]
    for _look in range(3):
        yield Answer({"training_job": known})
    yield Answer({"code": "OOPS", "message": "busy"}, status=503)
    while True:
        yield Answer({"training_job": known | {"current_status": "TRAINING_JOB_FAILED"}})


def test_job_that_does_not_exist_is_an_error(cli: RunCli) -> None:
    assert cli("summary nothing").code == 7


def test_recording_is_summarized_without_suggesting_commands(
    cli: RunCli, baseten: FakeBaseten, in_folder: None
) -> None:
    finished_run(baseten, "over", losses=list(STEADY), status="COMPLETED")
    assert cli("record over -o run.btrun").code == 0
    shown = cli("summary --file run.btrun -o json").json
    assert (shown["job_id"], shown["next"]) == ("over", [])
    assert cli("summary --file run.btrun --follow").code == 2
