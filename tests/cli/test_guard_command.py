"""``bt-tui guard``: what it prints, its exit codes, its notifications, and what it refuses."""

import json
import os
import signal
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from support.cli import RunCli
from support.deploying_server import DeployingServer, listed_checkpoint
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, job
from support.fake_runs import STEADY, live_run
from support.webhooks import AT_ONCE, HANGS, Webhook
from tui.commands.support.output import ExitCode
from tui.readers.watcher import RunWatcher
from tui.settings.remembered import state_path

SICK = [*STEADY, "nan", "nan", "nan", "nan", "nan"]
STOP_ON_NAN = ("--stop-on", "loss-not-finite")


def stops(baseten: FakeBaseten) -> list[str]:
    """Serve the stopping of jobs; return the paths of such requests."""
    paths: list[str] = []

    def stop(asked: ReceivedRequest) -> Answer:
        paths.append(asked.path)
        stopped = baseten.jobs[0] | {"current_status": "TRAINING_JOB_STOPPED"}
        baseten.jobs[0] = stopped
        return Answer({"training_job": stopped})

    baseten.on("POST", ".*/stop", stop)
    return paths


def serve(baseten: FakeBaseten, losses: list[Any] = STEADY) -> list[str]:
    baseten.jobs = []
    live_run(baseten, "job1", losses)
    baseten.on("GET", ".*/checkpoints", Answer({"checkpoints": []}))
    return stops(baseten)


@pytest.mark.proves("docs/guard.md", "Guard and resume")
def test_exit_code_of_one_look_is_the_verdict(cli: RunCli, baseten: FakeBaseten) -> None:
    serve(baseten)
    cli("guard job1 --once")
    serve(baseten, SICK)
    cli("guard job1 --once", code=ExitCode.CRITICAL)
    baseten.on("GET", ".*/jobs/job1", Answer({}, status=403))
    cli("guard job1 --once", code=ExitCode.UNREACHABLE)


def test_guard_started_again_repeats_nothing(cli: RunCli, baseten: FakeBaseten) -> None:
    serve(baseten, SICK)
    first = cli("guard --all --once", code=ExitCode.CRITICAL)
    assert "✗ job1 (job1): loss is nan" in first.out.lower()
    assert cli("guard job1 --once", code=ExitCode.CRITICAL).out == ""


