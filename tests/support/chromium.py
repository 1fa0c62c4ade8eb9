"""Drive a headless Chromium through DevTools: type into a page, and read what its websocket received."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

LIMIT_S = 60.0
"""For each wait; half of what pytest allows a test before it says where it hangs."""
ENDED_S = 10.0
ENTER, _ENTER_CODE = "Enter", 13
POLL_EVERY_S = 0.1
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDTH, HEIGHT = 1200, 720
_SEQUENCES = re.compile(r"\x1b(?:\[[0-9;?<>=$]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|.)")


def chromium() -> str | None:
    """The program, where it is installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One page; ``drawn`` is the text that its terminal was sent, without escape sequences."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, downloads: Path) -> None:
        self._socket = socket
        self._downloads = downloads
        self._numbers = count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._news = asyncio.Event()
        self.raw = ""

    @property
    def drawn(self) -> str:
        return _SEQUENCES.sub("", self.raw)

    async def listen(self) -> None:
        async for message in self._socket:
            received = message.json()
            if "id" in received:
                self._answers.pop(received["id"]).set_result(received)
            elif received["method"] == "Network.webSocketFrameReceived":
                frame = received["params"]["response"]
                if frame["opcode"] == 2:
                    self.raw += base64.b64decode(frame["payloadData"]).decode("utf-8", "replace")
            self._news.set()

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._answers[number] = answer = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        received = await asyncio.wait_for(answer, LIMIT_S)
        assert "error" not in received, received
        return dict(received["result"])

    async def type(self, *keys: str) -> None:
        """Keys: letters, and ``ENTER``; ``drawn`` is emptied before the last of them."""
        for place, key in enumerate(keys, 1):
            text, code = ("\r", _ENTER_CODE) if key == ENTER else (key, ord(key.upper()))
            common = {"key": key, "windowsVirtualKeyCode": code}
            if place == len(keys):
                self.raw = ""
            await self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
            await self.ask("Input.dispatchKeyEvent", type="keyUp", **common)

    async def until_drawn(self, *words: str) -> None:
        """Wait until all these words were drawn. Raises AssertionError."""
        await self.until(lambda: all(word in self.drawn for word in words))

    async def downloaded(self, name: str) -> bytes:
        path = self._downloads / name  # empty while the browser only holds its place

        def is_there() -> bool:
            return path.exists() and path.stat().st_size > 0 and not [*self._downloads.glob("*.crdownload")]

        await self.until(is_there)
        return await asyncio.to_thread(path.read_bytes)

    async def until(self, condition: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(LIMIT_S):
                while not condition():
                    self._news.clear()
                    with suppress(TimeoutError):  # files arrive without a word
                        await asyncio.wait_for(self._news.wait(), POLL_EVERY_S)
        except TimeoutError:
            raise AssertionError(f"not in time; the end of what was drawn: {self.drawn[-3000:]!r}") from None


@asynccontextmanager
async def browsing(program: str, folder: Path, address: str) -> AsyncIterator[Page]:
    """A page on that address; what it downloads lands in ``folder / "downloads"``."""
    profile, downloads = folder / "profile", folder / "downloads"
    downloads.mkdir()
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    options += [
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
        f"--window-size={WIDTH},{HEIGHT}",
        "about:blank",
    ]
    process = await asyncio.create_subprocess_exec(
        program,
        *options,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": "/tmp"},  # the path of its socket there must be short
        start_new_session=True,
    )
    try:
        async with aiohttp.ClientSession() as session:
            base = await asyncio.wait_for(_devtools(process), LIMIT_S)
            async with session.get(f"{base}/json/list") as answer:
                target = next(one for one in await answer.json() if one["type"] == "page")
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                page = Page(socket, downloads)
                listening = asyncio.create_task(page.listen())
                await page.ask("Network.enable")
                await page.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))
                await page.ask("Emulation.setFocusEmulationEnabled", enabled=True)
                await page.ask("Page.navigate", url=address)
                try:
                    yield page
                finally:
                    listening.cancel()
    finally:
        process.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), ENDED_S)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # whatever it had started, too
        await process.wait()


async def _devtools(process: asyncio.subprocess.Process) -> str:
    """Return the address of DevTools, which it prints on its standard error."""
    assert process.stderr is not None
    output = b""
    while line := await process.stderr.readline():
        output += line
        if found := re.search(rb"DevTools listening on ws://([^/]+)/", line):
            return f"http://{found[1].decode()}"
    raise AssertionError(f"Chromium did not start: {output.decode(errors='replace')[-2000:]}")
