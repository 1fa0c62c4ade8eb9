"""The tab of checkpoints: which is the newest, which the best, and what is done with them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from api_client.models import Checkpoint
from support.dashboard import Dashboard, Heard, job_view, opened, pressed, resized, text_of
from support.sick_runs import sick_run
from support.waiting import until
from support.worlds import ONE_O_CLOCK, run
from tui.analysis.health.registry import KINDS
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.checkpoints import CheckpointFault, saved_key
from tui.analysis.series import Series
from tui.screens.base import OpenPage
from tui.screens.job.checkpoint_pane import CheckpointPane
from tui.screens.messages import DownloadRequested
from tui.widgets.row_table import RowTable


def checkpoint(name: str, minutes_ago: float | None = 10, **fields: Any) -> Checkpoint:
    created = ONE_O_CLOCK - timedelta(minutes=minutes_ago) if minutes_ago is not None else None
    given = {"checkpoint_type": "lora", "lora_adapter_config": {"r": 16}, "size_bytes": 2**30}
    return Checkpoint(checkpoint_id=name, created_at=created, **(given | fields))


THREE = (
    checkpoint("checkpoint-100", 30),
    checkpoint("checkpoint-200", 20),
    checkpoint("checkpoint-300", 10, sync_status="SYNCING"),
)
SIZES = ((140, 40), (80, 24), (60, 20))
LOSSES = ProgressSnapshot(loss_by_step=((100, 0.9), (200, 0.5), (300, 0.7)))


def tab(checkpoints: tuple[Checkpoint, ...] | None, progress: ProgressSnapshot = LOSSES) -> Dashboard:
    return job_view(run(checkpoints=checkpoints, progress=progress), tab="checkpoints")


def listed(text: str) -> dict[str, str]:
    return {line.split()[0]: line for line in text.splitlines() if line.strip().startswith("checkpoint-")}


async def test_newest_best_and_uploading_are_said_in_words_at_every_width() -> None:
    async with opened(tab(THREE), (140, 40)) as pilot:
        for size in SIZES:
            text = await resized(pilot, *size)
            assert "3 checkpoints 3.00 GiB" in text and "1 uploading" in text
            lines = listed(text)
            assert list(lines) == ["checkpoint-300", "checkpoint-200", "checkpoint-100"]
            assert "↑ uploading, newest" in lines["checkpoint-300"]
            assert lines["checkpoint-300"].count("uploading") == 1 and "stored" not in text
            assert all(words in lines["checkpoint-200"] for words in ("★ best", "200", "0.500"))
            assert ("LoRA r=16" in lines["checkpoint-100"]) == (size[0] >= 80)
            assert "┤" in text  # the curve has room
            if size[0] >= 100:
                assert "best checkpoint-200, loss 0.500 at step 200" in text
        text = await resized(pilot, 80, 16)
        assert "checkpoint-100" in text and "┤" not in text


async def test_checkpoints_of_reinforcement_learning_show_the_reward_at_every_width() -> None:
    steps = Series("step", (1.0, 2.0, 3.0), (100.0, 200.0, 300.0))
    reward = Series("critic/rewards/mean", (1.0, 2.0, 3.0), (0.125, 0.5, 0.75))
    async with opened(
        tab(THREE, replace(LOSSES, step_series=steps, metrics={reward.name: reward})), (140, 40)
    ) as pilot:
        for size in SIZES:
            assert "0.125" in listed(await resized(pilot, *size))["checkpoint-100"]


async def test_curve_that_gets_room_is_drawn_at_once() -> None:
    async with opened(
        job_view(replace(sick_run("hang"), checkpoints=THREE), tab="checkpoints"), (120, 14)
    ) as pilot:
        assert "┤" not in text_of(pilot.app)
        assert "┤" in await resized(pilot, 120, 40)


async def test_without_checkpoints_there_are_the_curve_and_no_keys_for_them() -> None:
    for progress, has_curve in ((sick_run("hang").progress, True), (LOSSES, False)):
        async with opened(tab((), progress or LOSSES), (80, 24)) as pilot:
            text = await pressed(pilot)
            assert "No checkpoints" in text and "download" not in text
            assert ("loss  " in text.partition("No checkpoints")[2]) is has_curve


async def test_what_is_said_before_and_after_they_are_judged() -> None:
    fault = CheckpointFault(
        KINDS["loss-not-finite"], "the loss became NaN", ONE_O_CLOCK - timedelta(minutes=25)
    )
    faults = {saved_key(one): fault if one is THREE[1] else None for one in THREE}
    async with opened(tab(None)) as pilot:

        async def sight(**fields: Any) -> str:
            pilot.app.screen.snapshot = run(**{"checkpoints": THREE, "progress": LOSSES} | fields)  # type: ignore[attr-defined]
            return await pressed(pilot)

        assert "Loading checkpoints" in await sight(checkpoints=None)
        text = await sight(checkpoints=())
        assert "No checkpoints." in text and "BT_CHECKPOINT_DIR" in text
        text = await sight(log_read=False)
        assert "best" not in text and "reading the log to check them…" in text
        text = await sight(faults=faults)
        assert "✗ after NaN" in listed(text)["checkpoint-200"]
        assert "★ best" in listed(text)["checkpoint-100"]
        assert "✗ 1 after the loss diverged" in text


@pytest.mark.proves("README.md", "What is in this checkpoint?")
async def test_rows_are_marked_downloaded_compared_opened_and_resumed_from() -> None:
    heard = Heard(DownloadRequested, OpenPage)
    async with opened(tab(THREE), message_hook=heard, notifications=True) as pilot:
        assert "Mark two checkpoints" in await pressed(pilot, "equals_sign")
        await pilot.press("A", "D")
        assert "2 marked" in await pressed(pilot, "space", "G", "space", "D", "equals_sign")
        assert "2 marked" not in await pressed(pilot, "escape")
        await pressed(pilot, "g", "j", "enter", "L")
        assert 'checkpoint_name="checkpoint-200"' in pilot.app.clipboard
        assert "LoadCheckpointConfig(" in pilot.app.clipboard
    source, one, two, compared, inside = heard.messages
    assert source.request.archive and not source.request.checkpoints
    assert one.request.checkpoints == ("checkpoint-300",)
    assert two.request.checkpoints == ("checkpoint-300", "checkpoint-100")
    assert two.request.size_bytes == 2 * 2**30
    assert compared.page.ids[1:] == ("checkpoint-100", "checkpoint-300")  # by step
    assert inside.page.checkpoint.checkpoint_id == "checkpoint-200"


async def test_id_that_is_copied_is_the_address_of_the_checkpoint_on_its_tab() -> None:
    async with opened(tab(THREE)) as pilot:
        await pressed(pilot, "g", "y")
        assert pilot.app.clipboard == "bt://llama-sft@llama70/checkpoint-300"
        await pressed(pilot, "2", "y")
        assert pilot.app.clipboard == "llama70"


async def test_the_cursor_stays_where_it_was_put_and_else_is_on_the_newest() -> None:
    async with opened(job_view(run(checkpoints=THREE[:1], progress=LOSSES))) as pilot:
        pane = pilot.app.screen.query_one(CheckpointPane)

        async def chosen(*keys: str, come: tuple[Checkpoint, ...] = THREE) -> str:
            pilot.app.screen.snapshot = run(checkpoints=come, progress=LOSSES)  # type: ignore[attr-defined]
            await pressed(pilot, *keys)
            assert pane.chosen_checkpoint is not None
            return pane.chosen_checkpoint.name

        assert await chosen("4", come=THREE[:2]) == "checkpoint-200"
        assert await chosen() == "checkpoint-200", "somebody looks at it"
        await pressed(pilot, "space", "1")
        newer = (*THREE, checkpoint("checkpoint-400", 1))
        assert await chosen("4", come=newer) == "checkpoint-100", "somebody moved it"
        assert [one.name for one in pane.marked_checkpoints] == ["checkpoint-200"]


async def test_sort_key_walks_the_shown_columns_and_unknown_losses_stay_last() -> None:
    found = tuple(checkpoint(f"checkpoint-{step}", 60 - step / 100) for step in (100, 200, 300, 5000))
    logged = ProgressSnapshot(loss_by_step=((90, 2.0), (190, 1.0), (290, 1.5)))
    async with opened(tab(found, logged), (120, 30)) as pilot:
        table = pilot.app.screen.query_one("#checkpoint-table", RowTable)
        walked, losses = [], {}
        for _ in range(len(table.visible_column_widths) - 1):  # marks have no order
            await pilot.press("S")
            assert table.sort_mark is not None
            walked.append(table.sort_mark[0])
            if walked[-1] == "loss":
                for key in ("V", "V"):
                    await pilot.press(key)
                    losses[table.sort_mark[1]] = [row.facts.step for row in table.rows]
        assert set(walked) == table.visible_column_widths.keys() - {"marks"}
        assert losses == {False: [200, 300, 100, 5000], True: [100, 300, 200, 5000]}


async def test_many_checkpoints_are_judged_again_while_the_log_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tui.screens.job.checkpoint_pane.MANY_CHECKPOINTS", 1)
    async with opened(tab(THREE), (140, 40)) as pilot:
        screen: Any = pilot.app.screen
        newer = ProgressSnapshot(loss_by_step=((100, 0.4), (200, 0.5), (300, 0.7)))
        for later_s in (1, 6):
            at = screen.snapshot.at + timedelta(seconds=later_s)
            screen.receive(replace(screen.snapshot, at=at, progress=newer))
            if later_s > 5:
                await until(pilot, lambda: "best checkpoint-100, loss 0.400" in text_of(pilot.app))
            else:
                assert "best checkpoint-200" in await pressed(pilot)
