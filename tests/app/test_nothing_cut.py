"""What decides is read to its end at every size: reasons, errors, questions, tips."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from app.log_stories import line
from textual.widgets import Input

from api_client.models import JobMetrics, TrainingJob
from support.dashboard import (
    Dashboard,
    StubFeed,
    deploy_view,
    home,
    job_view,
    loading_home,
    opened,
    pressed,
    resized,
    screen_view,
    settle,
    text_of,
)
from support.waiting import sees, until
from support.wizard_facts import form_of, lora, to
from support.worlds import fleet, job, run
from tui.analysis.connection import Connection, ConnectionState
from tui.analysis.fleet.capacity import CapacityView
from tui.analysis.run.finding import HealthFinding
from tui.analysis.transfers import Transfer, Transfers, TransferState
from tui.analysis.why.explanation import Explanation
from tui.app import BtTuiApp
from tui.app.tips import MIN_SCREEN_LINES
from tui.feeds.files import CacheSnapshot
from tui.feeds.why import WhyView
from tui.forms.deployment import REVIEW
from tui.forms.draft import NO_SECRET
from tui.screens.base import AppScreen
from tui.screens.cache import CacheScreen
from tui.screens.capacity import CapacityScreen
from tui.screens.dialogs import ConfirmScreen
from tui.screens.downloads import DownloadsScreen
from tui.screens.welcome import WelcomeScreen
from tui.screens.why import WhyScreen

CLOCK = "clock is 462d 23h ahead of the server's. Set it: ages, charts and alerts are wrong."
SIZES = [(120, 40), (80, 24), (60, 20), (40, 12)]
PULL = 'Failed to pull image "registry.example/team/trainer/llama-finetune:2.7-cu129": manifest unknown'
LONG_PULL = f"Failed to pull image registry.example/{'team/' * 60}trainer:2.7: manifest unknown"
HINT = "Spot capacity of this GPU type would let the job start sooner."
CAUSE = "ERROR hub: 3 of 3 attempts failed for every file of the set: ConnectionError(ReadTimeout)"
LOST = "the name of api.baseten.example cannot be resolved, as the resolver of this machine is not there"
NO_REMOTE = "no remote is configured: BASETEN_API_KEY is not set, /home/somebody/projects/.trussrc not found"
BORDERS = str.maketrans("▕│", "  ")
GATED = "can't be downloaded without a Hugging Face token; choose a secret with a token"
NAME = "checkpoint-of-the-longest-run-of-llama-70b-with-a-context-of-131072-tokens-3"
DELETED = "Permanently deletes the job, its log, and checkpoints that aren't deployed."
NO_ROOM = Transfer(
    "1",
    f"{NAME} of llama-70b",
    f"/home/somebody/{NAME}",
    TransferState.FAILED,
    error=f"Can't write /home/somebody/experiments/{NAME}/optimizer.pt: No space left on device",
)
SLOW = Explanation(
    "node-2 lags behind the other nodes: GPUs at 60%, others at 96%",
    answer="node-2 logs: WARNING dataloader: /scratch reads at 0.25 GB/s, expected 1.7 GB/s (214×, no other)",
)


def fed(make: Callable[..., AppScreen], *said: object) -> Dashboard:
    return screen_view(lambda: make(partial(StubFeed, *said)))


def downloading(*transfers: Transfer) -> Dashboard:
    app = screen_view(DownloadsScreen)
    app.set_reactive(BtTuiApp.transfers, Transfers(transfers))
    return app


def flowing(text: str) -> str:
    return "".join(text.translate(BORDERS).split())


def without_progress(subject: TrainingJob, *findings: HealthFinding, tab: str = "live") -> Dashboard:
    shown = run(subject, metrics=JobMetrics(), progress=None, checkpoints=(), findings=findings)
    return job_view(shown, tab=tab)


def broken(why: str) -> TrainingJob:
    return job("broken", "DEPLOY_FAILED", error_message=why, hours_ago=5, took_hours=0.1)


@pytest.mark.parametrize(
    ("shown", "words", "sizes"),
    [
        (lambda: without_progress(broken(PULL)), PULL, SIZES),
        (
            lambda: without_progress(job("ablate", "PENDING", hours_ago=1.3, error_message=HINT)),
            f"waiting 1h 18m for 32 H100 · {HINT}",
            SIZES,
        ),
        (lambda: home(fleet((broken(PULL),))), PULL, SIZES),
        (lambda: without_progress(broken(LONG_PULL), tab="details"), LONG_PULL, [(60, 40)]),
        (lambda: job_view(lines=(line(60, CAUSE, 0, "ERROR"),), tab="logs"), CAUSE, SIZES[:3]),
        (lambda: loading_home(Connection(ConnectionState.LOST, reason=LOST)), LOST, SIZES),
        (lambda: loading_home(Connection(ConnectionState.LIVE, clock_ahead_s=4e7)), CLOCK, SIZES),
        (lambda: Dashboard(lambda: WelcomeScreen(NO_REMOTE)), NO_REMOTE, SIZES[:3]),
        (lambda: downloading(NO_ROOM), NO_ROOM.error, SIZES[:3]),
        (lambda: fed(partial(CacheScreen, "llama-sft"), CacheSnapshot(False, error=LOST)), LOST, SIZES),
        (lambda: fed(partial(CapacityScreen, "acme"), CapacityView("failed", error=LOST)), LOST, SIZES),
        (lambda: fed(partial(WhyScreen, run, show_log=print), WhyView((), error=LOST)), LOST, SIZES),
        (lambda: fed(partial(WhyScreen, run, show_log=print), WhyView((), 0, SLOW)), SLOW.answer, SIZES),
        (lambda: Dashboard(partial(ConfirmScreen, f"Delete {NAME}?", DELETED, "Delete")), DELETED, SIZES),
        (lambda: deploy_view(to(form_of(lora(NAME)), REVIEW, hf_secret=NO_SECRET)), GATED, SIZES),
    ],
    ids=[
        *(
            "failure",
            "queue",
            "failure on Home",
            "details",
            "first error",
            "connection",
            "clock",
            "no remote",
            "download",
        ),
        *("cache", "capacity", "why unknown", "why", "question", "review"),
    ],
)
async def test_a_reason(shown: Callable[[], Dashboard], words: str, sizes: list[tuple[int, int]]) -> None:
    app = shown()
    async with app.run_test(size=sizes[0]) as pilot:
        for size in sizes:
            await pilot.resize_terminal(*size)
            await until(pilot, lambda: flowing(words) in flowing(text_of(app)))


async def test_why_a_rank_is_refused_and_the_field_to_correct_it() -> None:
    typed, app = "24", deploy_view(to(form_of(lora("checkpoint-1", r=8)), "lora_rank"))
    async with app.run_test(size=SIZES[0]) as pilot:
        await until(pilot, lambda: bool(app.screen.query("#text")))
        await settle(pilot)
        field = app.screen.query_one("#text", Input)
        assert app.screen.focused is field
        field.value = typed
        await pressed(pilot, "enter")
        why = flowing(app.screen.snapshot.form.question.problem(typed))  # type: ignore[attr-defined]
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await until(pilot, lambda: why in flowing(text_of(app)))
            assert size == SIZES[-1] or field.region in app.screen.query_one("#desk").region


async def test_a_tip_and_a_notification() -> None:
    saved = "Saved the log to /home/somebody/experiments/llama-finetune/2026/logs/of-the-longest-run.log."
    app = home(tips=True)
    async with app.run_test(size=SIZES[0], notifications=True) as pilot:
        await sees(pilot, "tip ")
        _, words = app.screen.query_one("TipLine").tip  # type: ignore[attr-defined]
        for size in SIZES:
            await resized(pilot, *size)
            app.tips.show()
            await settle(pilot)
            has_room = size[1] >= MIN_SCREEN_LINES
            assert (flowing(words) in flowing(text_of(app))) == has_room, size
            app.notify(saved, timeout=1000)
            await sees(pilot, "▌")
            await settle(pilot)
            right = app.screen.query_one("Toast").region.right
            toast = [row[:right].split("▌", 1)[1] for row in text_of(app).splitlines() if "▌" in row]
            assert flowing(saved) == flowing("".join(toast)), size
            app.clear_notifications()


async def test_all_answers_to_the_question_when_to_stop() -> None:
    app = home()
    async with opened(app, SIZES[0]) as pilot:
        await pressed(pilot, "s")
        for size in SIZES:
            await resized(pilot, *size)
            for answer in ("Stop now (y)", "After checkpoint (c)", "When… (w)", "Keep (n)"):
                assert answer in text_of(app), size
            box = app.screen.query_one("#box").content_region
            assert all(button.region in box for button in app.screen.query("Button")) or size == SIZES[-1]


async def test_actions_of_the_review_after_the_terminal_becomes_lower() -> None:
    app = deploy_view(to(form_of(lora("checkpoint-1")), REVIEW))
    async with opened(app, SIZES[0]) as pilot:
        assert "deploy_config" in text_of(app)
        await pilot.resize_terminal(80, 24)
        await sees(pilot, "Leave")
