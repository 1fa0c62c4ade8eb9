"""The unfinished file of a download: its bytes, and a journal of which ones exist.

The journal has JSON lines: the file's identity, by which a later run verifies that the server still has the
same file, and then the start and end of each range that arrived, added once its bytes are on the disk.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from api_client.files import (
    FULL_DISK,
    TEMPORARY_PREFIX,
    USUAL_FILE_MODE,
    new_file,
    open_folder,
    why_not_written,
)
from api_client.transfers.object_answers import digest_of, is_digest
from api_client.transfers.records import DownloadError, NoRoom

Span = tuple[int, int]  # start (inclusive) and end (exclusive)

_VERSION = 2
_RESERVED_BYTES = 4096  # written to a new journal at once: a disk that fills up later has room for its lines
_MAX_JOURNAL_BYTES = 1024 * 1024
_NO_PLAIN_FILE = frozenset({errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV, errno.EACCES})


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """Identity of a file, which a later run must find unchanged to resume.

    The first fields come from the listing. ``version`` and ``digest`` come from the object's own answers
    (empty if unknown): a later run may get no digest, and verifies the file by this one.
    """

    job_id: str
    name: str
    node_rank: int
    listed_modified: str = ""
    size_bytes: int | None = None
    version: str = ""
    digest: str = ""

    @property
    def has_strong_version(self) -> bool:
        """True if equal versions prove equal bytes."""
        return self.version.startswith('"')


def gaps(spans: Iterable[Span], size_bytes: int) -> Iterator[Span]:
    """Yield the missing spans of a file, in order."""
    position = 0
    for start, end in [*sorted(span for span in spans if span[0] < span[1]), (size_bytes, size_bytes)]:
        if position < min(start, size_bytes):
            yield position, min(start, size_bytes)
        position = max(position, end)


def _count_bytes(spans: Sequence[Span]) -> int:
    end = max((end for _, end in spans), default=0)
    return end - sum(high - low for low, high in gaps(spans, end))


def part_paths(path: Path) -> tuple[Path, Path]:
    stem = TEMPORARY_PREFIX + hashlib.sha256(os.fsencode(path.name)).hexdigest()[:24]
    return path.with_name(stem + ".part"), path.with_name(stem + ".json")


def resumable_bytes(path: Path, listed: FileIdentity) -> int:
    """Return the number of bytes that an earlier run left."""
    part, journal = part_paths(path)
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        size_bytes = os.stat(part.name, dir_fd=folder, follow_symlinks=False).st_size
        descriptor = _opened_own(journal.name, folder, os.O_RDONLY)
        with os.fdopen(descriptor, "rb") as file:
            found = _read_journal(file.fileno(), listed, size_bytes)
        return _count_bytes(found[1]) if found else 0
    except (OSError, _NotOurs):
        return 0
    finally:
        os.close(folder)


class PartFile:
    """A part file open for writing from several threads. Raises DownloadError for file system errors.

    Others may have write access to ``root`` and below: the file's folder is opened once, without
    following links below ``root``, and everything is accessed relative to it. Parts or journals replaced
    by others are not used. Only one process at a time can open it.
    """

    def __init__(self, path: Path, root: Path, listed: FileIdentity) -> None:
        self.path = path
        self.identity = listed
        self._spans: list[Span] = []
        part, journal = part_paths(path)
        self._part_name, self._journal_name = part.name, journal.name
        self._lock = threading.Lock()
        self._using = threading.Lock()
        self._must_be_same_version = self._is_finished = self._is_closing = False
        self._journal_end = 0
        self._descriptor = self._journal = -1
        with translate_os_errors(path):
            self._folder = _opened_folder(root, path.relative_to(root).parts[:-1])
        try:
            with translate_os_errors(path):
                self._descriptor = _opened(self._part_name, self._folder)
                _lock_for_us(self._descriptor, path)
                self._journal = _opened(self._journal_name, self._folder)
                self._resume(listed)
        except BaseException:
            self._close_descriptors()
            raise

    def _resume(self, listed: FileIdentity) -> None:
        found = _read_journal(self._journal, listed, os.fstat(self._descriptor).st_size)
        if found is None:
            self._clear(listed)
            return
        self.identity, self._spans, self._journal_end = found
        # The same object may have a new time, but then its version must prove that it is the same.
        self._must_be_same_version = self.identity.listed_modified != listed.listed_modified
        self.identity = replace(self.identity, listed_modified=listed.listed_modified)
        self._reserve()

    @property
    def size_bytes(self) -> int | None:
        return self.identity.size_bytes

    @property
    def done_bytes(self) -> int:
        with self._lock:
            return _count_bytes(self._spans)

    def identify(self, *, size_bytes: int | None = None, version: str = "", digest: str = "") -> bool:
        """Compare with an answer, and add what was unknown. Returns False if this is another object."""
        with self._lock:
            known = self.identity
            differs = version != known.version
            if size_bytes is not None and known.size_bytes not in (None, size_bytes):
                return False
            if differs and (self._must_be_same_version or (version and known.version)):
                return False
            self._must_be_same_version = False
            self.identity = replace(
                known,
                size_bytes=known.size_bytes if size_bytes is None else size_bytes,
                version=known.version or version,
                digest=known.digest or digest,
            )
            if self.identity != known or not self._journal_end:
                self._append({"journal": _VERSION, **asdict(self.identity)})
            return True

    def start_over(self, listed: FileIdentity) -> None:
        with self._lock, translate_os_errors(self.path):
            self._clear(listed)

    def missing(self, part_bytes: int) -> list[tuple[int, int | None]]:
        """Return the missing parts, at most ``part_bytes`` long. If the size is unknown, one without end."""
        with self._lock:
            if not self.identity.size_bytes:
                return [(next(gaps(self._spans, 2**63))[0], None)]
            return [
                (start, min(start + part_bytes, high))
                for low, high in gaps(self._spans, self.identity.size_bytes)
                for start in range(low, high, part_bytes)
            ]

    def write(self, offset: int, chunk: bytes) -> None:
        with translate_os_errors(self.path):
            _write_all(self._descriptor, chunk, offset)

    def record(self, start: int, end: int) -> None:
        if start >= end:
            return
        with translate_os_errors(self.path):
            getattr(os, "fdatasync", os.fsync)(self._descriptor)
        with self._lock:
            self._spans.append((start, end))
            self._append([start, end])

    def verify(self) -> str:
        """Compare the digest of all bytes with the server's. Returns the algorithm; empty if they differ.

        Without a digest, the size was compared while the bytes arrived.
        """
        expected = self.identity.digest
        if not expected:
            return "size"
        algorithm = expected.partition(":")[0]
        with translate_os_errors(self.path), self._using:
            found = digest_of(self._descriptor, algorithm, lambda: self._is_closing)
        return algorithm if found == expected else ""

    def finish(self, modified_s: float | None) -> None:
        """Rename the complete file once it is on disk; ``modified_s`` sets its modification time."""
        with translate_os_errors(self.path), self._using:
            if self._is_closing:
                return
            os.ftruncate(self._descriptor, self.done_bytes)
            os.fsync(self._descriptor)
            if modified_s is not None:
                os.utime(self._descriptor, (modified_s, modified_s))
            os.replace(self._part_name, self.path.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._is_finished = True
            _unlink(self._journal_name, self._folder)
            with suppress(OSError):
                os.fsync(self._folder)

    def close(self) -> None:
        """Close the file. Unless it is finished, its bytes are kept for the next run."""
        self._is_closing = True
        with self._using:
            if not self._is_finished and not self._spans:
                _unlink(self._part_name, self._folder)
                _unlink(self._journal_name, self._folder)
            self._close_descriptors()

    def _close_descriptors(self) -> None:
        for descriptor in (self._descriptor, self._journal, self._folder):
            if descriptor >= 0:
                os.close(descriptor)

    def _clear(self, listed: FileIdentity) -> None:
        self.identity, self._spans = listed, []
        self._must_be_same_version, self._journal_end = False, 0
        os.ftruncate(self._descriptor, 0)
        os.ftruncate(self._journal, 0)

    def _append(self, line: Any) -> None:
        with translate_os_errors(self.path):
            if not self._journal_end:
                self._reserve()
            content = json.dumps(line).encode() + b"\n"
            _write_all(self._journal, content, self._journal_end)
            self._journal_end += len(content)

    def _reserve(self) -> None:
        """Overwrite what follows the last line with empty lines."""
        _write_all(self._journal, b"\n" * _RESERVED_BYTES, self._journal_end)


@contextmanager
def translate_os_errors(path: Path) -> Iterator[None]:
    """Translate file system errors to DownloadError with the file's name; a full disk becomes NoRoom."""
    try:
        yield
    except OSError as error:
        why = why_not_written(error)
        if error.errno in FULL_DISK:
            raise NoRoom(f"{why}. Then run it again to resume") from error
        if isinstance(error, NotADirectoryError) and error.filename is not None:
            why = f"{error.filename} is a link or a file, not a folder"
        raise DownloadError(f"can't write {path.name}: {why}") from error