@pytest.mark.proves("docs/guard.md", "The state file")
def test_killed_guard_goes_on_where_it_was(cli_process: Any, baseten: FakeBaseten) -> None:
    serve(baseten, SICK)
    own = baseten.environ() | {"XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}
    with cli_process("guard", "job1", environ=own) as killed:
        assert "loss is" in killed.stdout.readline()
        killed.kill()
        killed.communicate()
    baseten.jobs[0] |= {"current_status": "TRAINING_JOB_FAILED"}
    with cli_process("guard", "job1", environ=own) as again:
        out, _err = again.communicate()
    assert [line.partition("): ")[2] for line in out.splitlines()] == ["failed"]
    assert again.returncode == ExitCode.JOB_FAILED


def test_guard_killed_while_it_reports_repeats_nothing(
    cli: RunCli, baseten: FakeBaseten, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(baseten, SICK)
    with monkeypatch.context() as killed:
        killed.setattr("tui.commands.jobs.guard._print_alert", Mock(side_effect=KeyboardInterrupt))
        cli("guard job1 --once", code=ExitCode.INTERRUPTED)
    assert cli("guard job1 --once", code=ExitCode.CRITICAL).out == ""


@pytest.mark.proves("docs/guard.md", "The state file")
def test_state_file_is_private_and_broken_ones_are_replaced(cli: RunCli, baseten: FakeBaseten) -> None:
    serve(baseten, SICK)
    cli("guard job1 --once", code=ExitCode.CRITICAL)
    path = state_path("guard.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert baseten.key not in path.read_text()
    path.write_text('{"runs": [1, {')
    again = cli("guard job1 --once", code=ExitCode.CRITICAL)
    assert "loss is" in again.out
    assert f"{path} is damaged; earlier reports are forgotten" in again.err
    assert json.loads(path.read_text())["runs"]


def test_guard_goes_on_if_its_state_cannot_be_saved(
    cli: RunCli, baseten: FakeBaseten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(baseten, SICK)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    result = cli("guard job1 --once", code=ExitCode.CRITICAL)
    assert "loss is" in result.out
    assert "can't save what was reported" in result.err


@pytest.mark.usefixtures("no_waits")
@pytest.mark.proves("docs/guard.md", "What stops a run")
def test_sick_run_is_stopped_and_what_is_lost_is_said(cli: RunCli, baseten: FakeBaseten) -> None:
    paths = serve(baseten, SICK)
    result = cli("guard", "job1", *STOP_ON_NAN, "-o", "jsonl", code=ExitCode.JOB_STOPPED)
    assert [each["event"] for each in result.ndjson] == ["finding", "stopped", "job-ended"]
    assert "Unsaved work: 1h" in result.ndjson[1]["text"]
    assert len(paths) == 1
    assert "watching 1 run; stops each on loss-not-finite" in result.err


@pytest.mark.usefixtures("no_waits")
def test_run_is_stopped_after_its_next_checkpoint(cli: RunCli) -> None:
    with DeployingServer() as server:
        paths = serve(server, SICK)
        listings = [[], [], [], [], [listed_checkpoint("checkpoint-1", created_at="2026-11-01T00:00:00Z")]]

        def checkpoints(_asked: ReceivedRequest) -> Answer:
            return Answer({"checkpoints": listings.pop(0) if len(listings) > 1 else listings[0]})

        server.on("GET", ".*/checkpoints", checkpoints)
        guard = ("guard", "job1", *STOP_ON_NAN, "--after-checkpoint", "-o", "jsonl")
        result = cli(*guard, environ=server.environ(), code=ExitCode.JOB_STOPPED)
    assert [each["event"] for each in result.ndjson] == ["finding", "stop-planned", "stopped", "job-ended"]
    assert len(paths) == 1


def test_nothing_is_stopped_in_a_dry_run(cli: RunCli, baseten: FakeBaseten) -> None:
    paths = serve(baseten, SICK)
    dry = ("guard", "job1", *STOP_ON_NAN, "--dry-run", "--once")
    first, second = (cli(*dry, code=ExitCode.CRITICAL).out for _look in range(2))
    assert "would be stopped" not in first
    assert "would be stopped (dry run): loss-not-finite" in second
    assert "would be stopped" not in cli("--readonly", *dry, code=ExitCode.CRITICAL).out
    assert paths == []


def test_read_only_guard_watches_but_may_not_stop(cli: RunCli, baseten: FakeBaseten) -> None:
    serve(baseten, SICK)
    cli("--readonly guard job1 --once", code=ExitCode.CRITICAL)
    for cause in (STOP_ON_NAN, ("--budget", "1"), ("--until", "06:00")):
        refused = cli("--readonly", "guard", "job1", "--once", *cause, code=ExitCode.USAGE)
        assert "read-only by flag" in refused.err


def test_budget_stops_a_run(cli: RunCli, baseten: FakeBaseten) -> None:
    paths = serve(baseten)
    prices = [{"instance_type": baseten.jobs[0]["instance_type"], "price": 1.0}]
    baseten.on("GET", "/v1/instance_type_prices", Answer({"instance_types": prices}))
    assert cli("guard job1 --once --budget 500usd").out == ""
    assert "of a budget of $20" in cli("guard job1 --once --budget $20").out
    assert len(paths) == 1


@pytest.mark.parametrize(("passed_h", "stopped"), [(0.1, 1), (13.0, 0)])
@pytest.mark.proves("docs/guard.md", "The state file")
def test_deadline_that_passed_while_no_guard_ran_still_stops(
    cli: RunCli, baseten: FakeBaseten, passed_h: float, stopped: int
) -> None:
    paths = serve(baseten)
    assert cli("guard job1 --once --until 1h").out == ""
    path = state_path("guard.json")
    state = json.loads(path.read_text())
    (run,) = state["runs"].values()
    run["deadline_s"] = time.time() - passed_h * 3600
    path.write_text(json.dumps(state))
    result = cli("guard job1 --once --until 1h")
    assert (len(paths), "stopped: it is past" in result.out) == (stopped, bool(stopped))


def test_dry_run_leaves_no_deadline_to_a_guard_that_stops(cli: RunCli, baseten: FakeBaseten) -> None:
    paths = serve(baseten)
    cli("guard job1 --once --until 1h --dry-run")
    (run,) = json.loads(state_path("guard.json").read_text())["runs"].values()
    assert run["typed_deadline"] == ""
    assert paths == []


@pytest.mark.usefixtures("own_signals")
@pytest.mark.parametrize(("number", "is_kept"), [(signal.SIGINT, False), (signal.SIGTERM, True)])
@pytest.mark.proves("docs/guard.md", "The state file")
def test_deadline_is_taken_back_by_ctrl_c_only(
    cli: RunCli, baseten: FakeBaseten, monkeypatch: pytest.MonkeyPatch, number: int, is_kept: bool
) -> None:
    serve(baseten, SICK)
    monkeypatch.setattr("tui.commands.jobs.guard._print_alert", lambda *_shown: signal.raise_signal(number))
    cli("guard job1 --until 8h", code=128 + number)
    runs = json.loads(state_path("guard.json").read_text())["runs"]
    (run,) = (runs[key] for key in runs if key.endswith("/job1"))
    assert (run["typed_deadline"] == "8h") is is_kept


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("", "which runs?"),
        ("job1 --all", "job ids need neither"),
        ("job1 --stop-on stalld", "did you mean stalled?"),
        ("job1 --budget lots", "is not an amount such as 200usd"),
        ("job1 --stop-on ,", "no finding given"),
        ("job1 --budget 0usd", "is not an amount such as 200usd"),
        ("job1 --until dawn", "is not a time such as 06:00 or 8h"),
        ("job1 --until 2026-01-02", "'2026-01-02' is not in the future"),
        ("job1 --until 0s", "'0s' is not in the future"),
        ("job1 --heartbeat 0s", "'0s' is less than 10s"),
        ("job1 --after-checkpoint", "stops nothing without"),
        ("job1 --notify", "needs notifications.command or notifications.webhook"),
        ("--test", "nothing to test"),
    ],
)
def test_command_line_that_makes_no_sense_is_refused(cli: RunCli, arguments: str, problem: str) -> None:
    result = cli(f"guard {arguments}", code=ExitCode.USAGE)
    assert problem in result.err


@pytest.mark.parametrize(
    ("form", "key"), [("slack", "text"), ("discord", "content"), ("teams", "attachments"), ("auto", "event")]
)
@pytest.mark.proves("docs/guard.md", "Notifications")
def test_test_notification_has_the_form_of_the_service(
    cli: RunCli, baseten: FakeBaseten, form: str, key: str
) -> None:
    with Webhook() as hook:
        own = {"BT_TUI_NOTIFICATIONS_WEBHOOK": hook.url, "BT_TUI_NOTIFICATIONS_WEBHOOK_FORMAT": form}
        result = cli("guard --test", environ=baseten.environ() | own)
    assert result.err == "bt-tui: webhook: delivered\n"
    (request,) = hook.asked
    headers, body = request.headers, request.body
    assert key in body
    assert "authorization" not in headers


def test_test_notification_that_is_refused_is_an_error(cli: RunCli, baseten: FakeBaseten) -> None:
    with Webhook(307) as hook:
        own = {"BT_TUI_NOTIFICATIONS_WEBHOOK": hook.url, "BT_TUI_NOTIFICATIONS_COMMAND": '["true"]'}
        result = cli("guard --test", environ=baseten.environ() | own, code=ExitCode.UNEXPECTED)
    assert result.err == "bt-tui: command: delivered\nbt-tui: webhook: not delivered: HTTP 307\n"


@pytest.mark.usefixtures("no_waits")
def test_notified_alerts_follow_the_settings(cli: RunCli, baseten: FakeBaseten) -> None:
    serve(baseten, SICK)
    with Webhook() as hook:
        own = {"BT_TUI_NOTIFICATIONS_WEBHOOK": hook.url, "BT_TUI_NOTIFICATIONS_JOB_END": "false"}
        guard = ("guard", "job1", *STOP_ON_NAN, "--notify")
        cli(*guard, environ=baseten.environ() | own, code=ExitCode.JOB_STOPPED)
    assert [request.body["event"] for request in hook.asked] == ["finding", "stopped"]


@pytest.mark.usefixtures("no_waits")
def test_refused_alert_is_given_up_and_failed_ones_are_sent_before_the_guard_ends(
    cli: RunCli, baseten: FakeBaseten, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.alerts.delivery.RETRIES", AT_ONCE)
    serve(baseten, SICK)
    with Webhook(404, 429, 200, 307, 503) as hook:
        own = {"BT_TUI_NOTIFICATIONS_WEBHOOK": hook.url}
        guard = ("guard", "job1", *STOP_ON_NAN, "--notify")
        result = cli(*guard, environ=baseten.environ() | own, code=ExitCode.JOB_STOPPED)
    events = [request.body["event"] for request in hook.asked]
    assert events == ["finding", "stopped", "stopped", "job-ended", "job-ended", "job-ended"]
    assert "webhook failed: HTTP 404; it is not sent again" in result.err
    assert "not delivered" not in result.err


@pytest.mark.usefixtures("no_waits")
@pytest.mark.proves("docs/guard.md", "Notifications")
def test_alerts_that_a_hanging_webhook_did_not_take_are_sent_by_the_next_guard(
    cli: RunCli, baseten: FakeBaseten, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.guard.watch.LAST_DELIVERY_S", 0.0)
    monkeypatch.setattr("tui.guard.watch.CLAIM_S", 0.0)
    serve(baseten, SICK)
    with Webhook(HANGS) as hook:
        own = {"BT_TUI_NOTIFICATIONS_WEBHOOK": hook.url}
        guard = ("guard", "job1", *STOP_ON_NAN, "--notify")
        result = cli(*guard, environ=baseten.environ() | own, code=ExitCode.JOB_STOPPED)
        assert "3 notifications not delivered; the next guard sends them" in result.err
    monkeypatch.setattr("tui.guard.watch.LAST_DELIVERY_S", 60.0)
    with Webhook() as hook:
        own = {"BT_TUI_NOTIFICATIONS_WEBHOOK": hook.url}
        again = cli("guard job1 --notify", environ=baseten.environ() | own, code=ExitCode.JOB_STOPPED)
        assert "not delivered" not in again.err
    assert [request.body["event"] for request in hook.asked] == ["finding", "stopped", "job-ended"]


@pytest.mark.usefixtures("no_waits")
def test_end_of_a_run_that_ended_between_two_guards_is_reported(cli: RunCli, baseten: FakeBaseten) -> None:
    serve(baseten)
    cli("guard --all --once")
    baseten.jobs[0] |= {"current_status": "TRAINING_JOB_FAILED"}
    result = cli("guard --all -o jsonl", code=ExitCode.JOB_FAILED)
    assert [each["event"] for each in result.ndjson] == ["job-ended"]
    assert cli("guard --all -o jsonl").out == ""


@pytest.fixture
def passing_time(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that have passed, which sleeping makes longer."""
    start, passed_s = datetime.now(UTC), [0.0]

    async def sleep(_clock: object, seconds: float) -> None:
        passed_s[0] += seconds

    monkeypatch.setattr("api_client.clock.SystemClock.sleep", sleep)
    monkeypatch.setattr("api_client.clock.SystemClock.monotonic", lambda _clock: passed_s[0])
    monkeypatch.setattr(
        "api_client.clock.SystemClock.now", lambda _clock: start + timedelta(seconds=passed_s[0])
    )
    return passed_s


@pytest.mark.usefixtures("passing_time")
def test_deleted_job_is_reported_and_watched_no_longer(cli: RunCli, baseten: FakeBaseten) -> None:
    serve(baseten)
    baseten.on("GET", ".*/jobs/job1", Answer({}, status=404))
    result = cli("guard job1 -o jsonl", code=ExitCode.UNREACHABLE)
    assert [each["event"] for each in result.ndjson] == ["blind"]
    assert "It is no longer watched" in result.ndjson[0]["text"]


@pytest.mark.usefixtures("passing_time")
def test_end_of_a_run_that_could_never_be_read_is_notified(cli: RunCli, baseten: FakeBaseten) -> None:
    serve(baseten)
    with Webhook() as hook:
        own = baseten.environ() | {"BT_TUI_NOTIFICATIONS_WEBHOOK": hook.url}
        baseten.on("GET", ".*/logs", Answer({}, status=503))
        cli("guard job1 --once --notify", environ=own, code=ExitCode.UNREACHABLE)
        baseten.jobs[0] |= {"current_status": "TRAINING_JOB_FAILED"}
        cli("guard job1 --once --notify", environ=own)
    assert [request.body["event"] for request in hook.asked] == ["job-ended"]


def test_look_that_crashes_does_not_end_the_watching_of_other_runs(
    cli: RunCli, baseten: FakeBaseten, passing_time: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(baseten, SICK)
    live_run(baseten, "job2", STEADY)
    check = RunWatcher.check

    async def failing_check(watcher: RunWatcher) -> None:
        await check(watcher)
        if passing_time[0] > 400:
            baseten.jobs = [each | {"current_status": "TRAINING_JOB_COMPLETED"} for each in baseten.jobs]
        if watcher.job.id == "job2":
            raise ZeroDivisionError("broken")

    monkeypatch.setattr(RunWatcher, "check", failing_check)
    result = cli("guard job1 job2 -o jsonl")
    events = [(each["job"]["id"], each["event"]) for each in result.ndjson]
    assert ("job1", "finding") in events
    assert ("job2", "blind") in events
    assert [event for event in events if event[1] == "job-ended"] != []
    assert "ZeroDivisionError: broken" in result.out


def test_heartbeat_says_what_is_watched(
    cli: RunCli, baseten: FakeBaseten, passing_time: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    check = RunWatcher.check

    async def check_until_it_ends(watcher: RunWatcher) -> None:
        await check(watcher)
        if passing_time[0] > 60:
            baseten.jobs[0] |= {"current_status": "TRAINING_JOB_COMPLETED"}

    monkeypatch.setattr(RunWatcher, "check", check_until_it_ends)
    serve(baseten)
    baseten.jobs.append(job("job2", "PENDING"))
    result = cli("guard job1 --heartbeat 20s -o jsonl")
    beats = [each["text"] for each in result.ndjson if each["event"] == "heartbeat"]
    assert beats
    assert set(beats) == {"ℹ bt-tui: watching 1 run"}
