"""``bt-tui serve`` as a process of its own: who may use it, and a real browser at the other end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from yarl import URL

aiohttp = pytest.importorskip("aiohttp", reason="the extra web is not installed")
pytest.importorskip("textual_serve", reason="the extra web is not installed")

from api_client import TrainingClient  # noqa: E402
from api_client.emulator.processes import EmulatorChild  # noqa: E402
from support.chromium import ENTER, browsing, chromium  # noqa: E402
from support.remotes import remote_of  # noqa: E402

ROOT = Path(__file__).parents[2]
LIMIT_S = 60.0
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
SENT = (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT)


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorChild]:
    with EmulatorChild() as child:
        yield child


class Served:
    """A running ``bt-tui serve``."""

    def __init__(self, process: asyncio.subprocess.Process, address: str) -> None:
        self.process = process
        self.address = address
        self.origin = address.partition("?")[0]
        self.here = self.origin.replace("0.0.0.0", "127.0.0.1")
        self.page = ""
        """Where a visitor was led."""

    def pages(self) -> list[psutil.Process]:
        own = psutil.Process(self.process.pid)
        return [one for one in own.children(recursive=True) if "serve-page" in one.cmdline()]

    def command_lines(self) -> str:
        own = psutil.Process(self.process.pid)
        return "\n".join(" ".join(one.cmdline()) for one in [own, *own.children(recursive=True)])


def left_in(folder: Path) -> list[Path]:
    """Data and files on their way that nobody needs any more."""
    return [*folder.glob("*bt-tui-outbox-*"), *folder.glob("bt-tui-demo-*")]


@asynccontextmanager
async def serving(
    environ: Mapping[str, str],
    home: Path,
    *options: str,
    descriptors: int | None = None,
    errors: int = asyncio.subprocess.DEVNULL,
) -> AsyncIterator[Served]:
    limited = () if descriptors is None else ("sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh")
    inherited = {name: os.environ[name] for name in ("PATH", "LANG", "VIRTUAL_ENV") if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        *limited,
        *(sys.executable, "-m", "tui", "serve", "--port", "0", *options),
        cwd=ROOT,
        env={**inherited, "HOME": str(home), "TMPDIR": str(home), "TZ": "UTC", **environ},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=errors,
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), LIMIT_S)
        yield Served(process, line.decode().strip())
    finally:
        ended = 0 if process.returncode is None else -signal.SIGKILL  # by a test
        with suppress(ProcessLookupError):
            process.terminate()
        assert await asyncio.wait_for(process.wait(), LIMIT_S) == ended
        assert await process.stdout.read() == b""  # beside the address
        assert left_in(home) == []


@pytest.mark.proves("docs/commands.md", "`watch JOB_ID`")
@pytest.mark.proves("docs/recordings.md", "Recordings")
async def test_in_a_browser_home_is_shown_a_job_opened_and_files_downloaded(
    emulator: EmulatorChild, tmp_path: Path
) -> None:
    program = chromium()
    if program is None:
        pytest.skip("Chromium is not installed")
    async with (
        TrainingClient(remote_of(emulator)) as client,
        serving(emulator.remote_environ(), tmp_path) as served,
        browsing(program, tmp_path, served.address) as page,
    ):
        await page.until_drawn("whisper-ft", "running")
        assert emulator.key not in served.address + served.command_lines() + page.raw
        await page.type("/", *"products", ENTER, ENTER)
        await page.until_drawn("· complete ·")

        await page.type("W")
        await page.until_drawn("save to")
        await page.type(ENTER)
        log = await page.downloaded("flux-lora-products.log")
        job = next(job for job in await client.jobs.search() if job.name == "flux-lora-products")
        batches = [batch async for batch in client.logs.history(job.project_id, job.id, start=LONG_AGO)]
        messages = [entry.message for batch in batches for entry in batch.entries]
        rows = log.decode().splitlines()
        assert len(rows) == len(messages)
        assert [row for row, said in zip(rows, messages, strict=True) if not row.endswith(said)] == []

        await page.type("E")
        await page.until_drawn("Save (enter)")
        await page.type(ENTER)
        assert (await page.downloaded("flux-lora-products-loss.csv")).startswith(b"chart,series,time,")

        await page.type("4")
        await page.until_drawn("newest", "★ best")
        await page.type(ENTER)
        await page.until_drawn("adapter_config.json", "LORA")  # the file under the cursor, and what is in it
        await page.type("D")
        config = await page.downloaded("adapter_config.json")
        files = [file async for file in client.checkpoints.files(job.project_id, job.id)]
        stored = [file for file in files if file.relative_file_name.endswith("adapter_config.json")]
        assert config in [
            await client.checkpoint_contents.read(job.project_id, job.id, file, length=file.size_bytes)
            for file in stored
        ]


@asynccontextmanager
async def stranger() -> AsyncIterator[Any]:
    """A browser that was never given the printed address."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield session


async def status(browser: Any, address: str, *, method: str = "GET", **options: Any) -> int:
    async with browser.request(method, address, **options) as answer:
        return int(answer.status)


