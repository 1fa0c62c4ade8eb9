"""The process of a page whose browser is gone: it is read until it has ended, and waited for."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import psutil
import pytest

pytest.importorskip("aiohttp", reason="the extra web is not installed")
pytest.importorskip("textual_serve", reason="the extra web is not installed")

from textual_serve.download_manager import DownloadManager

from tui.web import server
from tui.web.server import Offers, PageDashboard

DRAWS = """
import sys
from pathlib import Path
def draw(text):
    sys.stdout.buffer.write(b"D" + len(text).to_bytes(4, "big") + text)
    sys.stdout.buffer.flush()
print("__GANGLION__", flush=True)
draw(b"drawn")
while b"quit" not in sys.stdin.buffer.read1():
    pass
for _ in range(64):
    draw(b"x" * 65536)
Path(sys.argv[1]).unlink()
"""
"""Draws more than a pipe holds before it deletes its file."""

STAYS = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("__GANGLION__", flush=True)
while True:
    signal.pause()
"""


async def gone(_data: object) -> None:
    raise ConnectionResetError("Cannot write to closing transport")


async def closed() -> None:
    return None


def dashboard(program: str, *arguments: str) -> PageDashboard:
    return PageDashboard(
        f"exec {shlex.join([sys.executable, '-c', program, *arguments])}",
        write_bytes=gone,
        write_str=gone,
        close=closed,
        download_manager=DownloadManager(),
        offers=Offers(),
    )


async def test_it_deletes_its_files_though_no_browser_takes_what_it_draws(tmp_path: Path) -> None:
    on_its_way = tmp_path / "saved.log"
    on_its_way.touch()
    page = dashboard(DRAWS, str(on_its_way))
    await page.start(80, 24)
    await page.stop()
    assert not on_its_way.exists()
    await page.stop()


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
async def test_one_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SHUTDOWN_TIMEOUT_S", 0.2)
    monkeypatch.setattr(server, "TERMINATED_S", 0.2)
    before = set(psutil.Process().children())
    page = dashboard(STAYS)
    await page.start(80, 24)
    assert set(psutil.Process().children()) > before
    await page.stop()
    assert set(psutil.Process().children()) <= before
