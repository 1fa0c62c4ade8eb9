"""Wait for a condition instead of a fixed time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot
from textual.screen import Screen

from support.dashboard import Pictures, settle, text_of
from support.remotes import Reachable, remote_of
from tui.app import BtTuiApp
from tui.widgets.file_tree import FileTreeView

PATIENCE_S = 180.0
POLL_EVERY_S = 0.03
UNDRAWN_POLLS = 4
"""Most conditions read the screen, which takes milliseconds: in between, look only if it was drawn again."""


async def until(pilot: Pilot[Any], condition: Callable[[], bool]) -> None:
    """Let the dashboard go on until the condition holds; fails with the screen when it never does."""
    loop = asyncio.get_running_loop()
    give_up, drawn = loop.time() + PATIENCE_S, -1
    for poll in itertools.count():
        if poll % UNDRAWN_POLLS == 0 or drawn != Pictures.drawn:
            drawn = Pictures.drawn
            if condition():
                return
        assert loop.time() < give_up, text_of(pilot.app)  # type: ignore[arg-type]
        await asyncio.sleep(POLL_EVERY_S)  # not a pause: it has every widget answer
        pilot.app.screen._on_timer_update()


async def sees(pilot: Pilot[Any], *words: str, after: Sequence[str] = ()) -> None:
    """Press the keys ``after`` which the dashboard is to show all of the words, and wait until it does."""
    await pilot.press(*after)
    await until(pilot, lambda: all(word in text_of(pilot.app) for word in words))  # type: ignore[arg-type]


@asynccontextmanager
async def dashboard_on(
    server: Reachable,
    *words: str,
    size: tuple[int, int] = (100, 30),
    notifications: bool = False,
    **options: Any,
) -> AsyncIterator[tuple[BtTuiApp, Pilot[Any]]]:
    """The real app on a server, once it shows all of the words."""
    app = BtTuiApp(remote_of(server), **options)
    async with app.run_test(size=size, notifications=notifications) as pilot:
        await sees(pilot, *words)
        yield app, pilot


async def to_screen(pilot: Pilot[Any], screen: type[Screen[Any]], *keys: str) -> None:
    """Press keys, and wait until the screen that they lead to is drawn: the next key is that screen's."""
    await pilot.press(*keys)
    await until(pilot, lambda: isinstance(pilot.app.screen, screen) and text_of(pilot.app).strip() != "")
    await pilot.pause()


async def until_quiet(pilot: Pilot[Any], tree: FileTreeView) -> None:
    """Let a tree of files finish what it is arranging."""
    await pilot.pause()
    while tree.is_busy:
        await pilot.pause()
    await pilot.pause()


async def at_rest(pilot: Pilot[Any]) -> str:
    """What a screen of a tree shows once that is arranged."""
    await settle(pilot)
    await until_quiet(pilot, pilot.app.screen.query_one(FileTreeView))
    return text_of(pilot.app)  # type: ignore[arg-type]
