"""A large file over loopback: our downloads against curl and the plainest Python, in one run.

The server sends files with ``sendfile`` in a process of its own, so that it is no part of what is
measured; a checksum beside the file makes ours the only one that verifies what it wrote, in a second row.
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

from harness import Figure, compared, in_turn, wall_ms

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
    """Answers GETs, with ranges, of the one file; with its digest if the path asks for it."""

    protocol_version = "HTTP/1.1"
    source: Path
    digest: str

    def do_GET(self) -> None:
        asked = RANGE.match(self.headers.get("Range", ""))
        start = int(asked[1]) if asked else 0
        last = int(asked[2]) if asked and asked[2] else SIZE_BYTES - 1
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(last - start + 1))
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{last}/{SIZE_BYTES}")
        if self.path == "/digest":
            self.send_header("x-goog-hash", f"md5={self.digest}")
        self.end_headers()
        with self.source.open("rb") as file, suppress(OSError):
            self.connection.sendfile(file, start, last - start + 1)

    def log_message(self, *_: object) -> None:
        pass


def figures() -> Iterator[Figure]:
    """Measure all ways in turn, round after round."""
    with tempfile.TemporaryDirectory() as name:
        source, target = Path(name, "source"), Path(name, "target")
        digest = hashlib.md5(usedforsecurity=False)
        with source.open("wb") as file:
            for _ in range(SIZE_MIB):  # one piece after the other: this process's peak memory is measured
                block = os.urandom(MIB)
                digest.update(block)
                file.write(block)
        OneFile.source, OneFile.digest = source, base64.b64encode(digest.digest()).decode()
        listening = ThreadingHTTPServer(("127.0.0.1", 0), OneFile)
        server = multiprocessing.get_context("fork").Process(target=listening.serve_forever, daemon=True)
        server.start()
        base = f"http://127.0.0.1:{listening.server_port}"
        ways = {
            "curl": partial(by_curl, f"{base}/plain", target),
            "urllib": partial(by_urllib, f"{base}/plain", target),
            "bt-tui": partial(by_us, f"{base}/plain", target),
            "bt-tui, md5 verified": partial(by_us, f"{base}/digest", target),
        }

        def fetch_ms(fetch: Callable[[], object]) -> float:
            took_ms = wall_ms(fetch)
            target.unlink()  # what is there is not fetched again
            return took_ms

        before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        times = in_turn(ways, rounds=ROUNDS, measure=fetch_ms)
        grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
        server.terminate()
        listening.server_close()
    speeds = {way: [SIZE_MIB / took_ms * 1000 for took_ms in rounds] for way, rounds in times.items()}
    for way in ("urllib", "bt-tui", "bt-tui, md5 verified"):
        yield compared(
            f"{SIZE_MIB} MiB over loopback: {way}",
            speeds[way],
            speeds["curl"],
            "curl",
            unit="MiB/s",
            at_least=0.4 if way == "bt-tui" else None,
            cause=CAUSE,
        )
    yield Figure("memory grown over all rounds", grown_kib / 1024, unit="MiB", at_most=32)


def by_curl(url: str, target: Path) -> None:
    """What everybody would do."""
    subprocess.run(["curl", "--silent", "--fail", "--output", str(target), url], check=True)


def by_urllib(url: str, target: Path) -> None:
    """The plainest Python."""
    with urllib.request.urlopen(url) as response, target.open("wb") as file:
        shutil.copyfileobj(response, file, MIB)


def by_us(url: str, target: Path) -> None:
    """Ranges, part file, fsync and all."""

    async def run() -> None:
        file = PlannedFile(target.name, target, SIZE_BYTES, url)
        plan = DownloadPlan("project", "job", target.parent, (file,))

        async def never() -> list[PlannedFile]:
            raise AssertionError("the URL does not expire")

        objects = Objects(destinations=Destinations(["127.0.0.1"]))
        run = DownloadRun(plan, objects, never, SystemClock(), RetryPolicy(), lambda _progress: None)
        report = await run.run()
        await objects.aclose()
        assert report.is_complete, report

    asyncio.run(run())
