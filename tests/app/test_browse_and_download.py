"""The whole way on a real emulator, by keyboard at 80×24: cache, checkpoint, headers, download."""

# ruff: noqa: ASYNC240 (tests look at small files of their own)

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import struct
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from api_client.emulator.processes import EmulatorChild
from api_client.transfers import objects
from support.dashboard import READ_ONLY, text_of
from support.remotes import remote_of
from support.waiting import sees, to_screen, until, until_quiet
from tui.app import BtTuiApp
from tui.screens.cache import CacheScreen
from tui.screens.dialogs import ConfirmScreen, DownloadFolderScreen, FileConflictScreen
from tui.screens.downloads import DownloadsScreen
from tui.screens.files.screen import FilesScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.job.screen import JobScreen
from tui.widgets.file_tree import FileTreeView

SIZE = (80, 24)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of the test's own: what is proposed to download to lies below it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def demo() -> Iterator[EmulatorChild]:
    """One demo world for all: nothing here changes it."""
    with EmulatorChild() as emulator:
        yield emulator


@pytest.fixture
def stalled_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only the beginning of each file arrive, however long the test takes until it cancels it."""
    pieces = objects._chunks

    async def first_piece(*of_an_answer: Any) -> AsyncIterator[bytes]:
        async for piece in pieces(*of_an_answer):
            yield piece
            await asyncio.Event().wait()

    monkeypatch.setattr(objects, "_chunks", first_piece)


def dashboard(emulator: EmulatorChild) -> BtTuiApp:
    return BtTuiApp(remote_of(emulator), settings=READ_ONLY)  # reading and downloading change nothing there


async def to_file(pilot: Pilot[Any], name: str) -> None:
    tree = pilot.app.screen.query_one(FileTreeView)
    await until_quiet(pilot, tree)
    await pilot.press("g")
    while not (tree.cursor_path or "").endswith(name):
        before = tree.cursor_path
        await pilot.press("j")
        assert tree.cursor_path != before, f"no {name} in the tree"


async def test_the_demo_world_from_the_cache_to_a_file_on_disk(
    here: Path, demo: EmulatorChild, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.app.typed_keys.SEEN_AFTER_S", 0.0)
    app = dashboard(demo)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await sees(pilot, "llama-70b-sft-v3")
        # The cache: its largest directory stands first.
        await to_screen(pilot, CacheScreen, "slash", *"sft-v3", "enter", "C")
        await sees(pilot, "captured", "huggingface/")
        tree = app.screen.query_one(FileTreeView)
        await until_quiet(pilot, tree)
        largest = max(tree.visible_rows.nodes, key=tree.visible_rows.size_bytes)
        assert tree.cursor_row == largest
        # A finished job's adapter.
        await to_screen(pilot, HomeScreen, "escape")
        await sees(pilot, "flux-lora-produc", after=("escape", "slash", *"flux-lora-prod", "enter"))
        await to_screen(pilot, JobScreen, "enter")
        await sees(pilot, "newest", "★ best", "LoRA r=16", after=("4",))
        await to_screen(pilot, FilesScreen, "enter")
        await sees(pilot, "adapter_model.safetensors")
        await to_file(pilot, "adapter_config.json")
        await sees(pilot, "rank r", "16", "target modules", "q_proj")
        await to_file(pilot, "trainer_state.json")
        await sees(pilot, "eval loss", "learning rate")
        await to_file(pilot, "adapter_model.safetensors")
        await sees(pilot, "33,619,968 parameters", "456 tensors", "BF16")
        await to_screen(pilot, DownloadFolderScreen, "D")
        usage = shutil.disk_usage(here)
        with monkeypatch.context() as small:
            small.setattr("shutil.disk_usage", lambda _folder: usage._replace(free=1000))
            await sees(pilot, "Not enough room", "1000 B free", after=("enter",))
            # A folder that exists may hold parts already: the plan knows.
            Path(app.screen.query_one(Input).value).mkdir()
            await to_screen(pilot, FilesScreen, "enter")
            await sees(pilot, "Downloads", "✗ 1 failed", "Not enough room", "1000 B free", after=("T",))
        assert not list(here.rglob("*.safetensors"))
        await to_screen(pilot, FilesScreen, "escape")
        await to_screen(pilot, DownloadFolderScreen, "D")
        await to_screen(pilot, FilesScreen, "enter")
        await pilot.press("T")
        await sees(pilot, "Downloads", "✓ 1 done")  # the same again takes the failed one's place
        await sees(pilot, "adapter_model.safetensors", "done", "100%")
        (arrived,) = here.rglob("adapter_model.safetensors")
        content = arrived.read_bytes()
        (header_bytes,) = struct.unpack("<Q", content[:8])
        assert len(json.loads(content[8 : 8 + header_bytes])) >= 456
        # The same again, of other content now: it asks.
        arrived.write_bytes(b"mine")
        await to_screen(pilot, FilesScreen, "escape")
        await to_screen(pilot, DownloadFolderScreen, "D")
        await to_screen(pilot, FileConflictScreen, "enter")
        await pilot.press("b")
        await until(pilot, lambda: len(list(here.rglob("adapter_model*.safetensors"))) == 2)
        assert arrived.read_bytes() == b"mine"
        other = next(path for path in here.rglob("adapter_model*.safetensors") if path != arrived)
        await until(pilot, lambda: other.exists() and other.stat().st_size == len(content))
        assert hashlib.sha256(other.read_bytes()).digest() == hashlib.sha256(content).digest()


async def test_leaving_while_a_download_is_under_way_asks_first_and_keeps_what_arrived(
    here: Path, demo: EmulatorChild, stalled_network: None
) -> None:
    app = dashboard(demo)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        await sees(pilot, "llama-70b-sft-v3")
        await pilot.press("slash", *"grpo-7", "enter")
        await to_screen(pilot, JobScreen, "enter")
        await sees(pilot, "newest", after=("4",))
        await sees(pilot, "rank-0/", after=("enter",))
        await pilot.press("slash", *"optim*rank_0.pt", "enter")
        await to_file(pilot, ".pt")  # some gigabytes: it takes longer than what follows
        await to_screen(pilot, DownloadFolderScreen, "D")
        await pilot.press("enter")
        await until(pilot, lambda: "↓ 1 file" in text_of(app).splitlines()[-1])
        await until(pilot, lambda: app.transfers.items[-1].done_bytes > 0)
        await to_screen(pilot, ConfirmScreen, "q")
        await sees(pilot, "1 download is running")
        await to_screen(pilot, FilesScreen, "n")
        await to_screen(pilot, DownloadsScreen, "T")
        await sees(pilot, "■ canceled", "Partial files are kept", "◌ waiting", after=("x",))
        assert list(here.rglob("*.part"))
        await sees(pilot, "loading", after=("t",))
        await sees(pilot, "■ canceled", after=("x",))
        await sees(pilot, "No downloads.", after=("c",))
