"""Files on their way from a page's dashboard to its browser: whole, once, and nothing left behind."""

# ruff: noqa: ASYNC240 (tests look at small files of their own)

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

aiohttp = pytest.importorskip("aiohttp", reason="the extra web is not installed")
pytest.importorskip("textual_serve", reason="the extra web is not installed")

from aiohttp.test_utils import TestClient, TestServer  # noqa: E402

from tui.system.saved_files import Outbox, delete_abandoned_outboxes  # noqa: E402
from tui.web.access import AccessGuard  # noqa: E402
from tui.web.server import DashboardServer, OfferedFile, PageDashboard  # noqa: E402

ROOT = Path(__file__).parents[2]
FILE_BYTES = 3_000_001
LARGE_BYTES = 10 * FILE_BYTES
"""More than sockets hold."""
CUT_AT = 1_000_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "saved"
    path.write_bytes(os.urandom(FILE_BYTES))
    return path


@asynccontextmanager
async def offering(path: Path) -> AsyncIterator[tuple[Any, PageDashboard]]:
    """A browser, and the dashboard of an open page that offers a file."""
    guard = AccessGuard(["127.0.0.1"])
    server = DashboardServer("true", guard)
    ways = dict.fromkeys(("write_bytes", "write_str", "close", "download_manager"))
    dashboard = PageDashboard("true", **ways)
    dashboard.offered_files["key"] = OfferedFile(path, "weights.bin")
    server._dashboards.add(dashboard)
    app = await server._make_app()
    async with TestClient(TestServer(app), cookies={"bt-tui": guard.token}) as browser:
        yield partial(browser.get, f"{guard.root}download/key"), dashboard


async def test_file_can_be_fetched_again_and_in_parts(file: Path) -> None:
    async with offering(file) as (get, _dashboard):
        async with get() as answer:
            assert answer.headers["Content-Disposition"] == 'attachment; filename="weights.bin"'
            assert await answer.read() == file.read_bytes()
        async with get(headers={"Range": f"bytes={CUT_AT}-"}) as answer:
            assert await answer.read() == file.read_bytes()[CUT_AT:]


async def test_file_that_is_being_sent_outlives_its_page(file: Path) -> None:
    file.write_bytes(bytes(LARGE_BYTES))
    async with offering(file) as (get, dashboard):
        answer = await get()
        await answer.content.readexactly(CUT_AT)
        dashboard.offered_files.clear()
        file.unlink()
        assert len(await answer.read()) == LARGE_BYTES - CUT_AT
        async with get() as late:
            assert late.status == 404


HOLDS = """
import sys
from tui.system.saved_files import Outbox
place = Outbox().path_for("weights")
place.write_text("half")
print(place, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no such locks")
def test_what_a_killed_process_left_is_swept_and_what_is_in_use_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    not_ours = tmp_path / "new-bt-tui-outbox-made-this-moment"
    not_ours.mkdir()
    own = Outbox()
    used = own.path_for("mine")
    used.touch()
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as killed:
        assert killed.stdout is not None
        left = Path(killed.stdout.readline().strip())
        delete_abandoned_outboxes()
        assert left.exists()
        killed.kill()
    delete_abandoned_outboxes()
    assert not left.exists()
    assert used.exists()
    own.close()
    assert list(tmp_path.iterdir()) == [not_ours]
