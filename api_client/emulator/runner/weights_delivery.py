"""Delivery of a job's weights by a separate process, with progress in the job's log."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from api_client.emulator.data_folder import remove_tree
from api_client.emulator.runner.folders import CannotStart
from api_client.emulator.runner.weights import FetchOrder, WeightsEntry

FETCHER = "api_client.emulator.runner.weights_fetch"
"""Named instead of imported: it is the main module of another process."""
REPORT_INTERVAL_S = 10.0
"""Interval between progress lines in the log."""
MAXIMUM_LINE_BYTES = 1024 * 1024
SHORTEST_SECRET_CHARACTERS = 4
"""Shorter values are not hidden, because they occur in any text."""
HIDDEN = "***"

_PASSED_ON = frozenset(
    {
        "PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
        "http_proxy", "https_proxy", "all_proxy", "no_proxy",
        "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "STORAGE_EMULATOR_HOST",
        "HF_ENDPOINT", "HF_HUB_DISABLE_XET", "HF_HUB_DOWNLOAD_TIMEOUT", "HF_HUB_ETAG_TIMEOUT",
    }
)  # fmt: skip
"""Variables passed to the fetch process: they say how to reach servers, not which account to use."""
_QUIET = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}

Say = Callable[[str], None]


class WeightsDelivery:
    """Fetches an entry of ``weights``; ``cancel`` may be called from anywhere on the event loop."""

    def __init__(self, environ: Mapping[str, str], monotonic: Callable[[], float], say: Say) -> None:
        self._environ = environ
        self._monotonic = monotonic
        self._say = say
        self._process: asyncio.subprocess.Process | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        """Cancel the fetch, even before it has started."""
        self._is_cancelled = True
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def deliver(
        self, weights: WeightsEntry, destination: Path, mirror: Path, secret: str | None
    ) -> None:
        """Fill ``destination``; raise ``CannotStart`` on failure. If cancelled, return normally."""
        await asyncio.to_thread(remove_tree, destination)
        order = FetchOrder(
            scheme=weights.scheme,
            location=weights.location,
            revision=weights.revision,
            allow=weights.allow,
            ignore=weights.ignore,
            secret=secret,
            destination=str(destination),
            mirror=str(mirror),
        )
        began_s = self._monotonic()
        answer = await self._fetch(order, weights.source)
        if self._is_cancelled:
            return
        if "error" in answer:
            reason = without_secret(str(answer["error"]), secret)
            raise CannotStart(f"can't fetch the weights {weights.source}: {reason}")
        count, size_bytes = int(answer["delivered_files"]), int(answer["delivered_bytes"])
        took_s = self._monotonic() - began_s
        plural = "" if count == 1 else "s"
        self._say(
            f"[emulator] INFO weights {weights.source}: {count} file{plural},"
            f" {size_text(size_bytes)}, delivered in {took_s:.1f} s"
        )

    async def _fetch(self, order: FetchOrder, source: str) -> dict[str, Any]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            FETCHER,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            limit=MAXIMUM_LINE_BYTES,
            env=self._environment(),
        )
        assert process.stdin is not None
        self._process = process
        if self._is_cancelled:
            process.kill()
        try:
            process.stdin.write(order.to_json())
            return await self._read(process, source)
        finally:
            process.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _read(self, process: asyncio.subprocess.Process, source: str) -> dict[str, Any]:
        assert process.stdout is not None
        reported_at_s = self._monotonic()
        total_bytes = 0
        async for line in process.stdout:
            try:
                told = json.loads(line)
            except ValueError:
                continue  # output of a library
            if "error" in told or "delivered_files" in told:
                return dict(told)
            total_bytes = told.get("total_bytes", total_bytes)
            now_s = self._monotonic()
            if "done_bytes" in told and now_s - reported_at_s >= REPORT_INTERVAL_S:
                reported_at_s = now_s
                whole = f" of {size_text(total_bytes)}" if total_bytes else ""
                self._say(f"[emulator] INFO weights {source}: {size_text(told['done_bytes'])}{whole} fetched")
        return {"error": "the download process ended without an error message"}

    def _environment(self) -> dict[str, str]:
        package_root = str(Path(__file__).resolve().parents[3])
        search_path = os.pathsep.join([package_root, *(path for path in sys.path if path)])
        passed_on = {name: value for name, value in self._environ.items() if name in _PASSED_ON}
        return {**passed_on, **_QUIET, "PYTHONPATH": search_path}


def without_secret(text: str, secret: str | None) -> str:
    """Mask the secret in the text, including each string inside a secret that is a JSON object."""
    if secret is None:
        return text
    parts = {secret, secret.strip()}
    with contextlib.suppress(ValueError):
        content = json.loads(secret)
        if isinstance(content, dict):
            parts.update(value for value in content.values() if isinstance(value, str))
    for part in sorted(parts, key=len, reverse=True):
        if len(part) >= SHORTEST_SECRET_CHARACTERS:
            text = text.replace(part, HIDDEN)
    return text


def size_text(size_bytes: int) -> str:
    size = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
