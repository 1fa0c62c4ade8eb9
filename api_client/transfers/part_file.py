"""The unfinished file of a download: its bytes, and a journal of which ones exist.

The journal lets a later run resume. It also has the attributes and digests by which the run verifies that the
server still has the same file.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import threading
import zlib
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from api_client.files import FULL_DISK, USUAL_FILE_MODE, new_file, open_folder, why_not_written
from api_client.transfers.file_names import TEMPORARY_NAME_PREFIX
from api_client.transfers.object_connection import ObjectHead
from api_client.transfers.records import DownloadError, NoRoom

Span = tuple[int, int]
"""Start (inclusive) and end (exclusive)."""


class Spans:
    """A set of bytes, stored as spans."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._spans: list[Span] = []
        self.size_bytes = 0
        for start, end in spans:
            self.add(start, end)

    def __iter__(self) -> Iterator[Span]:
        return iter(self._spans)

    def add(self, start: int, end: int) -> int:
        """Add the bytes ``start`` … ``end``; return how many of them are new."""
        if end <= start:
            return 0
        first = bisect_left(self._spans, start, key=lambda span: span[1])
        last = bisect_right(self._spans, end, key=lambda span: span[0])
        merged = self._spans[first:last]
        before = sum(high - low for low, high in merged)
        if merged:
            start, end = min(start, merged[0][0]), max(end, merged[-1][1])
        self._spans[first:last] = [(start, end)]
        new = end - start - before
        self.size_bytes += new
        return new

    def cut(self, end: int) -> None:
        """Remove all bytes from ``end`` on."""
        while self._spans and self._spans[-1][1] > end:
            low, high = self._spans.pop()
            self.size_bytes -= high - max(low, end)
            if low < end:
                self._spans.append((low, end))

    @property
    def end(self) -> int:
        """Return the end (exclusive) of the last span."""
        return self._spans[-1][1] if self._spans else 0

    def gaps(self, start: int, end: int) -> Iterator[Span]:
        """Yield the missing spans between ``start`` and ``end``."""
        for low, high in self._spans:
            if low >= end:
                break
            if start < low:
                yield start, low
            start = max(start, high)
        if start < end:
            yield start, end


CHUNK_BYTES = 1024 * 1024
_STRONGEST_FIRST = ("sha512", "sha256", "sha1", "md5", "crc32")


class ExpectedDigests:
    """Collects the digests that answers report for one object.

    Stores differ: a digest sent with a range may be the range's or the object's. It counts for the object
    once answers to different ranges agree.
    """

    def __init__(self) -> None:
        self._certain: dict[str, str] = {}
        self._starts: dict[tuple[str, str], set[int]] = defaultdict(set)

    def add_response(self, head: ObjectHead) -> None:
        """Record the digests in an answer."""
        for digest in head.digests:
            self._starts[digest.algorithm, digest.hexadecimal].add(head.start)
            if digest.of_whole or len(self._starts[digest.algorithm, digest.hexadecimal]) > 1:
                self._certain[digest.algorithm] = digest.hexadecimal

    def strongest(self) -> tuple[str, str] | None:
        """Return algorithm and value of the strongest trusted digest."""
        for algorithm in _STRONGEST_FIRST:
            if algorithm in self._certain:
                return algorithm, self._certain[algorithm]
        return None


def parse_digest(text: str) -> tuple[str, str] | None:
    """Parse a digest from a journal, ``sha256:…``; None if it is malformed."""
    algorithm, _, value = text.partition(":") if isinstance(text, str) else ("", "", "")
    return (algorithm, value) if algorithm in _STRONGEST_FIRST and value else None


def digest_of(descriptor: int, algorithm: str, is_off: Callable[[], bool]) -> str:
    """Compute the hex digest of an open file in chunks; empty once ``is_off`` returns True."""
    hasher = None if algorithm == "crc32" else hashlib.new(algorithm, usedforsecurity=False)
    checksum = offset = 0
    while chunk := os.pread(descriptor, CHUNK_BYTES, offset):
        if is_off():
            return ""
        offset += len(chunk)
        if hasher is None:
            checksum = zlib.crc32(chunk, checksum)
        else:
            hasher.update(chunk)
    return f"{checksum:08x}" if hasher is None else hasher.hexdigest()


JOURNAL_EVERY_S = 0.5
JOURNAL_RESERVE_BYTES = 64 * 1024
"""Bytes given up at the end of the file to make room for the journal when the disk is full."""
_VERSION = 1
_MAX_JOURNAL_BYTES = 1024 * 1024
_NO_PLAIN_FILE = frozenset({errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV, errno.EACCES})


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """Attributes that must match for bytes of an earlier run to be bytes of this file.

    The first fields come from the plan; from ``etag`` on they come from the object's own answer (empty or
    None if unknown). ``digest`` is the server's digest of the whole file, for a later run that gets none.
    """

    job_id: str
    name: str
    node_rank: int
    listed_modified: str = ""
    size_bytes: int | None = None
    etag: str = ""
    last_modified: str = ""
    digest: str = ""

    def may_be(self, other: FileIdentity) -> bool:
        """Return True if no attribute known to both differs."""
        return all(
            mine == theirs
            for mine, theirs in zip(_values(self), _values(other), strict=True)
            if mine not in ("", None) and theirs not in ("", None)
        )


