"""New findings and ended jobs reach people who look elsewhere, by every way that is wanted, once."""

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alert_places import HEALTHY, NotingDashboard, settings, watched, webhook
from textual import events
from textual.pilot import Pilot

from support.dashboard import settle, text_of
from support.waiting import until
from support.worlds import GLANCES, JOBS, ONE_O_CLOCK, PROJECTS, StubFleetFeed, fleet
from tui.alerts.delivery import AlertNotDelivered, post, run_command
from tui.analysis.fleet.snapshot import FleetFold
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.screens.home.screen import HomeScreen
from tui.screens.job.screen import JobScreen

SIZE = (100, 24)
STALL = HealthFinding(FindingKind.STALLED, "critical", "no step for 9m, though \x1b[31mGPUs are busy")
QUEUE = HealthFinding(FindingKind.QUEUED, "info", "waiting for capacity")
STALLED = replace(HEALTHY, findings=(STALL,))
FAILED = replace(
    HEALTHY,
    job=HEALTHY.job.model_copy(update={"current_status": "TRAINING_JOB_FAILED", "error_message": "exit 1"}),
)


async def show(pilot: Pilot[object], snapshot: RunSnapshot) -> None:
    screen = pilot.app.screen
    assert isinstance(screen, JobScreen)
    screen.post_message(JobScreen.Published(snapshot))
    await settle(pilot)


def blur(app: NotingDashboard) -> None:
    app.post_message(events.AppBlur())


async def test_a_new_finding_is_a_notice_once_and_the_title_tells_the_state() -> None:
    app = watched()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settle(pilot)
        assert app.titles[-1] == "● llama-70b-sft-v3 46% – bt-tui"
        await show(pilot, STALLED)
        assert app.titles[-1] == "✗ llama-70b-sft-v3 stalled – bt-tui"
        assert "no step for 9m, though GPUs are busy" in text_of(app)
        for _ in range(3):
            await show(pilot, replace(STALLED, findings=(replace(STALL, text="no step for 10m"),)))
        assert len(app._notifications) == 1
        await show(pilot, HEALTHY)
        assert app.titles[-1].startswith("●")
    assert app.written[-1].endswith("\x1b[23;2t")


async def test_what_is_there_when_the_dashboard_opens_is_no_news() -> None:
    app = watched(STALLED)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settle(pilot)
        await show(pilot, STALLED)
        assert len(app._notifications) == 0
        assert app.titles == ["✗ llama-70b-sft-v3 stalled – bt-tui"]


async def test_nothing_is_told_before_the_log_was_read() -> None:
    app = watched(replace(HEALTHY, log_read=False))
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settle(pilot)
        await show(pilot, replace(HEALTHY, log_read=False))
        await show(pilot, STALLED)
        assert len(app._notifications) == 0


async def test_the_end_of_a_job_is_told() -> None:
    app = watched()
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settle(pilot)
        await show(pilot, FAILED)
        assert "failed: exit 1" in text_of(app)
        assert app.titles[-1] == "✗ llama-70b-sft-v3 failed – bt-tui"


@pytest.mark.parametrize(
    ("wanted", "focused", "written", "rings"),
    [
        ({"osc": "9", "bell": True}, True, [], 0),
        (
            {"osc": "9", "bell": True},
            False,
            ["\x1b]9;✗ llama-70b-sft-v3: no step for 9m, though GPUs are busy\x07"],
            1,
        ),
        (
            {"osc": "777"},
            False,
            ["\x1b]777;notify;✗ llama-70b-sft-v3;no step for 9m, though GPUs are busy\x07"],
            0,
        ),
        ({"osc": "off", "bell": True}, False, [], 1),
        (
            {"osc": "9", "bell": True, "only_when_unfocused": False},
            True,
            ["\x1b]9;✗ llama-70b-sft-v3: no step for 9m, though GPUs are busy\x07"],
            1,
        ),
    ],
)
async def test_bell_and_terminal_only_while_it_has_not_the_focus(
    monkeypatch: pytest.MonkeyPatch, wanted: dict[str, object], focused: bool, written: list[str], rings: int
) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.delenv("STY", raising=False)
    app = watched(notifications=wanted)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        app.post_message(events.AppFocus())
        if not focused:
            blur(app)
        await settle(pilot)
        await show(pilot, STALLED)
        assert app.notifications_written == written
        assert app.rings == rings


@pytest.mark.parametrize(
    ("wanted", "snapshot", "notices"),
    [
        ({}, replace(HEALTHY, findings=(QUEUE,)), 0),
        ({"min_severity": "info"}, replace(HEALTHY, findings=(QUEUE,)), 1),
        ({"min_severity": "critical"}, STALLED, 1),
        ({"toast": False}, STALLED, 0),
        ({"job_end": False}, FAILED, 0),
    ],
)
async def test_what_is_told_can_be_chosen(
    wanted: dict[str, object], snapshot: RunSnapshot, notices: int
) -> None:
    app = watched(notifications=wanted)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settle(pilot)
        await show(pilot, snapshot)
        assert len(app._notifications) == notices


async def test_the_title_can_be_left_alone() -> None:
    app = watched(notifications={"title": False})
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await show(pilot, STALLED)
    assert app.written == []


