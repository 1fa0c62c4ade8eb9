"""New findings and ended jobs reach people who look elsewhere, by every way that is wanted, once."""

import asyncio
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from alert_places import HEALTHY, NotingDashboard, settings, watched
from textual import events
from textual.pilot import Pilot

from api_client.errors import BadRequest, RedirectRefused, ServerFault
from support.dashboard import opened, pressed, settle, text_of
from support.waiting import until
from support.webhooks import AT_ONCE, Webhook
from support.worlds import JOB_PREVIEWS, JOBS, ONE_O_CLOCK, PROJECTS, StubFleetFeed, fleet
from tui.alerts.alert import Alert
from tui.alerts.delivery import AlertDelivery, AlertNotDelivered, post_json, run_command
from tui.analysis.fleet.snapshot import FleetFold
from tui.analysis.health.registry import KINDS
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.app.alerts import Alerts
from tui.screens.home.screen import HomeScreen
from tui.screens.job.screen import JobScreen
from tui.screens.messages import RunChecked
from tui.settings.model import Loaded

SIZE = (100, 24)
STALL = HealthFinding(KINDS["stalled"], "critical", "no step for 9m, though \x1b[31mGPUs are busy")
QUEUE = HealthFinding(KINDS["queued"], "info", "waiting for capacity")
STALLED = replace(HEALTHY, findings=(STALL,))
QUEUED = replace(HEALTHY, findings=(QUEUE,))
FAILED = replace(
    HEALTHY,
    job=HEALTHY.job.model_copy(update={"current_status": "TRAINING_JOB_FAILED", "error_message": "exit 1"}),
)


async def show(pilot: Pilot[object], snapshot: RunSnapshot) -> None:
    screen = pilot.app.screen
    screen.post_message(JobScreen.Published(snapshot))
    await settle(pilot)


async def test_a_new_finding_is_in_the_header_without_a_notice_and_the_title_tells_the_state() -> None:
    app = watched()
    async with opened(app, SIZE, notifications=True) as pilot:
        assert app.titles[-1] == "● llama-70b-sft-v3 46% – bt-tui"
        await show(pilot, STALLED)
        assert app.titles[-1] == "✗ llama-70b-sft-v3 stalled – bt-tui"
        assert "no step for 9m, though GPUs are busy" in text_of(app)
        await show(pilot, HEALTHY)
        assert app.titles[-1].startswith("●")
        await show(pilot, FAILED)
        assert "✗ exit 1" in text_of(app)
        assert len(app._notifications) == 0
        for place in range(5):
            app.notify(f"notice {place}", title="long " * 11, severity="error" if place == 1 else "warning")
        await settle(pilot)
        assert [one.message[-1] for one in app._notifications] == ["1", "3", "4"]
        app.notify("done")
        await pilot.pause()
        *problems, done = app._notifications
        assert done.timeout < min(problem.timeout for problem in problems)  # what it covers is back sooner
        assert "notice 4" in text_of(app) and "notice 2" not in text_of(app)
        assert "Cancel (n)" in (asked := await pressed(pilot, "R")) and "notice 4" in asked
        assert app.titles[-1] == "✗ llama-70b-sft-v3 failed – bt-tui"
    assert app.written[-1].endswith("\x1b[23;2t")


class FakeApp:
    """What the alerts need of the app; keeps what it is asked to show."""

    screen_stack = ()

    def __init__(self, settings: Loaded, *, focused: bool) -> None:
        self.settings, self.app_focus = settings, focused
        self.snoozed = frozenset[Any]()
        self.notices: list[str] = []
        self.sequences: list[str] = []
        self.write_to_terminal = self.sequences.append
        self.rings = 0

    def notify(self, message: str, **_options: Any) -> None:
        self.notices.append(message)

    def bell(self) -> None:
        self.rings += 1

    def set_interval(self, *_arguments: object) -> None:
        pass


TOLD = "no step for 9m, though GPUs are busy"
OSC_9 = f"\x1b]9;✗ llama-70b-sft-v3: {TOLD}\x07"
TITLE_SAVED = "\x1b[22;2t"  # before the dashboard sets its own
OSC_777 = f"\x1b]777;notify;✗ llama-70b-sft-v3;{TOLD}\x07"


