"""The list of downloads and the footer's words about them, as snapshots of a feed would have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.pilot import Pilot

from api_client.transfers import DownloadError, FileProgress, FileState
from support.dashboard import Heard, home, pressed, settle, text_of
from support.worlds import JOBS
from tui.analysis.transfers import DownloadRequest, Transfer, Transfers, TransferState, outcome_text
from tui.feeds.downloads import DownloadsFeed
from tui.screens.dialogs import QuitScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.messages import CancelDownloadRequested, RetryDownloadRequested
from tui.widgets.row_table import RowTable

MIB = 2**20
FOLDER = Path("/downloads/llama-sft_llama70")


def file(name: str, state: FileState, done: int, size: int, error: str = "") -> FileProgress:
    return FileProgress(name, FOLDER / name, state, done, size, error)


GOING = Transfer(
    "1",
    "checkpoint-4000 of llama-70b-sft-v3",
    str(FOLDER),
    TransferState.ACTIVE,
    done_bytes=430 * MIB,
    size_bytes=1000 * MIB,
    speed=112.0 * MIB,
    eta_s=5.0,
    files=(
        file("checkpoint-4000/adapter_config.json", FileState.DONE, 800, 800),
        file("checkpoint-4000/model-1.safetensors", FileState.ACTIVE, 430 * MIB, 900 * MIB),
        file("checkpoint-4000/model-2.safetensors", FileState.WAITING, 0, 100 * MIB),
    ),
)
FAILED = Transfer(
    "2",
    "source of qwen3-grpo-7",
    "/downloads",
    TransferState.FAILED,
    done_bytes=MIB,
    size_bytes=4 * MIB,
    files=(file("[bold]evil\x1b[31m.tgz", FileState.FAILED, MIB, 4 * MIB, "HTTP 403 \x1b[2J"),),
    error="1 of 1 file failed",
)
BOTH = Transfers((GOING, FAILED))


async def opened(pilot: Pilot[Any]) -> None:
    app = pilot.app
    await settle(pilot)
    app.transfers = BOTH
    await pressed(pilot, "T")


SIZES = [(60, 20), (80, 24), (120, 40)]


async def listed(pilot: Pilot[Any], *transfers: Transfer) -> str:
    pilot.app.transfers = Transfers(transfers)
    await settle(pilot)
    return text_of(pilot.app)


async def test_a_walk_through_the_list_at_every_size() -> None:
    heard = Heard(CancelDownloadRequested, RetryDownloadRequested)
    stalled = replace(GOING, stalled_s=12.0, note="the store broke off")
    app = home()
    async with app.run_test(size=SIZES[0], message_hook=heard) as pilot:
        assert "↓" not in (await listed(pilot, FAILED)).splitlines()[-1]
        assert "↓ 2 files 43% 112 MiB/s" in (await listed(pilot, GOING, FAILED)).splitlines()[-1]
        await pressed(pilot, "T")
        for size in SIZES:
            await pilot.resize_terminal(*size)
            text = await pressed(pilot, "g")
            for words in ("✗ 1 failed", "loading", "43%", "model-1.safetensors", "adapter_config.json"):
                assert words in text, size
            assert "↓ 2 files 43% 112 MiB/s" in text.splitlines()[-1]
            await listed(pilot, stalled, FAILED)
            text = await pressed(pilot, "g")
            assert "↓ 2 files 43% stalled" in text.splitlines()[-1]
            assert "No data for 12s (the store broke off)." in text and "112 MiB/s" not in text
            text = await pressed(pilot, "G")
            assert "[bold]evil" in text and "\x1b" not in text and "press t to resume" in text
            await listed(pilot, GOING, FAILED)
            tables = list(app.screen.query(RowTable))
            above, below = (table.visible_column_widths for table in tables)
            assert {name: above[name] for name in above.keys() & below.keys()}.items() <= below.items()
        await pressed(pilot, "g", "t", "x", "j", "x", "t")
        told = [(type(one), one.transfer_id) for one in heard.messages]
        assert told == [(CancelDownloadRequested, "1"), (RetryDownloadRequested, "2")]
        await pressed(pilot, "escape")
        assert isinstance(app.screen, HomeScreen)


async def test_the_list_opens_at_what_is_running_and_says_what_can_be_done_with_each() -> None:
    present = FileProgress(
        "checkpoint-4000/a", FOLDER / "a", FileState.SKIPPED, 800, 800, note="the same file is there"
    )
    done = replace(GOING, id="0", title="done before", state=TransferState.DONE, files=(present,))
    app = home()
    async with app.run_test(size=SIZES[1]) as pilot:
        await listed(pilot, done, GOING, FAILED)
        assert "model-1.safetensors" in await pressed(pilot, "T")
        for key, offered in (("", {"cancel"}), ("k", set()), ("G", {"resume"})):
            footer = (await pressed(pilot, *key)).splitlines()[-1]
            assert {"cancel", "resume"} & set(footer.split()) == offered
        assert "No downloads." in await listed(pilot)
        text = await listed(pilot, done)
        assert done.title in text and "= present" in text and "the same file is there" in text
        text = await listed(pilot, replace(FAILED, done_bytes=0, files=()))
        assert "Nothing downloaded yet; press t to retry." in text
        assert "is kept" not in text and "0 files" not in text


@pytest.mark.proves("docs/keys.md", "Downloads")
async def test_keys_of_no_use_on_downloads_say_why() -> None:
    done = replace(GOING, state=TransferState.DONE)
    said = {
        "x": ("No downloads.", "This download has ended."),
        "t": ("No downloads.", "Only canceled or failed downloads can be resumed."),
        "y": ("No downloads.", "Copied folder"),
        "c": ("No download has ended.", ""),
    }
    app = home()
    async with app.run_test(size=SIZES[1]) as pilot:
        await pressed(pilot, "T")
        for place, transfers in enumerate(((), (done,))):
            await listed(pilot, *transfers)
            for key, answers in said.items():
                app.clear_notifications()
                await pressed(pilot, key)
                notices = " ".join(notice.message for notice in app._notifications)
                assert answers[place] in notices and bool(notices) == bool(answers[place]), key


def test_the_looks_of_the_list(snap_compare: Callable[..., bool]) -> None:
    assert snap_compare(home(), terminal_size=(80, 24), run_before=opened)


def test_what_became_of_a_download_is_a_sentence_that_says_what_to_do() -> None:
    assert "Press T, then t to resume." in outcome_text(FAILED, "T, then t")
    done = Transfer("3", "x", "/there", TransferState.DONE, size_bytes=MIB, files=GOING.files[:1])
    assert outcome_text(done, "") == f"Downloaded x to {done.files[0].path}: 1.00 MiB, 1 file."


async def test_code_of_a_job_is_named_after_it() -> None:
    names = []

    async def plan_archive(*_job: object, project_name: str) -> None:
        names.append(project_name)
        raise DownloadError("planned")

    client = SimpleNamespace(downloads=SimpleNamespace(plan_archive=plan_archive))
    session: Any = SimpleNamespace(client=client)
    feed = DownloadsFeed(session, publish=lambda _: None, on_end=lambda _: None)
    check: Any = None  # nothing was planned
    await feed.download(feed.begin(DownloadRequest(JOBS[0], archive=True), FOLDER), check)
    assert names == [JOBS[0].name]


async def test_repeated_quit_key_asks_once() -> None:
    app = home()
    async with app.run_test(size=SIZES[1]) as pilot:
        await settle(pilot)
        app.transfers = BOTH
        await pilot.press(*["ctrl+q"] * 3)
        assert [type(screen) for screen in app.screen_stack[2:]] == [QuitScreen]
