"""The tab of checkpoints: which is the newest, which the best, and what is done with them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from textual.message import Message

from api_client.models import Checkpoint
from support.dashboard import Dashboard, job_view, settle, text_of
from support.worlds import ONE_O_CLOCK, run
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.finding import FindingKind
from tui.analysis.run.saved import CheckpointFault, saved_key
from tui.screens.job.checkpoint_pane import CheckpointPane
from tui.screens.messages import CompareCheckpointsRequested, DownloadRequested, OpenCheckpointRequested


def checkpoint(name: str, minutes_ago: float | None = 10, **fields: Any) -> Checkpoint:
    created = ONE_O_CLOCK - timedelta(minutes=minutes_ago) if minutes_ago is not None else None
    given = {"checkpoint_type": "lora", "lora_adapter_config": {"r": 16}, "size_bytes": 2**30}
    return Checkpoint(checkpoint_id=name, created_at=created, **(given | fields))


THREE = (
    checkpoint("checkpoint-100", 30),
    checkpoint("checkpoint-200", 20),
    checkpoint("checkpoint-300", 10, sync_status="SYNCING"),
)
LOSSES = ProgressSnapshot(loss_by_step=((100, 0.9), (200, 0.5), (300, 0.7)))


def tab(checkpoints: tuple[Checkpoint, ...], progress: ProgressSnapshot = LOSSES) -> Dashboard:
    return job_view(run(checkpoints=checkpoints, progress=progress), tab="checkpoints")


class Heard:
    """The requests that reach the app, each once."""

    def __init__(self, kind: type[Message]) -> None:
        self.kind, self.messages = kind, []

    def __call__(self, message: Message) -> None:
        if isinstance(message, self.kind) and message not in self.messages:
            self.messages.append(message)


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (140, 40)])
async def test_newest_best_and_uploading_are_said_in_words(size: tuple[int, int]) -> None:
    app = tab(THREE)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        text = text_of(app)
        assert "3 checkpoints 3.00 GiB" in text
        lines = {
            line.split()[0]: line for line in text.splitlines() if line.strip().startswith("checkpoint-")
        }
        assert list(lines) == ["checkpoint-300", "checkpoint-200", "checkpoint-100"]
        assert "LoRA r=16" in lines["checkpoint-100"]
        assert "1 uploading" in text
        if size[0] >= 80:
            assert "uploading" in lines["checkpoint-300"] and "newest" in lines["checkpoint-300"]
            assert "★ best" in lines["checkpoint-200"]
        if size[0] >= 100:
            assert "best checkpoint-200, loss 0.500 at step 200" in text


async def test_checkpoints_after_the_loss_broke_are_marked_and_not_the_best() -> None:
    fault = CheckpointFault(
        FindingKind.LOSS_NOT_FINITE, "the loss became NaN", ONE_O_CLOCK - timedelta(minutes=25)
    )
    faults = {saved_key(one): fault if one is THREE[1] else None for one in THREE}
    app = job_view(run(checkpoints=THREE, progress=LOSSES, faults=faults), tab="checkpoints")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        lines = {
            line.split()[0]: line for line in text_of(app).splitlines() if line.strip().startswith("checkp")
        }
        assert "✗ after NaN" in lines["checkpoint-200"] and "NaN" in lines["checkpoint-200"]
        assert "★ best" in lines["checkpoint-100"]
        assert "✗ 1 after the loss diverged" in text_of(app)


async def test_nothing_is_the_best_while_the_log_is_read() -> None:
    app = job_view(run(checkpoints=THREE, progress=LOSSES, log_read=False), tab="checkpoints")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "best" not in text_of(app)
        assert "reading the log to check them…" in text_of(app)


async def test_odd_checkpoints_are_shown_and_nothing_crashes() -> None:
    odd = (
        checkpoint(".", None, checkpoint_type=None, lora_adapter_config=None, size_bytes=None),
        checkpoint("zero", size_bytes=0, sync_status="HALF"),
        checkpoint("same"),
        checkpoint("same", 50),
        checkpoint("\x1b[31m[bold]evil\x1b[0m\n", checkpoint_type="[red]new[/]"),
        checkpoint("r", lora_adapter_config={"r": {"nested": 1}}),
    )
    app = tab(odd)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        for key in ("S", "S", "S", "S", "V", "space", "G", "space", "g"):
            await pilot.press(key)
        text = text_of(app)
        assert "6 checkpoints" in text and "[bold]evil" in text and "HALF" in text
        assert text.count(" same ") == 2
        assert "\x1b" not in text


async def test_three_thousand_checkpoints() -> None:
    app = tab(tuple(checkpoint(f"checkpoint-{n}", n) for n in range(3000)))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "3,000 checkpoints" in text_of(app)
        await pilot.press("S", "G")
        await settle(pilot)
        assert "checkpoint-2999" in text_of(app)


async def test_none_and_loading_are_two_sights() -> None:
    for checkpoints, words in (((), "No checkpoints."), (None, "Loading checkpoints")):
        app = tab(checkpoints)  # type: ignore[arg-type]
        async with app.run_test(size=(60, 20)) as pilot:
            await settle(pilot)
            assert words in text_of(app)


async def test_marks_choose_what_is_downloaded() -> None:
    app, heard = tab(THREE), Heard(DownloadRequested)
    async with app.run_test(size=(80, 24), message_hook=heard) as pilot:
        await settle(pilot)
        await pilot.press("D")
        await pilot.press("space", "space", "D")
        await settle(pilot)
        assert "2 marked" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "marked" not in text_of(app)
    assert [message.wanted.checkpoints for message in heard.messages] == [
        ("checkpoint-300",),
        ("checkpoint-300", "checkpoint-200"),
    ]
    assert heard.messages[1].wanted.size_bytes == 2 * 2**30


async def test_the_source_of_the_job_is_asked_for() -> None:
    app, heard = tab(THREE), Heard(DownloadRequested)
    async with app.run_test(size=(80, 24), message_hook=heard) as pilot:
        await settle(pilot)
        await pilot.press("A")
        await settle(pilot)
    (message,) = heard.messages
    assert message.wanted.archive and not message.wanted.checkpoints


async def test_two_marked_ones_are_compared_in_the_order_of_their_steps() -> None:
    app, heard = tab(THREE), Heard(CompareCheckpointsRequested)
    async with app.run_test(size=(80, 24), message_hook=heard, notifications=True) as pilot:
        await settle(pilot)
        await pilot.press("equals_sign")
        await settle(pilot)
        assert "Mark two checkpoints" in text_of(app)
        await pilot.press("space", "G", "space", "equals_sign")
        await settle(pilot)
    (message,) = heard.messages
    assert (message.left.name, message.right.name) == ("checkpoint-100", "checkpoint-300")


async def test_enter_looks_inside_and_the_resume_config_is_copied() -> None:
    app, heard = tab(THREE), Heard(OpenCheckpointRequested)
    async with app.run_test(size=(80, 24), message_hook=heard) as pilot:
        await settle(pilot)
        await pilot.press("j", "enter", "L")
        await settle(pilot)
        assert 'checkpoint_name="checkpoint-200"' in app.clipboard
        assert "LoadCheckpointConfig(" in app.clipboard
    assert [message.checkpoint.checkpoint_id for message in heard.messages] == ["checkpoint-200"]


async def test_the_place_is_kept_when_a_newer_checkpoint_comes() -> None:
    app = tab(THREE)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("j", "space", "k")
        pane = app.screen.query_one(CheckpointPane)
        assert pane.chosen is not None and pane.chosen.name == "checkpoint-200"
        pane.show_run(run(checkpoints=(*THREE, checkpoint("checkpoint-400", 1)), progress=LOSSES))
        await settle(pilot)
        assert pane.chosen is not None and pane.chosen.name == "checkpoint-200"
        assert [one.name for one in pane.marked] == ["checkpoint-200"]


async def test_who_opens_the_tab_finds_the_cursor_on_the_newest_whatever_came_first() -> None:
    app = job_view(run(checkpoints=THREE[:1], progress=LOSSES))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        screen = app.screen
        screen.snapshot = run(checkpoints=THREE, progress=LOSSES)  # type: ignore[attr-defined]
        await settle(pilot)
        await pilot.press("4")
        await settle(pilot)
        chosen = screen.query_one(CheckpointPane).chosen
        assert chosen is not None
        assert chosen.name == "checkpoint-300"


async def test_what_comes_while_somebody_looks_moves_no_cursor() -> None:
    app = tab(THREE[:2])
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app.screen.snapshot = run(checkpoints=THREE, progress=LOSSES)  # type: ignore[attr-defined]
        await settle(pilot)
        chosen = app.screen.query_one(CheckpointPane).chosen
        assert chosen is not None
        assert chosen.name == "checkpoint-200"


async def test_a_cursor_that_was_put_somewhere_stays_there_while_the_tab_is_away() -> None:
    app = tab(THREE[:2])
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("j", "1")
        app.screen.snapshot = run(checkpoints=THREE, progress=LOSSES)  # type: ignore[attr-defined]
        await settle(pilot)
        await pilot.press("4")
        chosen = app.screen.query_one(CheckpointPane).chosen
        assert chosen is not None
        assert chosen.name == "checkpoint-100"