@pytest.mark.setting(
    "notifications.toast",
    "notifications.bell",
    "notifications.title",
    "notifications.osc",
    "notifications.only_when_unfocused",
    "notifications.min_severity",
    "notifications.job_end",
)
@pytest.mark.parametrize(
    ("wanted", "focused", "snapshot", "notices", "written", "rings"),
    [
        ({"osc": "9", "bell": True}, True, STALLED, 1, [], 0),
        ({"osc": "9", "bell": True}, False, STALLED, 1, [OSC_9], 1),
        ({"osc": "777"}, False, STALLED, 1, [OSC_777], 0),
        ({"osc": "off", "bell": True}, False, STALLED, 1, [], 1),
        ({"osc": "9", "bell": True, "only_when_unfocused": False}, True, STALLED, 1, [OSC_9], 1),
        ({}, True, QUEUED, 0, [], 0),
        ({"min_severity": "info"}, True, QUEUED, 1, [], 0),
        ({"min_severity": "critical"}, True, STALLED, 1, [], 0),
        ({"toast": False}, True, STALLED, 0, [], 0),
        ({"title": True}, True, STALLED, 1, [TITLE_SAVED], 0),
        ({"job_end": False}, True, FAILED, 0, [], 0),
    ],
)
def test_what_is_told_and_how_can_be_chosen(
    wanted: dict[str, Any], focused: bool, snapshot: RunSnapshot, notices: int, written: list[str], rings: int
) -> None:
    app = FakeApp(settings(notifications={"title": False, **wanted}), focused=focused)
    alerts = Alerts(app)  # type: ignore[arg-type]
    alerts.start()
    alerts.track_activity(events.AppFocus())
    for run in (HEALTHY, snapshot):
        alerts.alert_about_run(RunChecked(run, all_checked=True))
    assert (len(app.notices), [one for one in app.sequences if one], app.rings) == (notices, written, rings)


@pytest.mark.setting("notifications.snooze_minutes")
async def test_what_was_there_is_no_news_and_a_snooze_silences_it_until_it_is_woken() -> None:
    app = watched(replace(HEALTHY, log_read=False), notifications={"snooze_minutes": 45})
    async with opened(app, SIZE, notifications=True) as pilot:
        await show(pilot, replace(HEALTHY, log_read=False))
        await show(pilot, STALLED)
        assert len(app._notifications) == 0
        assert app.titles[-1] == "✗ llama-70b-sft-v3 stalled – bt-tui"
        screen = await pressed(pilot, "z")
        assert "snoozed for 45m" in screen and "z snoozed: no step for 9m" in screen
        await show(pilot, STALLED)
        assert app.titles[-1] == "● llama-70b-sft-v3 46% – bt-tui"
        await pressed(pilot, "z")
        await show(pilot, STALLED)
        assert "z snoozed" not in text_of(app)
        assert app.titles[-1] == "✗ llama-70b-sft-v3 stalled – bt-tui"


async def test_home_tells_what_is_new_after_the_first_glance_and_snoozes_the_job_under_the_cursor() -> None:
    listed = FleetFold().fold(PROJECTS, JOBS, {}, ONE_O_CLOCK)

    def first() -> HomeScreen:
        return HomeScreen(lambda publish: StubFleetFeed(listed, publish), "acme")  # type: ignore[arg-type,return-value]

    app = NotingDashboard(first, settings=settings())
    async with opened(app, SIZE, notifications=True) as pilot:
        screen = app.screen
        screen.snapshot = fleet()
        await settle(pilot)
        assert app.titles[-1] == "✗ 1 needs attention – bt-tui"
        assert len(app._notifications) == 0
        leak = HealthFinding(KINDS["memory-leak"], "warning", "memory leaks", since=datetime.now(UTC))
        job_previews = JOB_PREVIEWS | {"llama70": replace(JOB_PREVIEWS["llama70"], findings=(leak,))}
        done = JOBS[2].model_copy(update={"current_status": "TRAINING_JOB_COMPLETED"})
        ended = (*JOBS[:2], done, *JOBS[3:])
        screen.snapshot = FleetFold().fold(PROJECTS, ended, job_previews, ONE_O_CLOCK)
        await settle(pilot)
        told = sorted(f"{notice.title}: {notice.message}" for notice in app._notifications)
        assert told == ["▲ llama-70b-sft-v3: memory leaks", "✓ whisper-ft: completed"]
        assert app.titles[-1] == "✗ 1 ▲ 1 need attention – bt-tui"
        screen._jobs.move_to("grpo7")
        await pressed(pilot, "z")
        assert "z  qwen3-grpo-7" in text_of(app)
        assert "1 needs attention" in text_of(app)