@asynccontextmanager
async def visitor(served: Served) -> AsyncIterator[Any]:
    """A browser that has opened the printed address."""
    async with stranger() as session:
        async with session.get(served.address) as answer:
            assert answer.status == 200
            served.page = str(answer.url)
        yield session


async def refuses_all_but_the_printed_address(served: Served, session: Any) -> None:
    here = served.here
    token = served.address.partition("?token=")[2]
    assert len(token) >= 32
    assert token not in served.command_lines()
    wrong = ("", "?token=", "?token=guess", f"?token={token[:-1]}", "?token=%ff%fe", "page.js", "no-page")
    for path in wrong:
        async with session.get(here + path) as answer:
            assert answer.status == 403, path
            assert "the full address" in await answer.text()
    for cookie in ("bt-tui-pass=x", f"token={token}", "bt-tui=\xe9"):
        assert await status(session, here, headers={"Cookie": cookie}) == 403, cookie
    for method in ("HEAD", "OPTIONS", "POST"):
        assert await status(session, here, method=method) == 403, method
    with pytest.raises(aiohttp.WSServerHandshakeError):
        await session.ws_connect(f"{here}ws")
    assert "serve-page" not in served.command_lines()
    async with session.get(f"{here}?token={token}") as answer:
        assert answer.status == 200
        page = str(answer.url)
    assert page.startswith(here)
    assert token not in page
    served.page = page
    assert await status(session, served.page + "page.js") == 200
    async with stranger() as other, other.get(page) as answer:
        assert answer.status == 403


