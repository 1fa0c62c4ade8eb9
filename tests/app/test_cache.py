"""The cache of a project: its four sights, and what people do with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from textual.pilot import Pilot

from support.dashboard import Dashboard, StubFeed, screen_view
from support.waiting import at_rest, until
from tui.analysis.file_tree.tree import FileEntry
from tui.feeds.files import CacheSnapshot
from tui.screens.cache import CacheScreen
from tui.settings.loading import validated
from tui.settings.model import Loaded

GIB = 2**30
HUB = "huggingface/hub/models--meta-llama--Llama-3.1-8B/snapshots/0e9e39f249a16976918f6564b8830bc894c89659"
FILES = (
    *(FileEntry(f"{HUB}/model-0000{n}-of-00004.safetensors", 4 * GIB, 1.7e9) for n in range(1, 5)),
    FileEntry(f"{HUB}/config.json", 855, 1.7e9),
    FileEntry("pip/wheels/torch.whl", GIB, 1.7e9),
)
CAPTURED_S = 1.7e9 + 7200
FULL = CacheSnapshot(False, True, FILES, CAPTURED_S)


def cache_view(*said: CacheSnapshot, keys: dict[str, str] | None = None) -> Dashboard:
    feed: Any = partial(StubFeed, *said)
    settings = Loaded(validated({"keys": keys or {}}))
    make = partial(CacheScreen, "llama-sft", feed, now_s=lambda: CAPTURED_S + 40)
    return screen_view(make, settings=settings)


async def refreshed(pilot: Pilot[Any]) -> str:
    await pilot.press("r")
    return await at_rest(pilot)


async def test_every_sight_in_turn_and_what_was_there_stays_where_a_refresh_fails() -> None:
    why = "the proxy at the edge answered 502 for a request that took longer than it has patience for."
    app = cache_view(
        CacheSnapshot(),
        CacheSnapshot(False, error="HTTP 500: [red]boom[/]"),
        CacheSnapshot(False, False),
        CacheSnapshot(False, True, (), 1.7e9),
        FULL,
        replace(FULL, error=why),
        FULL,
        replace(FULL, entries=(FileEntry("\x1b[31mred\x1b[0m/[b]x", 5),)),
    )
    async with app.run_test(size=(80, 24)) as pilot:
        assert "Loading the cache" in await at_rest(pilot)
        text = await refreshed(pilot)
        assert "Can't read the cache" in text and "[red]boom[/]" in text
        assert "has no cache yet" in await refreshed(pilot)
        assert "The cache is empty" in await refreshed(pilot)
        text = await refreshed(pilot)
        assert "17.0 GiB" in text and "6 files" in text and "captured" in text
        assert "94% models--meta-llama--Llama-3.1-8B" in text.replace("snapshots", "")
        assert text.index("huggingface/") < text.index("pip/")
        text = await refreshed(pilot)
        assert "huggingface/" in text
        for size in ((80, 24), (60, 20), (40, 14)):
            await pilot.resize_terminal(*size)
            told = " ".join((await at_rest(pilot)).split())
            assert f"Not updated: {why} Showing last known data; press r to retry." in told
        await pilot.resize_terminal(80, 24)
        assert "Not updated" not in await refreshed(pilot)
        text = await refreshed(pilot)
        assert "\x1b" not in text and "red/" in text


@pytest.mark.proves("README.md", "What is in this checkpoint?")
async def test_filter_sort_and_copy_by_keyboard() -> None:
    app = cache_view(FULL)
    async with app.run_test(size=(80, 24)) as pilot:
        await at_rest(pilot)
        await pilot.press("slash", *"*onfi*.json", "enter")
        for size in ((40, 12), (80, 24)):
            await pilot.resize_terminal(*size)
            text = await at_rest(pilot)
            assert "/*onfi*.json" in text and "1 file, 855 B" in text
        assert "config.json" in text and "torch.whl" not in text
        await pilot.press("y")
        await until(pilot, lambda: app.clipboard == f"{HUB}/config.json")
        await pilot.press("escape")
        assert "pip/" in await at_rest(pilot)
        await pilot.press("S", "S")
        text = await at_rest(pilot)
        assert "type▴" in text or "name▴" in text
        await pilot.press("V")
        assert "▾" in (await at_rest(pilot)).splitlines()[2]


@pytest.mark.parametrize(("keys", "pressed"), [({}, ("X", "D")), ({"cache.delete": "f8,f9"}, ("f8", "f9"))])
async def test_keys_that_delete_elsewhere_say_who_can_delete_in_a_cache(
    keys: dict[str, str], pressed: tuple[str, ...]
) -> None:
    app = cache_view(FULL, keys=keys)
    async with app.run_test(size=(80, 24)) as pilot:
        await at_rest(pilot)
        await pilot.press("X" if keys else "f8")
        await at_rest(pilot)
        assert not app._notifications
        for key in pressed:
            await pilot.press(key)
            await until(pilot, lambda: len(app._notifications) == 1)
            app.clear_notifications()


async def looked_at(pilot: Pilot[Any]) -> None:
    await at_rest(pilot)
    await pilot.press("g", "asterisk")
    await at_rest(pilot)


@pytest.mark.parametrize("size", [(80, 24), (60, 20)])
def test_the_looks_of_the_cache(snap_compare: Callable[..., bool], size: tuple[int, int]) -> None:
    assert snap_compare(cache_view(FULL), terminal_size=size, run_before=looked_at)
