"""Write a recording so that it opens at any moment, and continues after a kill.

Everything passes the scrubber, which removes secrets, before it is encoded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Any

from api_client.models import CheckpointFile
from api_client.models.logs import NS_PER_S
from api_client.recordings.archive import (
    LINES_SUFFIX,
    DamagedMember,
    RecordingError,
    ZipAppender,
    new_zip,
)
from api_client.recordings.blocks import LOG, METRICS, Blocks, Kind, times_of
from api_client.recordings.reading import JOB, MANIFEST, Recording, document, file_member
from api_client.recordings.scrub import Scrubber
from api_client.recordings.stamps import NS_PER_US, moment_at

TOO_LONG = "this line is too long to be recorded"
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
        self,
        known: _Recorded,
        append: Append,
        scrub: Scrubber,
        lock: RLock,
        most_characters: int,
        left_out: Callable[[], object],
    ) -> None:
        self.count = 0
        self._lock = lock
        self._most_characters = most_characters
        self._kind = known.kind
        self._append = append
        self._scrub_line = scrub.stream()
        self._left_out = left_out
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
                self._add(self._scrub_line(document))

    def _add(self, document: Document) -> None:
        times = times_of(document)
        if min(times, default=0) <= self._known_until_ns and self._is_known(document):
            return
        text = json.dumps(document).replace("\x7f", "\\u007f")
        if len(text) > self._kind.line_bytes:
            self._left_out()
            if not times or self._kind is METRICS:
                return
            gap = _gap(times[0], TOO_LONG)
            text, times = json.dumps(gap), times_of(gap)
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
        near_ns = self.newest_ns or 0
        first_ns, last_ns = min(self._stamps, default=near_ns), max(self._stamps, default=near_ns)
        content = ("\n".join(self._lines) + "\n").encode()
        self._append({f"{self._kind.folder}/{self._number:06}_{first_ns}_{last_ns}{LINES_SUFFIX}": content})
        self.newest_ns = max(near_ns, last_ns)
        self._lines, self._stamps, self._characters = [], [], 0

    def _is_known(self, document: Document) -> bool:
        key = _key(self._kind, document)
        if not self._known[key]:
            return False
        self._known[key] -= 1
        return True


class _Recorded:
    """The end of what is in the file already, which must not be repeated if it is read again."""

    def __init__(self, kind: Kind, blocks: Blocks | None = None) -> None:
        items = blocks.items if blocks is not None else []
        self.kind = kind
        self.block_count = max((block.number for block in items), default=0)
        self.newest_ns = blocks.last_ns if blocks is not None else None
        self.objects: Counter[str] = Counter()
        for block in items:
            if blocks is not None and block.last_ns >= (self.newest_ns or 0) - OVERLAP_NS:
                with suppress(DamagedMember):
                    self.objects.update(_key(kind, value) for value in blocks.values(block))


def _key(kind: Kind, document: Any) -> str:
    """Return what identifies a line, or the samples of a node at a time."""
    if not isinstance(document, dict):
        return ""
    if kind is METRICS:
        return f"{document.get('timestamp')} {document.get('node_id')} {'cache' in document}"
    return json.dumps({name: value for name, value in document.items() if name != "late"}, sort_keys=True)


def _gap(time_ns: int, reason: str) -> Document:
    """Return a gap at a time, within the microseconds that ISO 8601 can have."""
    start, end = moment_at(time_ns), moment_at(time_ns + NS_PER_US)
    return {"gap": {"start": start.isoformat(), "end": end.isoformat(), "reason": reason}}


class RecordingWriter:
    """Appends to a recording, or begins one with these documents.

    It takes what ``Recording`` reads; the other parts are put into ``problems`` with the reason.

    Its methods are safe from any thread. Raises RecordingError if the file is something else, or the
    recording of another job.
    """

    def __init__(
        self,
        path: Path,
        documents: Mapping[str, Any],
        scrub: Scrubber,
        problems: dict[str, str] | None = None,
    ) -> None:
        if path.is_dir():
            raise RecordingError(f"{path} is a folder; record to a file")
        self._scrub = scrub
        self._lock = RLock()
        self._written: dict[str, bytes] = {}
        self._problems = {} if problems is None else problems
        log, metrics = _Recorded(LOG), _Recorded(METRICS)
        first = self._readable(documents)
        try:
            new_zip(path, first)
            self._written |= first
        except FileExistsError:
            log, metrics = self._known(path, document(JOB, first[JOB]).id)
        except OSError as error:
            raise RecordingError(f"can't write {path}: {error.strerror}") from error
        self._zip = ZipAppender(path)
        self.log = self._blocks(log, BLOCK_CHARACTERS)
        self.metrics = self._blocks(metrics, METRICS_BLOCK_CHARACTERS)
        self._append(first)

    def _blocks(self, known: _Recorded, most_characters: int) -> _BlockWriter:
        kind = known.kind
        part = "longest lines of the log" if kind is LOG else "largest samples"

        def leave_out() -> None:
            self._problems[part] = f"more than {kind.line_bytes:,} bytes each"

        return _BlockWriter(known, self._zip.append, self._scrub, self._lock, most_characters, leave_out)

    def _known(self, path: Path, job_id: str) -> tuple[_Recorded, _Recorded]:
        with Recording(path, complete_only=True) as recording:
            if recording.job.id != job_id:
                raise RecordingError(f"{path} is a recording of another job, {recording.job.id}")
            if {LOG.whole, METRICS.whole} & set(recording.member_names()):
                raise RecordingError(f"{path} was not written by bt-tui; record to a new file")
            return (
                _Recorded(LOG, recording.log.blocks),
                _Recorded(METRICS, recording.metrics.blocks),
            )

    def documents(self, documents: Mapping[str, Any]) -> None:
        """Write the documents that have changed, without those that could not be read again."""
        self._append(self._readable(documents))

    def _readable(self, documents: Mapping[str, Any]) -> dict[str, bytes]:
        """Return the content of documents. Raises RecordingError if one that is required can't be read."""
        contents = {}
        for name, value in documents.items():
            content = self._json(value)
            try:
                if self._written.get(name) != content:
                    document(name, content)
                contents[name] = content
            except DamagedMember as error:
                if name in (MANIFEST, JOB):
                    raise RecordingError(f"can't record this job: {error}") from error
                self._problems[name] = str(error)
        return contents

    def file(self, file: CheckpointFile, content: bytes) -> None:
        """Write the content of a text file of a checkpoint. Raises ValueError if it is not text."""
        recorded = CheckpointFile.model_validate_json(self._json(file.model_dump(mode="json")))
        self._append({file_member(recorded): self._scrub(content.decode()).encode()})

    def _append(self, contents: Mapping[str, bytes]) -> None:
        with self._lock:
            changed = {name: data for name, data in contents.items() if self._written.get(name) != data}
            if changed:
                self._zip.append(changed)
                self._written |= changed

    def flush(self) -> None:
        """Write all log lines and samples so far."""
        with self._lock:
            self.log.flush()
            self.metrics.flush()

    def close(self) -> None:
        with self._lock:
            try:
                self.flush()
            finally:
                self._zip.close()

    def _json(self, value: Any) -> bytes:
        return (json.dumps(self._scrub.document(value)) + "\n").encode()
