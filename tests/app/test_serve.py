"""``bt-tui serve`` as a process of its own: who may use it, and a real browser at the other end."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

aiohttp = pytest.importorskip("aiohttp", reason="the extra web is not installed")
pytest.importorskip("textual_serve", reason="the extra web is not installed")

from api_client.emulator.child import EmulatorChild  # noqa: E402
from support.chromium import browsing, chromium  # noqa: E402
from support.emulator import running_emulator  # noqa: E402

ROOT = Path(__file__).parents[2]
LIMIT_S = 60.0
TRIED_AGAIN_S = 20.0


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorChild]:
    with running_emulator("demo") as child:
        yield child


def size_bytes(path: Path) -> int:
    """0 while the browser only holds the place of a file."""
    return path.stat().st_size if path.exists() else 0


class Served:
    """A running ``bt-tui serve``."""

    def __init__(self, process: asyncio.subprocess.Process, address: str) -> None:
        self.process = process
        self.address = address

    def command_lines(self) -> str:
        own = psutil.Process(self.process.pid)
        return "\n".join(" ".join(one.cmdline()) for one in [own, *own.children(recursive=True)])


def left_in(folder: Path) -> list[Path]:
    """Data and files on their way that nobody needs any more."""
    return [*folder.glob("bt-tui-out-*"), *folder.glob("bt-tui-demo-*")]


@asynccontextmanager
async def serving(environ: Mapping[str, str], home: Path, *options: str) -> AsyncIterator[Served]:
    inherited = {name: os.environ[name] for name in ("PATH", "LANG", "VIRTUAL_ENV") if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tui", "serve", "--port", "0", *options),
        cwd=ROOT,
        env={**inherited, "HOME": str(home), "TMPDIR": str(home), "TZ": "UTC", **environ},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), LIMIT_S)
        yield Served(process, line.decode().strip())
    finally:
        if process.returncode is None:
            process.terminate()
        assert await asyncio.wait_for(process.wait(), LIMIT_S) == 0
        assert left_in(home) == []


async def test_in_a_browser_home_is_shown_a_job_opened_and_files_downloaded(
    emulator: EmulatorChild, tmp_path: Path
) -> None:
    program = chromium()
    if program is None:
        pytest.skip("Chromium is not installed")
    async with (
        serving(emulator.remote_environ(), tmp_path) as served,
        browsing(program, tmp_path, served.address) as page,
    ):
        await page.until(lambda: "llama-70b-sft-v3" in page.drawn and "running" in page.drawn)
        assert emulator.key not in served.address + served.command_lines() + page.raw
        await page.press("/")
        for letter in "llama-70b-sft-v2":
            await page.press(letter)
        await page.press("Enter", 13)
        await page.until(lambda: "1 of " in page.drawn)
        page.forget()
        await page.press("Enter", 13)
        # What is saved are the lines shown: of a log that is not read yet, none.
        await page.until(lambda: "COMPLETED" in page.drawn and "· complete ·" in page.drawn)

        saved = tmp_path / "downloads" / "llama-70b-sft-v2.log"
        for again in (True, True, False):
            page.forget()
            await page.press("W")
            await page.until(lambda: "save to" in page.drawn)
            await page.press("Enter", 13)
            # Now and then Chromium lets a link to a file pass without a word; people would save it once more.
            with suppress(AssertionError) if again else nullcontext():
                await page.until(lambda: size_bytes(saved) > 0, TRIED_AGAIN_S)
                break
        assert "loss" in saved.read_text()


@asynccontextmanager
async def visitor() -> AsyncIterator[Any]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield session


async def test_other_sites_pages_are_refused(emulator: EmulatorChild, tmp_path: Path) -> None:
    async with serving(emulator.remote_environ(), tmp_path) as served, visitor() as session:
        own_origin = served.address.rstrip("/")
        cases = [
            ({"Host": "rebound.example"}, 403),
            ({"Host": "rebound.example", "Origin": "http://rebound.example"}, 403),
            ({"Origin": "http://other.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Origin": "http://127.0.0.1:1"}, 403),
            ({"Origin": own_origin}, 200),
            ({}, 200),
        ]
        for headers, expected in cases:
            async with session.get(served.address, headers=headers) as answer:
                assert answer.status == expected, headers
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(served.address + "ws", origin="http://other.example")
        assert refused.value.status == 403
        assert "serve-page" not in served.command_lines()


async def test_no_other_page_may_frame_it_and_it_fetches_from_nowhere_else(
    emulator: EmulatorChild, tmp_path: Path
) -> None:
    async with serving(emulator.remote_environ(), tmp_path) as served, visitor() as session:
        async with session.get(served.address) as answer:
            policy, text = answer.headers["Content-Security-Policy"], await answer.text()
        assert "frame-ancestors 'none'" in policy
        assert emulator.key not in text
        elsewhere = re.findall(r"(?:src|href)=\"(?!/|data:,)[^\"]*", text)
        assert elsewhere == []
        for found in re.findall(r"(?:src|href)=\"(/[^\"]*)", text):
            async with session.get(served.address.rstrip("/") + found) as answer:
                assert answer.status == 200, found


async def test_other_machines_need_the_pass_of_the_address(emulator: EmulatorChild, tmp_path: Path) -> None:
    options = ("--host", "0.0.0.0", "--expose")
    async with serving(emulator.remote_environ(), tmp_path, *options) as served, visitor() as session:
        port = re.search(r":(\d+)/\?pass=", served.address)
        assert port is not None
        plain = f"http://127.0.0.1:{port[1]}/"
        for wrong in (plain, f"{plain}?pass=guess", f"{plain}page.js"):
            async with session.get(wrong) as answer:
                assert answer.status == 403
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(f"{plain}ws")
        right = plain + served.address.rpartition("/")[2]
        async with session.get(right) as answer:
            assert answer.status == 200
            assert "pass=" not in str(answer.url)
        async with session.get(f"{plain}page.js") as answer:
            assert answer.status == 200


async def test_the_demo_needs_no_account_and_a_closed_page_ends_its_dashboard(tmp_path: Path) -> None:
    async with serving({}, tmp_path, "--demo") as served, visitor() as session:
        async with session.ws_connect(served.address + "ws?width=100&height=30") as socket:
            drawn = b""
            while b"demo data" not in drawn:
                message = await asyncio.wait_for(socket.receive(), LIMIT_S)
                drawn += message.data if isinstance(message.data, bytes) else b""
            pages = [
                one
                for one in psutil.Process(served.process.pid).children(recursive=True)
                if "serve-page" in one.cmdline()
            ]
            assert pages
        gone, alive = await asyncio.to_thread(psutil.wait_procs, pages, LIMIT_S)
        assert alive == []
        assert len(gone) == len(pages)
