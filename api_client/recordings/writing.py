"""Write a recording so that it opens at any moment, and continues after a kill.

Everything passes the scrubber, which removes secrets, on its way to the file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Any

from api_client.models.logs import NS_PER_S
from api_client.recordings.archive import DamagedMember, RecordingError, ZipAppender, new_zip
from api_client.recordings.blocks import LOG, LOG_FOLDER, METRICS, METRICS_FOLDER, Blocks, times_of
from api_client.recordings.reading import JOB, Recording
from api_client.recordings.scrub import Scrubber

BLOCK_LINES = 2_000
BLOCK_CHARACTERS = 2 * 1024**2
METRICS_BLOCK_CHARACTERS = 512 * 1024
"""An hour of 512 GPUs is five blocks of metrics."""
OVERLAP_NS = 300 * NS_PER_S
"""A continued recording reads this much again, because lines and samples may be late."""

Document = dict[str, Any]
Append = Callable[[Mapping[str, bytes]], object]


class _BlockWriter:
    """Objects of one kind; a full block is written, and none is written twice."""

    def __init__(
        self, known: _Recorded, append: Append, scrub: Scrubber, lock: RLock, most_characters: int
    ) -> None:
        self.count = 0
        self._lock = lock
        self._most_characters = most_characters
        self._folder = known.folder
        self._append = append
        self._scrub = scrub
        self._number = known.block_count
        self._known = known.objects
        self._known_until_ns = known.newest_ns or 0
        self.newest_ns = known.newest_ns
        self._lines: list[str] = []
        self._stamps: list[int] = []
        self._characters = 0

    def add(self, documents: Iterable[Document]) -> None:
        with self._lock:
            for document in documents:
                self._add(document)

    def _add(self, document: Document) -> None:
        times = times_of(document)
        if min(times, default=0) <= self._known_until_ns and self._is_known(document):
            return
        text = json.dumps(document).replace("\x7f", "\\u007f")
        self.count += 1
        self._lines.append(text)
        self._stamps += times
        self._characters += len(text)
        if len(self._lines) >= BLOCK_LINES or self._characters >= self._most_characters:
            self.flush()

    def flush(self) -> None:
        """Write the lines so far; the caller holds the lock."""
        if not self._lines:
            return
        self._number += 1
        first_ns, last_ns = min(self._stamps, default=0), max(self._stamps, default=0)
        self.newest_ns = max(self.newest_ns or 0, last_ns)
        content = self._scrub("\n".join(self._lines) + "\n").encode()
        self._append({f"{self._folder}/{self._number:06}_{first_ns}_{last_ns}.ndjson": content})
        self._lines, self._stamps, self._characters = [], [], 0

    def _is_known(self, document: Document) -> bool:
        key = _key(self._folder, json.loads(self._scrub(json.dumps(document))))
        if not self._known[key]:
            return False
        self._known[key] -= 1
        return True


class _Recorded:
    """The end of what is in the file already, which must not be repeated if it is read again."""

    def __init__(self, folder: str, blocks: Blocks | None = None) -> None:
        items = blocks.items if blocks is not None else []
        self.folder = folder
        self.block_count = max((block.number for block in items), default=0)
        self.newest_ns = blocks.last_ns if blocks is not None else None
        self.objects: Counter[str] = Counter()
        for block in items:
            if blocks is not None and block.last_ns >= (self.newest_ns or 0) - OVERLAP_NS:
                with suppress(DamagedMember):
                    self.objects.update(_key(folder, value) for value in blocks.values(block))


def _key(folder: str, document: Any) -> str:
    """Return what identifies a line, or the samples of a node at a time."""
    if not isinstance(document, dict):
        return ""
    if folder == METRICS_FOLDER:
        return f"{document.get('timestamp')} {document.get('node_id')} {'cache' in document}"
    return json.dumps({name: value for name, value in document.items() if name != "late"}, sort_keys=True)


class RecordingWriter:
    """Appends to a recording, or begins one with these documents.

    Its methods are safe from any thread. Raises RecordingError if the file is something else, or the
    recording of another job.
    """

    def __init__(self, path: Path, documents: Mapping[str, Any], scrub: Scrubber) -> None:
        self._scrub = scrub
        self._lock = RLock()
        self._written: dict[str, bytes] = {}
        log, metrics = _Recorded(LOG_FOLDER), _Recorded(METRICS_FOLDER)
        first = {name: self._json(value) for name, value in documents.items()}
        try:
            new_zip(path, first)
            self._written |= first
        except FileExistsError:
            log, metrics = self._known(path, documents[JOB]["id"])
        except OSError as error:
            raise RecordingError(f"can't write {path}: {error.strerror}") from error
        self._zip = ZipAppender(path)
        self.log = _BlockWriter(log, self._zip.append, scrub, self._lock, BLOCK_CHARACTERS)
        self.metrics = _BlockWriter(metrics, self._zip.append, scrub, self._lock, METRICS_BLOCK_CHARACTERS)
        self.documents(documents)

    def _known(self, path: Path, job_id: str) -> tuple[_Recorded, _Recorded]:
        if path.is_dir():
            raise RecordingError(f"{path} is a folder; record to a file")
        with Recording(path, complete_only=True) as recording:
            if recording.job.id != job_id:
                raise RecordingError(f"{path} is a recording of another job, {recording.job.id}")
            if {LOG, METRICS} & set(recording.member_names()):
                raise RecordingError(f"{path} was not written by bt-tui; record to a new file")
            return (
                _Recorded(LOG_FOLDER, recording.log.blocks),
                _Recorded(METRICS_FOLDER, recording.metrics.blocks),
            )

    def documents(self, documents: Mapping[str, Any]) -> None:
        """Write the documents that have changed."""
        self.files({name: self._json(value) for name, value in documents.items()})

    def files(self, contents: Mapping[str, bytes]) -> None:
        """Write the members that have changed; text among them is scrubbed."""
        with self._lock:
            changed = {name: each for name, each in contents.items() if self._written.get(name) != each}
            if changed:
                self._written |= changed
                self._zip.append(changed)

    def text(self, content: bytes) -> bytes:
        """Return a text file without secrets. Raises ValueError if it is not text."""
        return self._scrub(content.decode()).encode()

    def flush(self) -> None:
        """Write all log lines and samples so far."""
        with self._lock:
            self.log.flush()
            self.metrics.flush()

    def close(self) -> None:
        with self._lock:
            self.flush()
            self._zip.close()

    def _json(self, value: Any) -> bytes:
        return (self._scrub(json.dumps(value, indent=1)) + "\n").encode()
