"""Write the lines of a log to a file, in parts, beside what the screen does."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from datetime import tzinfo
from itertools import islice
from pathlib import Path

from api_client.files import PRIVATE_FILE_MODE, AtomicFile
from api_client.streams.records import LogEntry
from tui.insight.logs.record import record_of
from tui.insight.logs.written import written

LINES_AT_ONCE = 2_000
"""Lines taken from the view in one turn of the event loop: a few milliseconds."""
RECORD_SUFFIXES = frozenset({".ndjson", ".jsonl"})
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


def default_path(job_name: str, job_id: str) -> Path:
    """Where a log is saved unless people say otherwise: a name of the job, in the working folder.

    A job's name comes from a server: nothing of it can lead out of the folder.
    """
    name = _NOT_IN_NAMES.sub("-", job_name or job_id).strip("-.")[:64] or "job"
    return Path(f"{name}.log")


def own_path(typed: str) -> Path:
    """The path that a person typed, ``~`` made theirs."""
    return Path(typed.strip()).expanduser()


def renderer(path: Path, timezone: tzinfo | None) -> Callable[[LogEntry], str]:
    """How entries are written to a file of that name: as records of JSON, or as text."""
    if path.suffix.lower() in RECORD_SUFFIXES:
        return lambda entry: json.dumps(record_of(entry)).replace("\x7f", "\\u007f")
    return lambda entry: written(entry, timezone)


async def save_entries(
    entries: Iterator[LogEntry], path: Path, *, timezone: tzinfo | None = None, replace: bool = False
) -> int:
    """Write entries to a file that only this person can read; returns how many.

    The file appears under its name when it is complete. Raises FileExistsError unless ``replace``, and
    OSError for what else cannot be written.
    """
    render = renderer(path, timezone)
    count = 0
    saved = await asyncio.to_thread(AtomicFile, path, mode=PRIVATE_FILE_MODE, replace=replace)
    try:
        while part := list(islice(entries, LINES_AT_ONCE)):
            count += len(part)
            text = "".join(f"{render(entry)}\n" for entry in part)
            await asyncio.to_thread(saved.file.write, text.encode(errors="backslashreplace"))
        await asyncio.to_thread(saved.commit)
    finally:
        saved.discard()
    return count
