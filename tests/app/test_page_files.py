"""Files on their way from a page's dashboard to its browser: whole, once, and nothing left behind."""

# ruff: noqa: ASYNC240 (tests look at small files of their own)

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

aiohttp = pytest.importorskip("aiohttp", reason="the extra web is not installed")
pytest.importorskip("textual_serve", reason="the extra web is not installed")

from aiohttp import web  # noqa: E402
from aiohttp.test_utils import TestClient, TestServer  # noqa: E402

from tui.system.saved_files import Outbox, sweep_abandoned  # noqa: E402
from tui.web.driver import WholeWrites  # noqa: E402
from tui.web.server import Offer, Offers  # noqa: E402

ROOT = Path(__file__).parents[2]
PACKET_BYTES = 200_000
"""More than a pipe holds."""
PACKETS = 30
FILE_BYTES = 3_000_001
LARGE_BYTES = 10 * FILE_BYTES
"""More than sockets hold."""
CUT_AT = 1_000_000
LIMIT_S = 60.0


def test_what_two_threads_write_to_a_pipe_arrives_packet_by_packet() -> None:
    reading, writing = os.pipe()
    write = WholeWrites(writing)
    threads = [
        threading.Thread(target=lambda letter=letter: [write(letter * PACKET_BYTES) for _ in range(PACKETS)])
        for letter in (b"a", b"b")
    ]
    for thread in threads:
        thread.start()
    with os.fdopen(reading, "rb") as pipe:
        packets = [pipe.read(PACKET_BYTES) for _ in range(2 * PACKETS)]
    for thread in threads:
        thread.join()
    os.close(writing)
    assert {bytes(set(packet)) for packet in packets} == {b"a", b"b"}


class Page:
    """A dashboard that notes which of its files have left."""

    def __init__(self) -> None:
        self.fetched: list[str] = []
        self.over = asyncio.Event()

    async def notify_fetched(self, key: str) -> None:
        self.fetched.append(key)
        self.over.set()


@asynccontextmanager
async def offering(path: Path) -> AsyncIterator[tuple[Any, Page, Offers]]:
    page, offers = Page(), Offers()
    offers.add("key", Offer(path, "weights.bin", page))

    async def send(_request: web.Request) -> web.StreamResponse:
        return offers.answer("key")

    app = web.Application()
    app.add_routes([web.get("/", send)])
    async with TestClient(TestServer(app)) as browser:
        yield browser, page, offers


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "saved"
    path.write_bytes(os.urandom(FILE_BYTES))
    return path


async def test_a_file_is_there_until_its_last_byte_has_left(file: Path) -> None:
    async with offering(file) as (browser, page, _offers):
        async with browser.head("/") as answer:
            assert answer.headers["Content-Length"] == str(FILE_BYTES)
            assert answer.headers["Content-Disposition"] == 'attachment; filename="weights.bin"'
        async with browser.get("/", headers={"Range": f"bytes=0-{CUT_AT - 1}"}) as answer:
            begun = await answer.read()
        assert (len(begun), page.fetched) == (CUT_AT, [])
        async with browser.get("/", headers={"Range": f"bytes={CUT_AT}-"}) as answer:
            assert begun + await answer.read() == file.read_bytes()
        assert page.fetched == ["key"]
        async with browser.get("/") as answer:
            assert answer.status == 404
        assert page.fetched == ["key"]


async def test_what_is_cut_short_can_be_fetched_again(file: Path) -> None:
    file.write_bytes(bytes(LARGE_BYTES))
    async with offering(file) as (browser, page, _offers):
        cut = await browser.get("/")
        await cut.content.readexactly(CUT_AT)
        cut.close()
        async with browser.get("/") as answer:
            assert len(await answer.read()) == LARGE_BYTES
        await asyncio.wait_for(page.over.wait(), LIMIT_S)  # the first has noticed that nobody listens
        assert page.fetched == ["key"]


async def test_one_that_is_being_sent_outlives_its_page(file: Path) -> None:
    file.write_bytes(bytes(LARGE_BYTES))
    async with offering(file) as (browser, page, offers):
        answer = await browser.get("/")
        await answer.content.readexactly(CUT_AT)
        offers.withdraw(page)
        file.unlink()
        assert len(await answer.read()) == LARGE_BYTES - CUT_AT
        async with browser.get("/") as late:
            assert late.status == 404


HOLDS = """
import sys
from tui.system.saved_files import Outbox
place = Outbox().place("weights")
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
    used = own.place("mine")
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
        sweep_abandoned()
        assert left.exists()
        killed.kill()
    sweep_abandoned()
    assert not left.exists()
    assert used.exists()
    own.close()
    assert list(tmp_path.iterdir()) == [not_ours]
