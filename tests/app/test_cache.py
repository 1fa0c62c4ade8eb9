"""The cache of a project: its four sights, and what people do with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from support.dashboard import LIVE, Dashboard
from support.waiting import at_rest, until
from tui.analysis.file_tree import FileEntry
from tui.feeds.cache import CacheSnapshot
from tui.screens.cache import CacheScreen
from tui.widgets.file_tree import FileTreeView

GIB = 2**30
HUB = "huggingface/hub/models--meta-llama--Llama-3.1-8B/snapshots/0e9e39f249a16976918f6564b8830bc894c89659"
FILES = (
    *(FileEntry(f"{HUB}/model-0000{n}-of-00004.safetensors", 4 * GIB, 1.7e9) for n in range(1, 5)),
    FileEntry(f"{HUB}/config.json", 855, 1.7e9),
    FileEntry("pip/wheels/torch.whl", GIB, 1.7e9),
)
CAPTURED_S = 1.7e9 + 7200
FULL = CacheSnapshot(False, True, FILES, CAPTURED_S, None)


class StubCacheFeed:
    """Says what it is told to; counts how often it was asked."""

    def __init__(self, *said: CacheSnapshot, publish: Callable[[CacheSnapshot], object]) -> None:
        self.said, self.publish, self.asked = list(said), publish, 0

    async def run(self) -> None:
        self.say()
        await asyncio.Event().wait()

    def refresh(self) -> None:
        self.asked += 1
        self.say()

    def say(self) -> None:
        if self.said:
            self.publish(self.said.pop(0))


def cache_view(*said: CacheSnapshot) -> Dashboard:
    def first() -> Screen[None]:
        screen = CacheScreen(
            "llama-sft",
            lambda publish: StubCacheFeed(*said, publish=publish),  # type: ignore[arg-type,return-value]
            now_s=lambda: CAPTURED_S + 40,
        )
        screen.connection = LIVE
        return screen

    return Dashboard(first)


async def test_what_takes_the_room_is_seen_at_a_glance() -> None:
    app = cache_view(FULL)
    async with app.run_test(size=(80, 24)) as pilot:
        text = await at_rest(pilot)
        assert "17.0 GiB" in text and "6 files" in text and "captured" in text
        assert "94 % models--meta-llama--Llama-3.1-8B" in text.replace("snapshots", "")
        assert text.index("huggingface/") < text.index("pip/")


async def test_loading_none_empty_and_failing_are_four_sights() -> None:
    sights = []
    for snapshot in (
        CacheSnapshot(),
        CacheSnapshot(False, False),
        CacheSnapshot(False, True, (), 1.7e9),
        CacheSnapshot(False, error="HTTP 500: [red]boom[/]"),
    ):
        app = cache_view(snapshot)
        async with app.run_test(size=(60, 20)) as pilot:
            sights.append(await at_rest(pilot))
    assert "Loading the cache" in sights[0]
    assert "has no cache yet" in sights[1]
    assert "The cache is empty" in sights[2]
    assert "Can't read the cache" in sights[3] and "[red]boom[/]" in sights[3]


async def test_a_failing_refresh_keeps_what_was_there_and_says_so() -> None:
    app = cache_view(FULL, replace(FULL, error="HTTP 502 from a proxy"), FULL)
    async with app.run_test(size=(80, 24)) as pilot:
        await at_rest(pilot)
        await pilot.press("r")
        text = await at_rest(pilot)
        assert "Not updated: HTTP 502 from a proxy" in text and "huggingface/" in text
        await pilot.press("r")
        assert "Not updated" not in await at_rest(pilot)


@pytest.mark.parametrize("size", [(80, 24), (60, 20), (40, 14)])
async def test_why_a_refresh_failed_is_told_to_its_end(size: tuple[int, int]) -> None:
    why = "the proxy at the edge answered 502 for a request that took longer than it has patience for."
    app = cache_view(FULL, replace(FULL, error=why))
    async with app.run_test(size=size) as pilot:
        await at_rest(pilot)
        await pilot.press("r")
        seen = " ".join((await at_rest(pilot)).split())
        assert f"{why} Showing last known data; press r to retry." in seen


async def test_filter_sort_and_copy_by_keyboard() -> None:
    app = cache_view(FULL)
    async with app.run_test(size=(80, 24)) as pilot:
        await at_rest(pilot)
        await pilot.press("slash", *"*.json", "enter")
        text = await at_rest(pilot)
        assert "config.json" in text and "torch.whl" not in text and "1 file, 855 B" in text
        await pilot.press("y")
        await until(pilot, lambda: app.clipboard == f"{HUB}/config.json")
        await pilot.press("escape")
        assert "pip/" in await at_rest(pilot)
        await pilot.press("S", "S")
        text = await at_rest(pilot)
        assert "type▴" in text or "name▴" in text
        await pilot.press("V")
        text = await at_rest(pilot)
        assert "▾" in text.splitlines()[2]


@pytest.mark.parametrize("size", [(80, 24), (60, 20), (40, 12)])
async def test_the_active_filter_is_always_told_with_how_much_passes(size: tuple[int, int]) -> None:
    app = cache_view(FULL)
    async with app.run_test(size=size) as pilot:
        await at_rest(pilot)
        await pilot.press("slash", *"*onfi*.json", "enter")
        seen = await at_rest(pilot)
        assert "/*onfi*.json" in seen and "1 file, 855 B" in seen


async def test_a_project_without_a_name_that_is_text_is_shown_inert() -> None:
    app = cache_view(replace(FULL, entries=(FileEntry("\x1b[31mred\x1b[0m/[b]x", 5),)))
    async with app.run_test(size=(80, 24)) as pilot:
        text = await at_rest(pilot)
        assert "\x1b" not in text and "red/" in text


async def looked_at(pilot: Pilot[Any]) -> None:
    await at_rest(pilot)
    await pilot.press("g", "asterisk")
    await at_rest(pilot)


@pytest.mark.parametrize("size", [(80, 24), (60, 20)])
def test_the_looks_of_the_cache(snap_compare: Callable[..., bool], size: tuple[int, int]) -> None:
    assert snap_compare(cache_view(FULL), terminal_size=size, run_before=looked_at)


async def test_a_cache_that_is_emptied_and_filled_again_keeps_the_keyboard_and_the_cursor() -> None:
    app = cache_view(FULL, CacheSnapshot(False, True, (), 1.7e9), FULL)
    async with app.run_test(size=(80, 24)) as pilot:
        await at_rest(pilot)
        tree = app.screen.query_one(FileTreeView)
        await pilot.press("j")
        chosen = tree.cursor_path
        for _ in range(2):
            await pilot.press("r")
            await at_rest(pilot)
            assert app.screen.focused is tree
        assert tree.cursor_path == chosen is not None
