"""A few pictures of the log, to notice when its looks change. New ones: pytest --snapshot-update."""

from collections.abc import Callable

import pytest
from app.log_stories import story
from textual.pilot import Pilot

from support.dashboard import job_view, pressed, settle

Compare = Callable[..., bool]
Before = Callable[[Pilot[None]], object]


def pressing(*keys: str, theme: str = "") -> Before:
    async def press(pilot: Pilot[None]) -> None:
        await settle(pilot)
        if theme:
            pilot.app.theme = theme
        for key in keys:
            await pressed(pilot, key)

    return press


def test_typing_an_expression(snap_compare: Compare) -> None:
    app = job_view(lines=story(), tab="logs")
    keys = ("ampersand", "ctrl+r", "ctrl+o", *"worker|ckpt")
    assert snap_compare(app, terminal_size=(80, 24), run_before=pressing(*keys))


def test_nodes_side_by_side_in_light(snap_compare: Compare) -> None:
    app = job_view(lines=story(), tab="logs")
    keys = ("slash", *"node-2", "enter", "vertical_line", "e")
    assert snap_compare(app, terminal_size=(120, 40), run_before=pressing(*keys, theme="bt-light"))


def test_without_colour(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = job_view(lines=story(), tab="logs")
    keys = ("at", *"12:28", "enter", "enter", "shift+down", "shift+down")
    assert snap_compare(app, terminal_size=(80, 24), run_before=pressing(*keys))