async def refuses_other_sites(served: Served, session: Any) -> None:
    cases = [
        ({"Host": "rebound.example"}, 403),
        ({"Host": "rebound.example", "Origin": "http://rebound.example"}, 403),
        ({"Origin": "http://other.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "http://[127.0.0.1"}, 403),
        ({"Host": "[127.0.0.1"}, 403),
        ({"Origin": served.origin.rstrip("/")}, 200),
        ({}, 200),
    ]
    for headers, expected in cases:
        assert await status(session, served.page, headers=headers) == expected, headers
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await session.ws_connect(served.page + "ws", origin="http://other.example")
    assert refused.value.status == 403
    assert "serve-page" not in served.command_lines()


async def test_only_the_printed_address_opens_it_and_other_sites_are_refused(
    emulator: EmulatorChild, tmp_path: Path
) -> None:
    async with serving(emulator.remote_environ(), tmp_path) as served, stranger() as session:
        mapped = served.origin.replace("127.0.0.1", "[::ffff:127.0.0.1]")  # an IPv6 socket is no way round
        with suppress(aiohttp.ClientConnectorError):  # a system without IPv6
            assert await status(session, mapped) == 403
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await session.ws_connect(f"{mapped}ws")
        await refuses_all_but_the_printed_address(served, session)
        await refuses_other_sites(served, session)
        async with session.get(served.page) as answer:
            policy, text = answer.headers["Content-Security-Policy"], await answer.text()
        assert "frame-ancestors 'none'" in policy
        assert emulator.key not in text
        named = set(re.findall(r"(?:src|href)=\"([^\"]*)", text)) - {"data:,"}
        assert len(named) > 3
        for found in named:
            assert re.fullmatch(r"[\w./]+", found)  # below the page's own address: nothing from elsewhere
            assert await status(session, served.page + found) == 200, found


async def test_exposed_to_the_network_it_is_as_closed_and_no_other_server_of_the_host_is_sent_the_token(
    emulator: EmulatorChild, tmp_path: Path
) -> None:
    """Browsers keep cookies apart by host and path, not by port."""
    environ = emulator.remote_environ()
    async with (
        serving(environ, tmp_path) as first,
        serving(environ, tmp_path, "--host", "0.0.0.0", "--expose") as second,
        stranger() as nobody,
        visitor(first) as session,
    ):
        await refuses_all_but_the_printed_address(second, nobody)
        async with session.get(first.address, allow_redirects=False) as answer:
            (cookie,) = answer.cookies.values()
        assert cookie["httponly"]
        assert cookie["samesite"] == "Strict"
        for path in ("", "ws", first.page.removeprefix(first.origin).partition("/")[0]):
            assert not session.cookie_jar.filter_cookies(URL(second.here + path))
        assert await status(session, second.here) == 403
        assert await status(session, second.address.replace(second.origin, second.here)) == 200
        # the second's cookie does not replace the first's
        assert await status(session, first.page) == 200


async def test_the_demo_needs_no_account_and_a_closed_page_ends_its_dashboard(tmp_path: Path) -> None:
    async with serving({}, tmp_path, "--demo") as served, visitor(served) as session:
        async with session.ws_connect(served.page + "ws?width=100&height=30") as socket:
            await drawn(socket, "demo data")
            pages = served.pages()
            assert pages
        await ended(pages)


async def drawn(socket: Any, *words: str) -> None:
    seen = b""
    async with asyncio.timeout(LIMIT_S):
        while any(word.encode() not in seen for word in words):
            message = await socket.receive()
            assert message.type in SENT, message
            seen += message.data if isinstance(message.data, bytes) else b""


async def offered(socket: Any) -> str:
    """Wait until the page is told of a file; where to fetch it."""
    async with asyncio.timeout(LIMIT_S):
        while (message := await socket.receive()).type is not aiohttp.WSMsgType.TEXT:
            assert message.type in SENT, message
    what, key = json.loads(message.data)
    assert what == "deliver_file_start"
    return f"download/{key}"


async def save_jobs(socket: Any) -> str:
    """Save the table of Home, which is shown; where to fetch it."""
    await socket.send_json(["stdin", "E"])
    await drawn(socket, "Save (enter)")
    await socket.send_json(["stdin", "\r"])
    return await offered(socket)


async def ended(processes: list[psutil.Process]) -> None:
    gone, alive = await asyncio.to_thread(psutil.wait_procs, processes, LIMIT_S)
    assert (len(gone), alive) == (len(processes), [])


async def test_a_page_that_cannot_begin_says_so_and_nothing_on_stdout(
    emulator: EmulatorChild, tmp_path: Path
) -> None:
    remotes = tmp_path / "trussrc"
    remotes.write_text(
        f"[here]\nremote_provider = baseten\napi_key = {emulator.key}\nremote_url = {emulator.url}\n"
    )
    async with serving({"USER_TRUSSRC_PATH": str(remotes)}, tmp_path) as served, visitor(served) as session:
        remotes.unlink()
        async with session.ws_connect(served.page + "ws") as socket, asyncio.timeout(LIMIT_S):
            assert [message async for message in socket] == []  # closed, and so the page says it


NO_KEYS = ("\ud83d", "\x1b[1114112u", "\x1b[97:65;2u", "\x1b[48;0;0;0;0t\x1b[<0;1;1M", "\x1b[M ÀÀ")
NO_ENVELOPES = ([], {}, ["stdin"], ["stdin", 7], ["resize", {"width": "wide"}], ["resize", None])


async def test_no_keys_end_a_page_its_files_are_its_own_and_what_is_killed_leaves_nothing(
    emulator: EmulatorChild, tmp_path: Path
) -> None:
    size = "ws?width=100&height=30"
    async with (
        serving(emulator.remote_environ(), tmp_path) as served,
        visitor(served) as session,
        session.ws_connect(served.page + size) as first,
    ):
        await drawn(first, "whisper-ft", "running")
        for envelope in (*(["stdin", keys] for keys in NO_KEYS), *NO_ENVELOPES):
            await first.send_json(envelope)
        await first.send_str("no JSON")
        await first.send_json(["stdin", "?"])
        await drawn(first, "Keyboard")
        await first.send_json(["stdin", "?"])
        (page,) = served.pages()
        async with session.ws_connect(served.page + size) as second:
            await drawn(second, "whisper-ft", "running")
            fetched, left = await save_jobs(first), await save_jobs(second)
            async with session.get(served.page + fetched) as answer:
                rows = (await answer.text()).splitlines()
            assert rows[0].startswith("id,")
            assert len(rows) > 1
            next(one for one in served.pages() if one != page).kill()
            async with asyncio.timeout(LIMIT_S):
                while not second.closed:
                    await second.receive()
        assert await status(session, served.page + left) == 404
        await save_jobs(first)
        assert len(left_in(tmp_path)) == 1
        served.process.kill()
        await ended([page])


async def test_serve_refuses_more_connections_than_it_has_descriptors(
    emulator: EmulatorChild, tmp_path: Path
) -> None:
    descriptors, crowd = 64, 80
    environ = emulator.remote_environ()
    with (tmp_path / "errors").open("wb") as errors:
        async with serving(environ, tmp_path, descriptors=descriptors, errors=errors.fileno()) as served:
            url = URL(served.here)
            streams = await asyncio.gather(
                *(asyncio.open_connection(url.host, url.port) for _ in range(crowd))
            )
            ends = [asyncio.create_task(reader.read()) for reader, _ in streams]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)  # one is refused
            for _, writer in streams:
                writer.close()
            await asyncio.gather(*ends, return_exceptions=True)
            await send_malformed_requests(url)
            async with visitor(served) as session, session.get(served.page) as answer:
                assert answer.status == 200
    *_, last = (tmp_path / "errors").read_text().splitlines()
    assert last == "bt-tui: 10 connections are open; more are refused"
    assert (tmp_path / "errors").read_text().count("\n") == 3


async def send_malformed_requests(url: URL) -> None:
    """Send three that are answered; those before the server has closed the others are refused."""
    answers = 0
    async with asyncio.timeout(LIMIT_S):
        while answers < 3:
            with suppress(ConnectionError):
                reader, writer = await asyncio.open_connection(url.host, url.port)
                writer.write(b"GET / HTTP/9.9\r\n\r\n")
                line = await reader.readline()
                writer.close()
                assert not line or b" 400 " in line
                answers += bool(line)
