"""A large file over loopback: our downloads against curl and the plainest Python, in one run.

Prints MiB/s and the ratio to curl's, and how far our memory grew. The acceptance is 40% of curl's, memory
flat. The server sends files with ``sendfile`` in a process of its own, so that it is no part of what is
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
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness import Report

from api_client.addresses import Destinations
from api_client.clock import SystemClock
from api_client.http.retry import RetryPolicy
from api_client.transfers.downloads import DownloadRun
from api_client.transfers.objects import Objects
from api_client.transfers.records import DownloadPlan, PlannedFile

MIB = 1024 * 1024
SIZE_BYTES = int(os.environ.get("SIZE_MIB", "256")) * MIB
ROUNDS = 5
CAUSE = (
    "profiled: a fifth of the time waits until the file is on the disk, which curl does not; the rest moves"
    " pieces of 256 KiB through asyncio, h11 and httpcore to the part file, a few percent each"
)
RANGE = re.compile(rb"(?i)range: bytes=(\d+)-(\d*)")


def serve(path: str, digest: str, ready: multiprocessing.Queue[int]) -> None:
    """Answer GETs, with ranges, of the one file; with its digest where the URL says so."""
    listening = socket.create_server(("127.0.0.1", 0))
    ready.put(listening.getsockname()[1])
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=answer, args=(connection, path, digest), daemon=True).start()


def answer(connection: socket.socket, path: str, digest: str) -> None:
    """Answer one connection's requests."""
    buffer = b""
    with connection, Path(path).open("rb") as file:
        while True:
            while b"\r\n\r\n" not in buffer:
                received = connection.recv(65536)
                if not received:
                    return
                buffer += received
            head, buffer = buffer.split(b"\r\n\r\n", 1)
            asked = RANGE.search(head)
            start = int(asked[1]) if asked else 0
            last = int(asked[2]) if asked and asked[2] else SIZE_BYTES - 1
            lines = [f"Content-Length: {last - start + 1}"]
            if asked:
                lines.append(f"Content-Range: bytes {start}-{last}/{SIZE_BYTES}")
            if b"/digest" in head.split(b"\r\n", 1)[0]:
                lines.append(f"x-goog-hash: md5={digest}")
            status = "206 Partial Content" if asked else "200 OK"
            connection.sendall("\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode())
            left = last - start + 1
            try:
                while left:
                    sent = os.sendfile(connection.fileno(), file.fileno(), start, left)
                    start, left = start + sent, left - sent
            except OSError:
                return


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


def main() -> None:
    """Measure all ways in turn, round after round."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "source"
        digest = hashlib.md5(usedforsecurity=False)
        with source.open("wb") as file:
            for _ in range(SIZE_BYTES // MIB):
                block = os.urandom(MIB)
                digest.update(block)
                file.write(block)
        ready: multiprocessing.Queue[int] = multiprocessing.Queue()
        encoded = base64.b64encode(digest.digest()).decode()
        server = multiprocessing.Process(target=serve, args=(str(source), encoded, ready), daemon=True)
        server.start()
        base = f"http://127.0.0.1:{ready.get()}"
        display_options: dict[str, Callable[[], None]] = {
            "curl": lambda: by_curl(f"{base}/plain", folder / "curl"),
            "urllib": lambda: by_urllib(f"{base}/plain", folder / "urllib"),
            "bt-tui": lambda: by_us(f"{base}/plain", folder / "ours"),
            "bt-tui, md5 verified": lambda: by_us(f"{base}/digest", folder / "ours"),
        }
        speeds: dict[str, list[float]] = {way: [] for way in display_options}
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(ROUNDS):
            for way, fetch in display_options.items():
                began = time.perf_counter()
                fetch()
                speeds[way].append(SIZE_BYTES / MIB / (time.perf_counter() - began))
                for target in ("curl", "urllib", "ours"):
                    (folder / target).unlink(missing_ok=True)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
        server.terminate()
    curl = statistics.median(speeds["curl"])
    report = Report("downloads")
    for way, found in speeds.items():
        if way != "curl":
            least = 0.4 if way == "bt-tui" else None
            name = f"{SIZE_BYTES // MIB} MiB over loopback: {way}"
            report.compare(name, found, curl, against="curl", unit="MiB/s", at_least=least, cause=CAUSE)
    report.figure("memory grown over all rounds", grown, unit="MiB", at_most=32)
    report.close()


if __name__ == "__main__":
    main()