def _values(identity: FileIdentity) -> tuple[Any, ...]:
    # Ignore the digest: answers may carry different kinds of digest.
    return tuple(value for name, value in asdict(identity).items() if name != "digest")


def part_paths(path: Path) -> tuple[Path, Path]:
    """Return the paths of the partial bytes and the journal of the file at ``path``."""
    stem = TEMPORARY_NAME_PREFIX + hashlib.sha256(os.fsencode(path.name)).hexdigest()[:24]
    return path.with_name(stem + ".part"), path.with_name(stem + ".json")


def resumable_bytes(path: Path, identity: FileIdentity) -> int:
    """Return the number of bytes that an earlier run left."""
    part, journal = part_paths(path)
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        size_bytes = os.stat(part.name, dir_fd=folder, follow_symlinks=False).st_size
        found = _read_journal(journal.name, folder, identity, size_bytes)
    except OSError:
        return 0
    finally:
        os.close(folder)
    return found[1].size_bytes if found else 0


class PartFile:
    """A part file open for writing from several threads. Raises DownloadError for file system errors.

    Others may have write access to ``root`` and below: the file's folder is opened once, without
    following links below ``root``, and everything is accessed relative to it. Parts or journals replaced
    by others are not used.
    """

    def __init__(
        self, path: Path, root: Path, identity: FileIdentity, monotonic: Callable[[], float]
    ) -> None:
        self.path = path
        self.identity = identity
        self.spans = Spans()
        part, journal = part_paths(path)
        self._part, self._journal = part.name, journal.name
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._saving = threading.Lock()
        self._saved_at_s = monotonic()
        self._using = threading.Lock()
        self._is_finished = self._is_closing = self._needs_etag = False
        with translate_os_errors(path):
            self._folder = _opened_folder(root, path.relative_to(root).parts[:-1])
        try:
            with translate_os_errors(path):
                self._descriptor = _opened_part(self._part, self._folder)
        except BaseException:
            os.close(self._folder)
            raise
        try:
            _lock_for_us(self._descriptor, path)
            with translate_os_errors(path):
                size_bytes = os.fstat(self._descriptor).st_size
                found = _read_journal(self._journal, self._folder, identity, size_bytes)
                if found:
                    self.identity, self.spans = found
                    self._needs_etag = not identity.may_be(self.identity)
                    if self._needs_etag:
                        self.identity = replace(self.identity, listed_modified=identity.listed_modified)
                else:
                    os.ftruncate(self._descriptor, 0)
        except BaseException:
            os.close(self._descriptor)
            os.close(self._folder)
            raise

    @property
    def size_bytes(self) -> int | None:
        """Size of the whole file, if known."""
        return self.identity.size_bytes

    @property
    def done_bytes(self) -> int:
        """Number of bytes present."""
        return self.spans.size_bytes

    def identify(self, seen: FileIdentity) -> bool:
        """Update the identity from an answer. Returns False if these bytes belong to another object."""
        with self._lock:
            if not self.identity.may_be(seen) or (self._needs_etag and seen.etag != self.identity.etag):
                return False
            self._needs_etag = False
            known = asdict(self.identity)
            news = {name: value for name, value in asdict(seen).items() if known[name] in ("", None)}
            self.identity = replace(self.identity, **news)
            return True

    def start_over(self, identity: FileIdentity) -> None:
        """Discard all bytes."""
        with self._lock, translate_os_errors(self.path):
            self.identity = identity
            self._needs_etag = False
            self.spans = Spans()
            os.ftruncate(self._descriptor, 0)
            _unlink(self._journal, self._folder)

    def write(self, offset: int, chunk: bytes) -> int:
        """Write bytes at ``offset``; return how many of them were missing before."""
        with translate_os_errors(self.path):
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.pwrite(self._descriptor, rest, offset + len(chunk) - len(rest)) :]
        with self._lock:
            new = self.spans.add(offset, offset + len(chunk))
        if self._monotonic() - self._saved_at_s >= JOURNAL_EVERY_S:
            self.save()
        return new

    def gaps(self, end: int) -> list[Span]:
        """Return the missing spans of the first ``end`` bytes."""
        with self._lock:
            return list(self.spans.gaps(0, end))

    def save(self) -> None:
        """Write the journal. If another thread is already writing it, this does nothing more."""
        if self._is_finished or not self._saving.acquire(blocking=False):
            return
        try:
            with self._lock:
                content = {"version": _VERSION, **asdict(self.identity), "spans": list(self.spans)}
            with translate_os_errors(self.path):
                _sync(self._descriptor)
                draft = f"{self._journal}.new"
                _unlink(draft, self._folder)  # left by a killed run
                try:
                    _write_new(draft, self._folder, json.dumps(content).encode())
                    os.replace(draft, self._journal, src_dir_fd=self._folder, dst_dir_fd=self._folder)
                except OSError:
                    _unlink(draft, self._folder)
                    raise
        finally:
            self._saved_at_s = self._monotonic()
            self._saving.release()

    def digest(self, algorithm: str) -> str:
        """Compute the hex digest of all bytes: an algorithm of hashlib, or ``crc32``."""
        with translate_os_errors(self.path), self._using:
            return digest_of(self._descriptor, algorithm, lambda: self._is_closing)

    def finish(self, modified_s: float | None) -> None:
        """Rename the complete file once it is on disk; ``modified_s`` sets its modification time."""
        with translate_os_errors(self.path), self._using:
            if self._is_closing:
                return
            os.ftruncate(self._descriptor, self.done_bytes)
            os.fsync(self._descriptor)
            if modified_s is not None:
                os.utime(self._descriptor, (modified_s, modified_s))
            os.replace(self._part, self.path.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._is_finished = True
            _unlink(self._journal, self._folder)
            with suppress(OSError):
                os.fsync(self._folder)

    def close(self) -> None:
        """Close the file. Unless it is finished, its bytes are kept for the next run."""
        self._is_closing = True
        with self._using:
            try:
                if self._is_finished:
                    return
                if self.done_bytes:
                    with suppress(DownloadError):
                        self._save_final()
                else:
                    _unlink(self._part, self._folder)
                    _unlink(self._journal, self._folder)
            finally:
                os.close(self._descriptor)
                os.close(self._folder)

    def _save_final(self) -> None:
        """Write the final journal; on a full disk, give up the last bytes to make room for it."""
        try:
            self.save()
        except NoRoom:
            with self._lock, translate_os_errors(self.path):
                self.spans.cut(max(0, self.spans.end - JOURNAL_RESERVE_BYTES))
                os.ftruncate(self._descriptor, self.spans.end)
            self.save()


class translate_os_errors:
    """Context manager that translates file system errors to DownloadError with the file's name.

    A full disk becomes NoRoom.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if not isinstance(error, OSError):
            return
        if error.errno in FULL_DISK:
            why = why_not_written(error)
            raise NoRoom(f"{why}. Then run it again to resume") from error
        if isinstance(error, NotADirectoryError) and error.filename is not None:
            where = f"{error.filename} is a link or a file, not a folder"
            raise DownloadError(f"can't write {self._path.name}: {where}") from error
        raise DownloadError(f"can't write {self._path.name}: {why_not_written(error)}") from error


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


def _opened_part(name: str, folder: int) -> int:
    """Open our own part file, or replace whatever else has its name with a new one."""
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


def _write_new(name: str, folder: int, content: bytes) -> None:
    descriptor = new_file(name, USUAL_FILE_MODE, folder=folder)
    try:
        while content:
            content = content[os.write(descriptor, content) :]
    finally:
        os.close(descriptor)


def _unlink(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _read_journal(
    name: str, folder: int, identity: FileIdentity, part_size_bytes: int
) -> tuple[FileIdentity, Spans] | None:
    """Read the journal; None if it is invalid, belongs to another file, or claims bytes that are missing."""
    try:
        with os.fdopen(_opened_own(name, folder, os.O_RDONLY), "rb") as file:
            text = file.read(_MAX_JOURNAL_BYTES + 1)
        if len(text) > _MAX_JOURNAL_BYTES:
            return None
        content = json.loads(text)
        if content.pop("version") != _VERSION:
            return None
        spans = Spans((_whole(start), _whole(end)) for start, end in content.pop("spans"))
        found = FileIdentity(**content)
        size_bytes = found.size_bytes
        if size_bytes is not None:
            _whole(size_bytes)
        if not _may_resume(identity, found, spans) or (found.job_id, found.name, found.node_rank) != (
            identity.job_id,
            identity.name,
            identity.node_rank,
        ):
            return None
    except (_NotOurs, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if spans.end > part_size_bytes or (size_bytes is not None and spans.end > size_bytes):
        return None
    return found, spans


def _may_resume(listed: FileIdentity, found: FileIdentity, spans: Spans) -> bool:
    """Return True if the bytes may belong to the listed file.

    A store may give the same object a new timestamp. Then its strong ETag must match, which only the next
    answer shows, so some bytes must be left to request.
    """
    if listed.may_be(found):
        return True
    is_strong = found.etag not in ("", None) and not found.etag.startswith("W/")
    is_part = found.size_bytes is not None and spans.size_bytes < found.size_bytes
    return is_strong and is_part and replace(listed, listed_modified=found.listed_modified).may_be(found)


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("no number of bytes")
    return value


def _lock_for_us(descriptor: int, path: Path) -> None:
    """Lock the file against other downloads of it; they would overwrite each other's journal."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DownloadError(f"{path.name} is being downloaded by another bt-tui") from None
    except OSError:
        return  # Some network file systems do not support locks.


def _sync(descriptor: int) -> None:
    getattr(os, "fdatasync", os.fsync)(descriptor)
