"""Download a large file over loopback: bt-tui compared with curl and urllib.

The server runs in another process and uses ``sendfile``, so that its cost is not measured. For a second
figure, the server sends a checksum, which only bt-tui verifies.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import multiprocessing
import os
import re
import resource
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from harness import Figure, compared, measure_in_turn, wall_ms

from api_client.addresses import Destinations
from api_client.clock import SystemClock
from api_client.http.retry import RetryPolicy
from api_client.transfers.downloads import DownloadRun
from api_client.transfers.objects import Objects
from api_client.transfers.records import DownloadPlan, PlannedFile

MIB = 1024 * 1024
SIZE_MIB = 256
SIZE_BYTES = SIZE_MIB * MIB
ROUNDS = 5
CAUSE = (
    "profiled: a fifth of the time waits until the file is on the disk, which curl does not; the rest moves"
    " pieces of 256 KiB through asyncio, h11 and httpcore to the part file, a few percent each"
)
RANGE = re.compile(r"bytes=(\d+)-(\d*)")


class OneFile(BaseHTTPRequestHandler):
    """Serves one file, also in ranges; the path ``/digest`` adds a header with the file's digest."""

    protocol_version = "HTTP/1.1"
    source: Path
    digest: str

    def do_GET(self) -> None:
        byte_range = RANGE.match(self.headers.get("Range", ""))
        start = int(byte_range[1]) if byte_range else 0
        end = int(byte_range[2]) if byte_range and byte_range[2] else SIZE_BYTES - 1
        self.send_response(206 if byte_range else 200)
        self.send_header("Content-Length", str(end - start + 1))
        if byte_range:
            self.send_header("Content-Range", f"bytes {start}-{end}/{SIZE_BYTES}")
        if self.path == "/digest":
            self.send_header("x-goog-hash", f"md5={self.digest}")
        self.end_headers()
        with self.source.open("rb") as file, suppress(OSError):
            self.connection.sendfile(file, start, end - start + 1)

    def log_message(self, *_: object) -> None:
        pass


def figures() -> Iterator[Figure]:
    """Measure all programs in turn, round by round."""
    with tempfile.TemporaryDirectory() as name:
        source, target = Path(name, "source"), Path(name, "target")
        digest = hashlib.md5(usedforsecurity=False)
        with source.open("wb") as file:
            for _ in range(SIZE_MIB):  # in small blocks, because the peak memory of this process is measured
                block = os.urandom(MIB)
                digest.update(block)
                file.write(block)
        OneFile.source, OneFile.digest = source, base64.b64encode(digest.digest()).decode()
        http_server = ThreadingHTTPServer(("127.0.0.1", 0), OneFile)
        server = multiprocessing.get_context("fork").Process(target=http_server.serve_forever, daemon=True)
        server.start()
        base_url = f"http://127.0.0.1:{http_server.server_port}"
        programs = {
            "curl": partial(download_with_curl, f"{base_url}/plain", target),
            "urllib": partial(download_with_urllib, f"{base_url}/plain", target),
            "bt-tui": partial(download_with_bt_tui, f"{base_url}/plain", target),
            "bt-tui, md5 verified": partial(download_with_bt_tui, f"{base_url}/digest", target),
        }

        def fetch_ms(fetch: Callable[[], object]) -> float:
            took_ms = wall_ms(fetch)
            target.unlink()  # a file that exists would not be downloaded again
            return took_ms

        before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        times = measure_in_turn(programs, rounds=ROUNDS, measure=fetch_ms)
        growth_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
        server.terminate()
        http_server.server_close()
    speeds = {program: [SIZE_MIB / took_ms * 1000 for took_ms in rounds] for program, rounds in times.items()}
    for program in ("urllib", "bt-tui", "bt-tui, md5 verified"):
        yield compared(
            f"{SIZE_MIB} MiB over loopback: {program}",
            speeds[program],
            speeds["curl"],
            "curl",
            unit="MiB/s",
            at_least=0.4 if program == "bt-tui" else None,
            cause=CAUSE,
        )
    yield Figure("memory grown over all rounds", growth_kib / 1024, unit="MiB", at_most=32)


def download_with_curl(url: str, target: Path) -> None:
    subprocess.run(["curl", "--silent", "--fail", "--output", str(target), url], check=True)


def download_with_urllib(url: str, target: Path) -> None:
    with urllib.request.urlopen(url) as response, target.open("wb") as file:
        shutil.copyfileobj(response, file, MIB)


def download_with_bt_tui(url: str, target: Path) -> None:
    async def run() -> None:
        file = PlannedFile(target.name, target, SIZE_BYTES, url)
        plan = DownloadPlan("project", "job", target.parent, (file,))

        async def renew_urls() -> list[PlannedFile]:
            raise AssertionError("the URL does not expire")

        objects = Objects(destinations=Destinations(["127.0.0.1"]))
        run = DownloadRun(plan, objects, renew_urls, SystemClock(), RetryPolicy(), lambda _progress: None)
        report = await run.run()
        await objects.aclose()
        assert report.is_complete, report

    asyncio.run(run())
