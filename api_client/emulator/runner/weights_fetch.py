"""The process that fetches one of a job's weights: ``python -m …weights_fetch``, the order on stdin.

A process of its own, so that a stop can end any library in the middle of anything, and so that what a
library leaves behind is gone with it. Standard input stays open while whoever asked is alive: its end, or
anything more on it, ends this process.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from pathlib import Path

from api_client.emulator.runner.weights import HUGGING_FACE, LOCAL_FILES
from api_client.emulator.runner.weights_files import fetch_files
from api_client.emulator.runner.weights_hub import fetch_from_hub
from api_client.emulator.runner.weights_mirror import fetch_objects
from api_client.emulator.runner.weights_order import FetchFailed, FetchOrder, Progress, tell
from api_client.emulator.runner.weights_placing import seal

MAXIMUM_REASON_CHARACTERS = 600


def main() -> int:
    """Fetch; 1 if that failed, with the reason as the last line."""
    order = FetchOrder.from_json(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_asker, daemon=True).start()
    try:
        count, size_bytes = _fetch(order)
    except Exception as error:  # noqa: BLE001 – a library may fail in any way; all of them are an answer
        tell({"error": _reason(error)})
        return 1
    tell({"delivered_files": count, "delivered_bytes": size_bytes})
    return 0


def _fetch(order: FetchOrder) -> tuple[int, int]:
    destination = Path(order.destination)
    destination.mkdir(parents=True)
    Path(order.mirror).mkdir(parents=True, exist_ok=True)
    fetchers = {HUGGING_FACE: fetch_from_hub, LOCAL_FILES: fetch_files}
    fetchers.get(order.scheme, fetch_objects)(order, Progress())
    count, size_bytes = seal(destination)
    if count == 0:
        raise FetchFailed(
            "the patterns let no file through" if order.allow or order.ignore else "there is nothing in it"
        )
    return count, size_bytes


def _reason(error: Exception) -> str:
    words = str(error).strip() or type(error).__name__
    if not isinstance(error, FetchFailed):
        words = f"{type(error).__name__}: {words}"
    return " ".join(words.split())[:MAXIMUM_REASON_CHARACTERS]


def _end_with_asker() -> None:
    with contextlib.suppress(OSError):
        os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
