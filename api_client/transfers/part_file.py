"""Which bytes of a file are there: spans that neither touch nor overlap, in order."""

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
from api_client.transfers.file_names import OWN_PREFIX
from api_client.transfers.object_connection import ObjectHead
from api_client.transfers.records import DownloadError, NoRoom

Span = tuple[int, int]
"""First byte, and the first one after the last."""


class Spans:
    """A set of bytes, as spans."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._spans: list[Span] = []
        self.size_bytes = 0
        for start, end in spans:
            self.add(start, end)

    def __iter__(self) -> Iterator[Span]:
        return iter(self._spans)

    def add(self, start: int, end: int) -> int:
        """Add the bytes ``start`` … ``end``; how many of them are new."""
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
        """Take away all bytes from ``end`` on."""
        while self._spans and self._spans[-1][1] > end:
            low, high = self._spans.pop()
            self.size_bytes -= high - max(low, end)
            if low < end:
                self._spans.append((low, end))

    @property
    def end(self) -> int:
        """The first byte after all of them."""
        return self._spans[-1][1] if self._spans else 0

    def gaps(self, start: int, end: int) -> Iterator[Span]:
        """What is missing between ``start`` and ``end``."""
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


class Promises:
    """Collects what the answers about one object say its digest is.

    A digest beside a range may be the range's or the object's, as stores differ: it counts for the object
    once answers of different ranges have said the same.
    """

    def __init__(self) -> None:
        self._certain: dict[str, str] = {}
        self._starts: dict[tuple[str, str], set[int]] = defaultdict(set)

    def hear(self, head: ObjectHead) -> None:
        """Take note of an answer."""
        for digest in head.digests:
            self._starts[digest.algorithm, digest.hexadecimal].add(head.start)
            if digest.of_whole or len(self._starts[digest.algorithm, digest.hexadecimal]) > 1:
                self._certain[digest.algorithm] = digest.hexadecimal

    def strongest(self) -> tuple[str, str] | None:
        """Algorithm and value of the best that is certain."""
        for algorithm in _STRONGEST_FIRST:
            if algorithm in self._certain:
                return algorithm, self._certain[algorithm]
        return None


def read_promise(text: str) -> tuple[str, str] | None:
    """A digest as a journal keeps it, ``sha256:…``; None if it is none."""
    algorithm, _, value = text.partition(":") if isinstance(text, str) else ("", "", "")
    return (algorithm, value) if algorithm in _STRONGEST_FIRST and value else None


def digest_of(descriptor: int, algorithm: str, is_off: Callable[[], bool]) -> str:
    """The digest of an open file, in hexadecimal, read piece by piece; empty once ``is_off`` says so."""
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
JOURNAL_ROOM_BYTES = 64 * 1024
"""So many of the last bytes are given up where the disk is too full to note which of them are there."""
_VERSION = 1
_MAX_JOURNAL_BYTES = 1024 * 1024
_NO_PLAIN_FILE = frozenset({errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV, errno.EACCES})


@dataclass(frozen=True, slots=True)
class Identity:
    """What must be the same for bytes of an earlier run to be bytes of this file.

    The first come from the plan, from ``etag`` on they are the object's own answer's (empty, None: not
    told). ``digest`` is what the server promises of the whole, for a later run that hears nothing of it.
    """

    job_id: str
    name: str
    node_rank: int
    listed_modified: str = ""
    size_bytes: int | None = None
    etag: str = ""
    last_modified: str = ""
    digest: str = ""

    def may_be(self, other: Identity) -> bool:
        """Whether nothing that both know of tells them apart."""
        return all(
            mine == theirs
            for mine, theirs in zip(_values(self), _values(other), strict=True)
            if mine not in ("", None) and theirs not in ("", None)
        )


def _values(identity: Identity) -> tuple[Any, ...]:
    # The digest is no mark: an answer may tell another kind of it than the last one did.
    return tuple(value for name, value in asdict(identity).items() if name != "digest")


def part_paths(path: Path) -> tuple[Path, Path]:
    """Where the bytes and the journal of the file at ``path`` lie while it arrives."""
    stem = OWN_PREFIX + hashlib.sha256(os.fsencode(path.name)).hexdigest()[:24]
    return path.with_name(stem + ".part"), path.with_name(stem + ".json")


def resumable_bytes(path: Path, identity: Identity) -> int:
    """How much of the file an earlier run has left."""
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
    """Open for writing, from several threads. Raises DownloadError where the file system says no.

    Others may be able to write to ``root`` and what is below it: the file's folder is opened once, with no
    link below ``root`` followed, and everything is named relative to it. What others put in the place of a
    part or a journal is not used.
    """

    def __init__(self, path: Path, root: Path, identity: Identity, monotonic: Callable[[], float]) -> None:
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
        with translated(path):
            self._folder = _opened_folder(root, path.relative_to(root).parts[:-1])
        try:
            with translated(path):
                self._descriptor = _opened_part(self._part, self._folder)
        except BaseException:
            os.close(self._folder)
            raise
        try:
            _lock_for_us(self._descriptor, path)
            with translated(path):
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
        """The size of the whole, where it is known."""
        return self.identity.size_bytes

    @property
    def done_bytes(self) -> int:
        """How many bytes are there."""
        return self.spans.size_bytes

    def identify(self, seen: Identity) -> bool:
        """Learn what an answer tells of the object. False if it is not the one that these bytes are of."""
        with self._lock:
            if not self.identity.may_be(seen) or (self._needs_etag and seen.etag != self.identity.etag):
                return False
            self._needs_etag = False
            known = asdict(self.identity)
            news = {name: value for name, value in asdict(seen).items() if known[name] in ("", None)}
            self.identity = replace(self.identity, **news)
            return True

    def start_over(self, identity: Identity) -> None:
        """Forget all bytes."""
        with self._lock, translated(self.path):
            self.identity = identity
            self._needs_etag = False
            self.spans = Spans()
            os.ftruncate(self._descriptor, 0)
            _unlink(self._journal, self._folder)

    def write(self, offset: int, chunk: bytes) -> int:
        """Put bytes where they belong; how many of them were missing."""
        with translated(self.path):
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.pwrite(self._descriptor, rest, offset + len(chunk) - len(rest)) :]
        with self._lock:
            new = self.spans.add(offset, offset + len(chunk))
        if self._monotonic() - self._saved_at_s >= JOURNAL_EVERY_S:
            self.save()
        return new

    def gaps(self, end: int) -> list[Span]:
        """What is missing of the first ``end`` bytes."""
        with self._lock:
            return list(self.spans.gaps(0, end))

    def save(self) -> None:
        """Write the journal. Two threads at once would do no more than one."""
        if self._is_finished or not self._saving.acquire(blocking=False):
            return
        try:
            with self._lock:
                content = {"version": _VERSION, **asdict(self.identity), "spans": list(self.spans)}
            with translated(self.path):
                _sync(self._descriptor)
                draft = f"{self._journal}.new"
                _unlink(draft, self._folder)  # of a run that was killed
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
        """The digest of all bytes, in hexadecimal: of hashlib's kinds, or ``crc32``."""
        with translated(self.path), self._using:
            return digest_of(self._descriptor, algorithm, lambda: self._is_closing)

    def finish(self, modified_s: float | None) -> None:
        """Give the complete file its name, once it is on the disk; ``modified_s`` as its time, if known."""
        with translated(self.path), self._using:
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
        """Let go of it. Unless it is finished, what is there is kept for the next time."""
        self._is_closing = True
        with self._using:
            try:
                if self._is_finished:
                    return
                if self.done_bytes:
                    with suppress(DownloadError):
                        self._save_at_last()
                else:
                    _unlink(self._part, self._folder)
                    _unlink(self._journal, self._folder)
            finally:
                os.close(self._descriptor)
                os.close(self._folder)

    def _save_at_last(self) -> None:
        """Write the journal once nothing else is written; on a full disk, in place of the last bytes."""
        try:
            self.save()
        except NoRoom:
            with self._lock, translated(self.path):
                self.spans.cut(max(0, self.spans.end - JOURNAL_ROOM_BYTES))
                os.ftruncate(self._descriptor, self.spans.end)
            self.save()


