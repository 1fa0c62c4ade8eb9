"""The tree of files by keyboard and mouse, over files that a server might list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot
from widget_text import WidgetApp, shown

from support.waiting import until_quiet
from tui.analysis.file_tree.rows import Order, SortKey
from tui.analysis.file_tree.tree import FileEntry
from tui.widgets.file_tree import FileTreeView

NOW_S = 1_800_000_000.0
FILES = (
    FileEntry("hub/models--a/model-00001.safetensors", 3_000_000, NOW_S - 60),
    FileEntry("hub/models--a/model-00002.safetensors", 2_000_000, NOW_S - 3600),
    FileEntry("hub/models--a/config.json", 800, NOW_S - 7200),
    FileEntry("hub/models--b/weights.bin", 900_000, NOW_S - 86_400),
    FileEntry("pip/wheel.whl", 40_000, NOW_S - 3),
    FileEntry("empty.txt", 0),
)


class TreeApp(WidgetApp):
    def __init__(self, entries: Sequence[FileEntry]) -> None:
        self.tree_view = FileTreeView(now_s=lambda: NOW_S, empty_text="nothing fits")
        super().__init__(self.tree_view)
        self.entries = entries
        self.chosen: list[str | None] = []

    def on_mount(self) -> None:
        self.tree_view.set_entries(self.entries)
        self.tree_view.focus()

    def lines(self) -> list[str]:
        return list(filter(None, shown(self.tree_view)))

    def names(self) -> list[str]:
        return [_name(line) for line in self.lines()[1:]]

    def on_file_tree_view_file_chosen(self) -> None:
        self.chosen.append(self.tree_view.cursor_path)


def _name(line: str) -> str:
    return next(part for part in line.replace("✓", " ").split() if part not in ("▸", "▾"))


@asynccontextmanager
async def tree_of(
    entries: Sequence[FileEntry],
) -> AsyncIterator[tuple[TreeApp, Pilot[Any]]]:
    app = TreeApp(entries)
    async with app.run_test(size=(90, 20)) as pilot:
        await until_quiet(pilot, app.tree_view)
        yield app, pilot


async def press(app: TreeApp, pilot: Pilot[Any], *keys: str) -> None:
    """Press each key once the tree shows what the one before opened."""
    for key in keys:
        await pilot.press(key)
        await until_quiet(pilot, app.tree_view)


async def test_directories_open_and_close_and_carry_totals() -> None:
    async with tree_of(FILES) as (app, pilot):
        hub = app.lines()[2]
        assert "5.63 MiB" in hub and "99%" in hub and "1m" in hub
        await press(app, pilot, "j", "right")
        assert app.names() == ["empty.txt", "hub/", "models--a/", "models--b/", "pip/"]
        await press(app, pilot, "right", "l")
        assert app.names()[3:6] == ["config.json", "model-00001.safetensors", "model-00002.safetensors"]
        await press(app, pilot, "right", "left", "h", "h", "h")
        assert app.names() == ["empty.txt", "hub/", "pip/"]
        assert app.tree_view.cursor_path == "hub"
        for count in (3 + 2 + 4, 3):
            app.tree_view.open_below()
            await until_quiet(pilot, app.tree_view)
            assert len(app.names()) == count


async def test_the_cursor_stays_on_its_node_through_sorting_and_newer_files() -> None:
    async with tree_of(FILES) as (app, pilot):
        await press(app, pilot, "j", "right", "j", "right", "j", "j")
        assert app.tree_view.cursor_path == "hub/models--a/model-00001.safetensors"
        app.tree_view.toggle_mark()
        app.tree_view.action_cursor_by(-1)
        app.tree_view.set_order(Order(SortKey.SIZE, descending=True))
        await until_quiet(pilot, app.tree_view)
        assert app.names()[:3] == ["hub/", "models--a/", "model-00001.safetensors"]
        assert app.tree_view.cursor_path == "hub/models--a/model-00001.safetensors"
        newer = (FileEntry("aaa/first.bin", 10**9), *FILES[:3], *FILES[4:])
        app.tree_view.set_entries(newer)
        await until_quiet(pilot, app.tree_view)
        assert app.tree_view.cursor_path == "hub/models--a/model-00001.safetensors"
        assert "models--a/" in app.names()
        assert "models--b/" not in app.names()
        marked = [line for line in app.lines() if "✓" in line]
        assert [_name(line) for line in marked] == ["model-00001.safetensors"]


async def test_the_mouse_opens_chooses_and_sorts() -> None:
    async with tree_of(FILES) as (app, pilot):
        await pilot.click(FileTreeView, offset=(5, 2))
        assert app.names()[1:3] == ["hub/", "models--a/"]
        await pilot.click(FileTreeView, offset=(5, 1))
        assert app.chosen == []
        await pilot.click(FileTreeView, offset=(5, 1))
        await pilot.pause()
        assert app.chosen == ["empty.txt"]
        size_at = app.lines()[0].index("size")
        await pilot.click(FileTreeView, offset=(size_at, 0))
        await until_quiet(pilot, app.tree_view)
        assert app.names()[0] == "hub/"


async def test_keys_work_while_many_files_are_being_arranged() -> None:
    many = [FileEntry(f"d{n % 40}/e{n % 400}/file-{n}.bin", n) for n in range(30_000)]
    async with tree_of(many) as (app, pilot):
        app.tree_view.set_pattern("file-1")
        await asyncio.sleep(0)
        app.tree_view.action_cursor_by(1)
        assert app.tree_view.is_busy
        assert app.tree_view.cursor_path == "d1"
        app.tree_view.set_pattern("file-29999")  # overtakes the one that is not done
        await until_quiet(pilot, app.tree_view)
        assert app.names()[-1] == "file-29999.bin"
        assert len(app.names()) == 3