@pytest.mark.setting("notifications.command", "notifications.webhook")
@pytest.mark.proves("docs/configuration.md", "Notifications")
async def test_program_and_webhook_get_json_without_a_key_and_the_webhook_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BASETEN_API_KEY", "hush")
    monkeypatch.setattr("tui.alerts.delivery.RETRIES", AT_ONCE)
    target = tmp_path / "told.json"
    program = (
        "import os, sys; text = sys.stdin.read();"
        "open(sys.argv[1], 'w').write(text + str('hush' in os.environ.values()))"
    )
    command = [sys.executable, "-c", program, str(target)]
    with Webhook(503) as hook:
        app = watched(notifications={"command": command, "webhook": hook.url})
        async with opened(app, SIZE) as pilot:
            await show(pilot, STALLED)
            await until(pilot, lambda: len(hook.asked) == 2)
            await until(pilot, lambda: target.exists() and target.read_text().endswith("e"))
    headers, body = hook.asked[-1].headers, hook.asked[-1].body
    assert headers["content-type"] == "application/json"
    assert "authorization" not in headers
    line, has_key = target.read_text().split("\n")
    told = json.loads(line)
    assert told == body
    assert (told["event"], told["severity"], told["finding"]["kind"]) == ("finding", "critical", "stalled")
    assert told["job"]["id"] == "llama70"
    assert has_key == "False"


@pytest.mark.setting("notifications.webhook_format")
async def test_webhook_of_the_dashboard_gets_the_chosen_format() -> None:
    with Webhook() as hook:
        app = watched(notifications={"webhook": hook.url, "webhook_format": "slack"})
        async with opened(app, SIZE) as pilot:
            await show(pilot, STALLED)
            await until(pilot, lambda: bool(hook.asked))
    assert hook.asked[0].body["text"].startswith(f"✗ llama-70b-sft-v3: {TOLD}\n")
    assert hook.asked[0].body["mrkdwn"] is False


async def test_failing_destination_is_reported_once_without_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.alerts.delivery.RETRIES", AT_ONCE)
    begun = tmp_path / "begun"
    begun.touch()
    failures: list[str] = []
    with Webhook(500, 500, 404, 403) as hook:
        command = ["sh", "-c", f"echo >> {begun}; exit 3"]
        delivery = AlertDelivery(command, hook.url, failures.append, {"PATH": "/usr/bin:/bin"})
        task = asyncio.create_task(delivery.run())
        for _ in range(3):
            delivery.send(Alert(HEALTHY.job, "critical", ONE_O_CLOCK, STALL))
        while len(hook.asked) < 5 or len(begun.read_text()) < 7:  # noqa: ASYNC110 - processes
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert sorted(failures) == [
        "Notification command failed: sh exited with code 3; it is tried again",
        "Notification webhook failed: HTTP 404; it is not sent again",
        "Notification webhook failed: HTTP 500; it is tried again",
    ]


@pytest.mark.parametrize(("status", "error"), [(307, RedirectRefused), (429, ServerFault), (400, BadRequest)])
async def test_refusing_webhook_is_neither_followed_nor_reached_through_a_proxy(
    monkeypatch: pytest.MonkeyPatch, status: int, error: type[Exception]
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with Webhook(status, retry_after="300") as hook:
        with pytest.raises(error, match=f"HTTP {status}") as refused:
            await post_json(hook.url, b"{}")
        assert len(hook.asked) == 1
    assert getattr(refused.value, "retry_after_s", 300.0) == 300.0


@pytest.mark.parametrize(
    ("command", "why"),
    [(["/no/such/program"], "No such file"), (["sh", "-c", "sleep 600 & wait"], "didn't finish")],
)
async def test_a_program_that_cannot_begin_or_does_not_end_is_told(command: list[str], why: str) -> None:
    with pytest.raises(AlertNotDelivered, match=why):
        await run_command(command, b"{}", {"PATH": "/usr/bin:/bin"}, 0.2)