def _opened_folder(root: Path, names: Sequence[str]) -> int:
    """Create and open the file's folder; the caller closes it.

    ``root`` may be a link made by the user or the system, but not by someone else: its name is often the
    job's id in the working directory, where others may have write access.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), error.filename) from None
    follows = 0 if _is_own_link(root) else os.O_NOFOLLOW
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | follows)
    except OSError as error:
        if error.errno != errno.ELOOP:  # macOS returns ELOOP for a link
            raise
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(root)) from None
    try:
        return open_folder(folder, names, create=True)
    finally:
        os.close(folder)


def _is_own_link(path: Path) -> bool:
    found = path.lstat()
    return stat.S_ISLNK(found.st_mode) and found.st_uid in (0, os.geteuid())


def _opened(name: str, folder: int) -> int:
    """Open our own file, or replace whatever else has its name with a new one."""
    try:
        return _opened_own(name, folder, os.O_RDWR)
    except _NotOurs:
        _unlink(name, folder)
        return new_file(name, USUAL_FILE_MODE, folder=folder, readable=True)


def _opened_own(name: str, folder: int, flags: int) -> int:
    """Open a regular file that is ours and has no other name. Raises _NotOurs for anything else."""
    try:
        descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_PLAIN_FILE:
            raise _NotOurs from None
        raise
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_uid == os.geteuid():
        return descriptor
    os.close(descriptor)
    raise _NotOurs


class _NotOurs(Exception):
    """The file does not exist, or someone else created it."""


def _write_all(descriptor: int, content: bytes, offset: int) -> None:
    rest = memoryview(content)
    while rest:
        written = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[written:], offset + written


def _unlink(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _read_journal(
    descriptor: int, listed: FileIdentity, part_size_bytes: int
) -> tuple[FileIdentity, list[Span], int] | None:
    """Return what the journal says, and the end of its last line.

    None if it is invalid, belongs to another file, or claims bytes that are missing.
    """
    text = os.pread(descriptor, _MAX_JOURNAL_BYTES, 0)
    identity: FileIdentity | None = None
    spans: list[Span] = []
    end = 0
    try:
        for line in text.splitlines(keepends=True):
            if not line.endswith(b"\n") or not line.strip():
                break  # the line that a killed run was about to write, or the reserved room
            value = json.loads(line)
            if isinstance(value, dict):
                if value.pop("journal") != _VERSION:
                    return None
                identity = FileIdentity(**value)
            else:
                start, stop = value
                spans.append((_whole(start), _whole(stop)))
            end += len(line)
        if identity is None or not _may_resume(identity, listed, spans):
            return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    limit = part_size_bytes if identity.size_bytes is None else min(part_size_bytes, identity.size_bytes)
    if any(stop > limit for _, stop in spans):
        return None
    return identity, spans, end


def _may_resume(found: FileIdentity, listed: FileIdentity, spans: Sequence[Span]) -> bool:
    """Return True if the bytes may belong to the listed file.

    A store may give the same object a new timestamp. Then its version must match, which only the next
    answer shows, so some bytes must be left to request.
    """
    if (found.job_id, found.name, found.node_rank) != (listed.job_id, listed.name, listed.node_rank):
        return False
    if found.size_bytes is not None:
        _whole(found.size_bytes)
        if listed.size_bytes not in (None, found.size_bytes):
            return False
    if not isinstance(found.version, str) or (found.digest and not is_digest(found.digest)):
        return False
    if found.listed_modified == listed.listed_modified:
        return True
    is_part = found.size_bytes is not None and _count_bytes(spans) < found.size_bytes
    return found.has_strong_version and is_part


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("no number of bytes")
    return value


def _lock_for_us(descriptor: int, path: Path) -> None:
    """Lock the file against other downloads of it; they would overwrite each other's journal."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DownloadError(f"{path.name} is being downloaded by another bt-tui") from None
    except OSError:
        return  # Some network file systems do not support locks.
