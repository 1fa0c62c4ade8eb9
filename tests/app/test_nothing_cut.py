"""What decides is read to its end at every size: reasons, errors, questions, tips."""

from __future__ import annotations

import pytest
from app.log_stories import line

from api_client.models import JobMetrics
from support.dashboard import deploy_view, home, job_view, settle, text_of
from support.waiting import until
from support.wizard_facts import lora, to, walk_of
from support.worlds import job, run
from tui.analysis.connection import Connection, ConnectionState
from tui.analysis.run.finding import FindingKind, HealthFinding

SIZES = [(80, 24), (60, 20), (40, 12)]
PULL = 'Failed to pull image "registry.example/team/trainer/llama-finetune:2.7-cu129": manifest unknown'
QUEUE = "waiting 1h 17m for 32 H100; at submission 150 of 96 in use by team-research and team-platform"
CAUSE = "ERROR hub: 3 of 3 attempts failed for every file of the set: ConnectionError(ReadTimeout)"


def flowing(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("size", SIZES)
async def test_why_a_job_could_not_be_deployed(size: tuple[int, int]) -> None:
    failed = job("broken", "DEPLOY_FAILED", error_message=PULL, hours_ago=5, took_hours=0.1)
    app = job_view(run(failed, metrics=JobMetrics(), progress=None, checkpoints=()))
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        assert flowing(PULL) in flowing(text_of(app))


@pytest.mark.parametrize("size", SIZES)
async def test_what_a_job_waits_for(size: tuple[int, int]) -> None:
    queued = HealthFinding(FindingKind.QUEUED, "info", QUEUE)
    waiting = job("ablate", "PENDING", hours_ago=1.3)
    app = job_view(run(waiting, metrics=JobMetrics(), progress=None, checkpoints=(), findings=(queued,)))
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        assert flowing(QUEUE) in flowing(text_of(app))


@pytest.mark.parametrize("size", SIZES[:2])
async def test_the_cause_of_the_first_error(size: tuple[int, int]) -> None:
    app = job_view(lines=(line(60, CAUSE, 0, "ERROR"),), tab="logs")
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        assert flowing(CAUSE) in flowing(text_of(app))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("typed", "rank"), [("24", 8), ("4", 320)])
async def test_why_a_rank_is_refused_and_the_field_to_correct_it(
    size: tuple[int, int], typed: str, rank: int
) -> None:
    app = deploy_view(to(walk_of(lora("checkpoint-1", r=rank)), "lora_rank"))
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await until(pilot, lambda: bool(app.screen.query("#text")))
        await settle(pilot)
        field = app.screen.query_one("#text")
        assert app.screen.focused is field
        field.value = typed  # type: ignore[attr-defined]
        await pilot.press("enter")
        await settle(pilot)
        walk = app.screen.snapshot.walk  # type: ignore[attr-defined]
        assert flowing(walk.step.problem(typed)) in flowing(text_of(app).replace("▕", " "))
        if size != SIZES[-1]:
            assert field.region in app.screen.query_one("#desk").region


@pytest.mark.parametrize("size", SIZES)
async def test_a_tip(size: tuple[int, int]) -> None:
    app = home(hints=True)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "tip " in text_of(app))
        await settle(pilot)
        _, words = app.screen.query_one("HintLine").shown  # type: ignore[attr-defined]
        assert flowing(words) in flowing(text_of(app))


@pytest.mark.parametrize("size", SIZES)
async def test_why_the_server_does_not_answer(size: tuple[int, int]) -> None:
    why = "the name of api.baseten.example cannot be resolved, as the resolver of this machine is not there"
    app = home()
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        app.connection = Connection(ConnectionState.LOST, reason=why)
        await settle(pilot)
        assert flowing(why) in flowing(text_of(app))


async def test_names_in_the_list_of_answers_are_broken_between_their_parts() -> None:
    base = "meta-llama/Llama-3.1-70B-Instruct"
    walk = to(walk_of(lora("checkpoint-1", r=8, base_model=base)), "lora_rank")
    app = deploy_view(walk)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        left = [row.split("▕")[0].strip() for row in text_of(app).splitlines()]
        assert "meta-llama/Llama-3.1-" in left and "70B-Instruct" in left


async def test_the_details_have_the_whole_reason_however_long_its_words() -> None:
    long = f"Failed to pull image registry.example/{'team/' * 60}trainer:2.7: manifest unknown"
    failed = job("broken", "DEPLOY_FAILED", error_message=long, hours_ago=5, took_hours=0.1)
    app = job_view(run(failed, metrics=JobMetrics(), progress=None, checkpoints=()), tab="details")
    async with app.run_test(size=(60, 40)) as pilot:
        await settle(pilot)
        rows = text_of(app).splitlines()
        first = next(y for y, row in enumerate(rows) if row.startswith(" message "))
        column = rows[first].index("Failed")
        assert flowing(long) in flowing("".join(row[column:] for row in rows[first:]))


@pytest.mark.parametrize("size", SIZES)
async def test_a_notification(size: tuple[int, int]) -> None:
    saved = "Saved the log to /home/somebody/experiments/llama-finetune/2026/logs/of-the-longest-run.log."
    app = home()
    async with app.run_test(size=size, notifications=True) as pilot:
        await settle(pilot)
        app.notify(saved)
        await until(pilot, lambda: "▌" in text_of(app))
        await settle(pilot)
        toast = [row.split("▌", 1)[1] for row in text_of(app).splitlines() if "▌" in row]
        assert flowing(saved) == flowing("".join(toast))