async def test_snoozing_silences_the_header_the_title_and_what_comes_again_until_it_is_woken() -> None:
    app = watched(STALLED, notifications={"snooze_minutes": 45})
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settle(pilot)
        await pilot.press("z")
        await settle(pilot)
        screen = text_of(app)
        assert "snoozed for 45m" in screen
        assert "z snoozed: no step for 9m" in screen
        await show(pilot, STALLED)
        assert app.titles[-1] == "● llama-70b-sft-v3 46% – bt-tui"
        await pilot.press("z")
        await settle(pilot)
        await show(pilot, STALLED)
        assert "z snoozed" not in text_of(app)
        assert app.titles[-1] == "✗ llama-70b-sft-v3 stalled – bt-tui"


async def test_home_tells_of_every_job_and_snoozes_the_one_under_the_cursor() -> None:
    def first() -> HomeScreen:
        return HomeScreen(lambda publish: StubFleetFeed(fleet(), publish), "acme")  # type: ignore[arg-type,return-value]

    app = NotingDashboard(first, settings=settings())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settle(pilot)
        assert app.titles[-1] == "▲ 1 needs attention – bt-tui"
        assert len(app._notifications) == 0
        leak = HealthFinding(FindingKind.MEMORY_LEAK, "warning", "memory leaks", since=datetime.now(UTC))
        job_previews = GLANCES | {"llama70": replace(GLANCES["llama70"], findings=(leak,))}
        ended = tuple(
            one.model_copy(update={"current_status": "TRAINING_JOB_COMPLETED"})
            if one.id == "whisper"
            else one
            for one in JOBS
        )
        screen = app.screen
        assert isinstance(screen, HomeScreen)
        screen.snapshot = FleetFold().fold(PROJECTS, ended, job_previews, ONE_O_CLOCK)
        await settle(pilot)
        told = sorted(f"{notice.title}: {notice.message}" for notice in app._notifications)
        assert told == ["▲ llama-70b-sft-v3: memory leaks", "✓ whisper-ft: completed"]
        assert app.titles[-1] == "▲ 2 need attention – bt-tui"
        screen._jobs.move_to("grpo7")
        await pilot.press("z")
        await settle(pilot)
        assert "z stalled" in text_of(app)
        assert "1 needs attention" in text_of(app)


async def test_what_the_first_glance_finds_is_no_news_though_the_job_was_listed_before() -> None:
    listed = FleetFold().fold(PROJECTS, JOBS, {}, ONE_O_CLOCK)

    def first() -> HomeScreen:
        return HomeScreen(lambda publish: StubFleetFeed(listed, publish), "acme")  # type: ignore[arg-type,return-value]

    app = NotingDashboard(first, settings=settings())
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settle(pilot)
        app.screen.snapshot = fleet()  # type: ignore[attr-defined]
        await settle(pilot)
        assert app.titles[-1] == "▲ 1 needs attention – bt-tui"
        assert len(app._notifications) == 0


async def test_the_users_program_gets_json_on_its_standard_input_and_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BASETEN_API_KEY", "hush")
    target = tmp_path / "told.json"
    program = (
        "import os, sys; text = sys.stdin.read();"
        "open(sys.argv[1], 'w').write(text + str('hush' in os.environ.values()))"
    )
    app = watched(notifications={"command": [sys.executable, "-c", program, str(target)]})
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await show(pilot, STALLED)
        await until(pilot, lambda: target.exists() and target.read_text().endswith("e"))
    line, has_key = target.read_text().split("\n")
    told = json.loads(line)
    assert (told["event"], told["severity"], told["finding"]["kind"]) == ("finding", "critical", "stalled")
    assert told["job"]["id"] == "llama70"
    assert has_key == "False"


async def test_the_webhook_gets_json_without_a_key_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui.alerts.delivery.RETRY_PAUSE_S", 0.0)
    with webhook(503) as hook:
        app = watched(notifications={"webhook": hook.url})
        async with app.run_test(size=SIZE) as pilot:
            await settle(pilot)
            await show(pilot, STALLED)
            await until(pilot, lambda: len(hook.heard) == 2)
    headers, body = hook.heard[-1]
    assert headers["content-type"] == "application/json"
    assert "authorization" not in headers
    assert body["finding"]["kind"] == "stalled"


@pytest.mark.parametrize(
    "wanted",
    [{"command": ["/no/such/program"]}, {"command": ["false"]}, {"webhook": "http://127.0.0.1:9/hush"}],
)
async def test_a_way_that_fails_is_told_once_without_its_address(
    wanted: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.alerts.delivery.RETRY_PAUSE_S", 0.0)
    app = watched(notifications={"toast": False, **wanted})
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await settle(pilot)
        await show(pilot, STALLED)
        await until(pilot, lambda: len(app._notifications) == 1)
        await show(pilot, FAILED)
        await settle(pilot)
        assert next(iter(app._notifications)).message.startswith("Notification ")
        assert "hush" not in text_of(app)


async def test_a_webhook_that_leads_elsewhere_is_not_followed_nor_tried_again() -> None:
    with webhook(307) as hook:
        with pytest.raises(AlertNotDelivered, match="HTTP 307"):
            await post(hook.url, b"{}", pause_s=0.0)
        assert len(hook.heard) == 1


async def test_a_program_that_does_not_end_is_ended(tmp_path: Path) -> None:
    started = tmp_path / "started"
    with pytest.raises(AlertNotDelivered, match="didn't finish"):
        await run_command(
            ["sh", "-c", f"sleep 600 & touch {started}; wait"], b"{}", {"PATH": "/usr/bin:/bin"}, 0.5
        )


async def test_no_proxy_sees_a_webhook_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with webhook(200) as hook:
        await post(hook.url, b"{}", pause_s=0.0)
    assert len(hook.heard) == 1