class translated:
    """What the file system says, as DownloadError with the file's name; NoRoom for a full disk."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if not isinstance(error, OSError):
            return
        if error.errno in FULL_DISK:
            why = why_not_written(error)
            raise NoRoom(f"{why}. Then run it again; it resumes from what could be kept") from error
        if isinstance(error, NotADirectoryError) and error.filename is not None:
            where = f"{error.filename} is a link or a file where a folder must be"
            raise DownloadError(f"can't write {self._path.name}: {where}") from error
        raise DownloadError(f"can't write {self._path.name}: {why_not_written(error)}") from error


def _opened_folder(root: Path, names: Sequence[str]) -> int:
    """Make and open the file's folder; the caller closes it.

    ``root`` may be a link of the user's or of the system's, but not of somebody else's: its name is often
    the job's id in the working directory, where others may be able to write.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), error.filename) from None
    follows = 0 if _is_own_link(root) else os.O_NOFOLLOW
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | follows)
    except OSError as error:
        if error.errno != errno.ELOOP:  # macOS's word for a link
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
    """Open our own part file, or a new one in place of whatever else has the name."""
    try:
        return _opened_own(name, folder, os.O_RDWR)
    except _NotOurs:
        _unlink(name, folder)
        return new_file(name, USUAL_FILE_MODE, folder=folder, readable=True)


def _opened_own(name: str, folder: int, flags: int) -> int:
    """Open a plain file of ours that has no other name. Raises _NotOurs for anything else, or nothing."""
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
    """There is no such file, or somebody else put it there."""


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
    name: str, folder: int, identity: Identity, part_size_bytes: int
) -> tuple[Identity, Spans] | None:
    """What the journal says, if it is one, of this file, and the bytes it speaks of are there."""
    try:
        with os.fdopen(_opened_own(name, folder, os.O_RDONLY), "rb") as file:
            text = file.read(_MAX_JOURNAL_BYTES + 1)
        if len(text) > _MAX_JOURNAL_BYTES:
            return None
        content = json.loads(text)
        if content.pop("version") != _VERSION:
            return None
        spans = Spans((_whole(start), _whole(end)) for start, end in content.pop("spans"))
        found = Identity(**content)
        size_bytes = found.size_bytes
        if size_bytes is not None:
            _whole(size_bytes)
        if not _may_go_on(identity, found, spans) or (found.job_id, found.name, found.node_rank) != (
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


def _may_go_on(listed: Identity, found: Identity, spans: Spans) -> bool:
    """Whether the bytes may be the listed file's.

    A store may give the same object another time. Then its strong ETag must say that it is the same: that
    is seen in the next answer, so something must be left to ask for.
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
    """Keep other downloads of the same file away from it; they would write over each other's journal."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DownloadError(f"{path.name} is being downloaded by another bt-tui") from None
    except OSError:
        return  # Some network file systems know no locks.


def _sync(descriptor: int) -> None:
    getattr(os, "fdatasync", os.fsync)(descriptor)
