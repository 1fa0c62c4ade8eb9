"""Write a recording that can be opened at any time, and continued after a kill.

All content is scrubbed of secrets before it is encoded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
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
from api_client.recordings.blocks import (
    BLOCK_LINES,
    LOG,
    METRICS,
    Blocks,
    MemberKind,
    clamped_moment,
    times_of,
)
from api_client.recordings.reading import JOB, MANIFEST, Recording, document, file_member
from api_client.recordings.scrub import Scrubber

OVERLAP_NS = 300 * NS_PER_S
"""Time range that a continued recording reads again, because lines and samples may arrive late."""

Document = dict[str, Any]


class _BlockWriter:
    """Collects lines of one kind, writes each full block, and skips lines that the file already has.

    ``blocks`` are the blocks already in the file. Lines are compared only with the blocks of the last
    ``OVERLAP_NS``, because a continued recording does not read older lines again.
    """

    def __init__(self, kind: MemberKind, blocks: Blocks | None, writer: RecordingWriter) -> None:
        self.count = 0
        self._kind = kind
        self._writer = writer
        self._scrub_line = writer.scrub.stream()
        self._number = 0
        self.newest_ns: int | None = None
        self._existing_lines: Counter[str] = Counter()
        if blocks is not None and blocks.last_ns is not None:
            self._number = max(block.number for block in blocks.items)
            self.newest_ns = blocks.last_ns
            for block in blocks.items:
                if block.last_ns >= blocks.last_ns - OVERLAP_NS:
                    with suppress(DamagedMember):
                        self._existing_lines.update(_identity(kind, value) for value in blocks.values(block))
        self._existing_until_ns = self.newest_ns or 0
        self._lines: list[str] = []
        self._stamps: list[int] = []
        self._characters = 0

    def add(self, documents: Iterable[Document]) -> None:
        with self._writer.lock:
            for document in documents:
                self._add(self._scrub_line(document))

    def _add(self, document: Document) -> None:
        times = times_of(document)
        if min(times, default=0) <= self._existing_until_ns and self._is_already_written(document):
            return
        text = json.dumps(document).replace("\x7f", "\\u007f")
        if len(text) > self._kind.line_bytes:
            omitted = "largest samples" if self._kind is METRICS else "longest lines of the log"
            self._writer.problems[omitted] = f"more than {self._kind.line_bytes:,} bytes each"
            if not times or self._kind is METRICS:
                return
            gap = _gap_for_line(times[0])
            text, times = json.dumps(gap), times_of(gap)
        self.count += 1
        self._lines.append(text)
        self._stamps += times
        self._characters += len(text)
        if len(self._lines) >= BLOCK_LINES or self._characters >= self._kind.block_bytes // 4:
            self.flush()

    def flush(self) -> None:
        """Write the lines collected so far; the caller holds the lock."""
        if not self._lines:
            return
        self._number += 1
        previous_newest_ns = self.newest_ns or 0
        first_ns, last_ns = (
            min(self._stamps, default=previous_newest_ns),
            max(self._stamps, default=previous_newest_ns),
        )
        content = ("\n".join(self._lines) + "\n").encode()
        self._writer.archive.append(
            {f"{self._kind.folder}/{self._number:06}_{first_ns}_{last_ns}{LINES_SUFFIX}": content}
        )
        self.newest_ns = max(previous_newest_ns, last_ns)
        self._lines, self._stamps, self._characters = [], [], 0

    def _is_already_written(self, document: Document) -> bool:
        key = _identity(self._kind, document)
        if not self._existing_lines[key]:
            return False
        self._existing_lines[key] -= 1
        return True


def _identity(kind: MemberKind, document: Any) -> str:
    """Return a text that identifies a log line, or a node's samples at one time."""
    if not isinstance(document, dict):
        return ""
    if kind is METRICS:
        return f"{document.get('timestamp')} {document.get('node_id')} {'cache' in document}"
    return json.dumps({name: value for name, value in document.items() if name != "late"}, sort_keys=True)


def _gap_for_line(time_ns: int) -> Document:
    """Return a gap in place of a line. It lasts one microsecond, the resolution of its ISO 8601 times."""
    start, end = clamped_moment(time_ns), clamped_moment(time_ns + 1_000)
    reason = "this line is too long to be recorded"
    return {"gap": {"start": start.isoformat(), "end": end.isoformat(), "reason": reason}}


class RecordingWriter:
    """Appends to a recording, or creates a recording; writes ``documents`` by their names.

    A document that ``Recording`` could not read is not written; ``problems`` gets the reason, by document
    name. The methods may be called from any thread. Raises RecordingError if the file is not a recording, or
    a recording of another job.
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
        self.scrub = scrub
        self.lock = RLock()
        self.problems = {} if problems is None else problems
        self._written: dict[str, bytes] = {}
        initial_contents = self._encode_readable(documents)
        with ExitStack() as exit_stack:
            log = metrics = None
            try:
                new_zip(path, initial_contents)
                self._written |= initial_contents
            except FileExistsError:
                recording = exit_stack.enter_context(Recording(path, complete_only=True))
                _check_may_continue(recording, document(JOB, initial_contents[JOB]).id)
                log, metrics = recording.log.blocks, recording.metrics.blocks
            except OSError as error:
                raise RecordingError(f"can't write {path}: {error.strerror}") from error
            self.log = _BlockWriter(LOG, log, self)
            self.metrics = _BlockWriter(METRICS, metrics, self)
        self.archive = ZipAppender(path)
        try:
            self._write_changed(initial_contents)
        except BaseException:
            self.archive.close()
            raise

    def documents(self, documents: Mapping[str, Any]) -> None:
        """Write the documents that have changed; unreadable documents go to ``problems`` instead."""
        self._write_changed(self._encode_readable(documents))

    def _encode_readable(self, documents: Mapping[str, Any]) -> dict[str, bytes]:
        """Return the encoded documents. Raises RecordingError if a required document would be unreadable."""
        contents = {}
        for name, value in documents.items():
            content = self._encode(value)
            try:
                if self._written.get(name) != content:
                    document(name, content)
                contents[name] = content
            except DamagedMember as error:
                if name in (MANIFEST, JOB):
                    raise RecordingError(f"can't record this job: {error}") from error
                self.problems[name] = str(error)
        return contents

    def file(self, file: CheckpointFile, content: bytes) -> None:
        """Write the content of a checkpoint's text file. Raises ValueError if it is not text."""
        recorded = CheckpointFile.model_validate_json(self._encode(file.model_dump(mode="json")))
        self._write_changed({file_member(recorded): self.scrub(content.decode()).encode()})

    def _write_changed(self, contents: Mapping[str, bytes]) -> None:
        with self.lock:
            changed = {name: data for name, data in contents.items() if self._written.get(name) != data}
            if changed:
                self.archive.append(changed)
                self._written |= changed

    def flush(self) -> None:
        """Write all log lines and samples collected so far."""
        with self.lock:
            self.log.flush()
            self.metrics.flush()

    def close(self) -> None:
        with self.lock:
            try:
                self.flush()
            finally:
                self.archive.close()

    def _encode(self, value: Any) -> bytes:
        return (json.dumps(self.scrub.document(value)) + "\n").encode()


def _check_may_continue(recording: Recording, job_id: str) -> None:
    """Raise RecordingError if this recording can't be continued for the job."""
    if recording.job.id != job_id:
        raise RecordingError(f"{recording.path} is a recording of another job, {recording.job.id}")
    if {LOG.whole, METRICS.whole} & set(recording.member_names()):
        raise RecordingError(f"{recording.path} was not written by bt-tui; record to a new file")
