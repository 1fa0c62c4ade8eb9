"""The unfinished file of a download: its bytes, and a journal of which ones exist.

The journal is one JSON line: the file's identity, by which a later run verifies that the server still has the
same file, and the ranges that arrived, added once their bytes are on the disk. It is overwritten in place and
always has the same length, so that a killed process leaves the old or the new one, and a full disk has room.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, TypeAdapter, ValidationError

from api_client.files import (
    FULL_DISK,
    TEMPORARY_PREFIX,
    USUAL_FILE_MODE,
    new_file,
    open_folder,
    why_not_written,
)
from api_client.transfers.records import DownloadError, NoRoom

Span = tuple[NonNegativeInt, NonNegativeInt]  # start (inclusive) and end (exclusive)

_JOURNAL_BYTES = 4096  # one page, which is written as a whole; longer ones only for very long names
_MAX_JOURNAL_BYTES = 65_536
SYNCED_BYTES = 8 * 1024 * 1024  # before it is recorded: all that a killed process loses of a file
_HASHED_BYTES = 1024 * 1024  # read for a digest at a time: between two reads a cancellation is noticed
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
    size_bytes: NonNegativeInt | None = None
    version: str = ""
    digest: Annotated[str, Field(pattern="^(sha256:[0-9a-f]{64}|md5:[0-9a-f]{32})?$")] = ""

    def may_be(self, listed: FileIdentity, spans: Iterable[Span]) -> bool:
        """Return True if the bytes of this file that arrived earlier may belong to the listed one.

        A store may give the same object a new timestamp. Then its version must prove it, which only the next
        answer shows, so some bytes must be left to request.
        """
        of_listing = (listed.job_id, listed.name, listed.node_rank)
        if (self.job_id, self.name, self.node_rank) != of_listing:
            return False
        if None not in (self.size_bytes, listed.size_bytes) and self.size_bytes != listed.size_bytes:
            return False
        if self.listed_modified == listed.listed_modified:
            return True
        is_part = self.size_bytes is not None and any(gaps(spans, self.size_bytes))
        return is_part and self.version.startswith('"')


@dataclass(frozen=True, slots=True)
class _Journal:
    identity: FileIdentity
    spans: list[Span]
    format: Literal[3] = 3


_JOURNAL = TypeAdapter(_Journal)


def gaps(spans: Iterable[Span], size_bytes: int) -> Iterator[Span]:
    """Yield the missing spans of a file, in order."""
    position = 0
    for start, end in [*sorted(span for span in spans if span[0] < span[1]), (size_bytes, size_bytes)]:
        if position < min(start, size_bytes):
            yield position, min(start, size_bytes)
        position = max(position, end)


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, those that touch as one."""
    spans = list(spans)
    end = max((end for _, end in spans), default=0)
    return list(gaps(list(gaps(spans, end)), end))


def _count_bytes(spans: Iterable[Span]) -> int:
    return sum(end - start for start, end in _merged(spans))


def part_paths(path: Path) -> tuple[Path, Path]:
    stem = TEMPORARY_PREFIX + hashlib.sha256(os.fsencode(path.name)).hexdigest()[:24]
    return path.with_name(stem + ".part"), path.with_name(stem + ".json")


def resumable_bytes(path: Path, listed: FileIdentity) -> int:
    """Return the number of bytes that an earlier run left."""
    part, journal = part_paths(path)
    with suppress(OSError), ExitStack() as stack:
        descriptor = os.open(journal, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        stack.callback(os.close, descriptor)
        left = _read_journal(descriptor, listed, part.lstat().st_size)
        return _count_bytes(left.spans) if left else 0
    return 0


class PartFile:
    """A part file, to be opened and closed once; its methods may run in any thread.

    Others may have write access to ``root`` and below: the file's folder is opened once, without
    following links below ``root``, and everything is accessed relative to it. Parts or journals replaced
    by others are not used. Only one process at a time can open it. Raises DownloadError for file system
    errors, and if it was closed meanwhile.
    """

    def __init__(self, path: Path, root: Path, listed: FileIdentity) -> None:
        self.path = path
        self.identity = listed
        self._root = root
        self._spans: list[Span] = []
        self._part_name, self._journal_name = (file.name for file in part_paths(path))
        self._must_be_same_version = self._is_open = self._is_closed = self._is_finished = False
        self.starts = 0
        """Number of times that the file was begun anew; bytes that were requested before are not saved."""
        self._unrecorded_bytes = 0
        self._lock = threading.Lock()
        self._descriptors = ExitStack()

    @contextmanager
    def _using(self) -> Iterator[None]:
        """No descriptor is closed while a thread uses it, and none is used afterwards."""
        with self._lock, translate_os_errors(self.path):
            if self._is_closed:
                raise DownloadError(f"{self.path.name}: canceled")
            yield

    def open(self) -> None:
        """Open the files, with what an earlier run left of the same file."""
        with self._using():
            parents = self.path.relative_to(self._root).parts[:-1]
            self._folder = self._owned(_opened_folder(self._root, parents))
            self._part = self._owned(_opened(self._part_name, self._folder))
            _lock_for_us(self._part, self.path)
            self._journal = self._owned(_opened(self._journal_name, self._folder))
            self._is_open = True
            listed = self.identity
            left = _read_journal(self._journal, listed, os.fstat(self._part).st_size)
            if left is None:
                self._clear(listed)
                return
            self._spans = left.spans
            self.identity = replace(left.identity, listed_modified=listed.listed_modified)
            # The same object may have a new time, but then its version must prove that it is the same.
            self._must_be_same_version = left.identity != self.identity

    def _owned(self, descriptor: int) -> int:
        self._descriptors.callback(os.close, descriptor)
        return descriptor

    @property
    def size_bytes(self) -> int | None:
        return self.identity.size_bytes

    @property
    def done_bytes(self) -> int:
        return _count_bytes(self._spans)

    def identify(self, *, size_bytes: int | None = None, version: str = "", digest: str = "") -> bool:
        """Compare with an answer, and add what it says. Returns False if this is another object."""
        before = self.identity
        if None not in (size_bytes, before.size_bytes) and size_bytes != before.size_bytes:
            return False
        if version != before.version and (self._must_be_same_version or (version and before.version)):
            return False
        self._must_be_same_version = False
        self.identity = replace(
            before,
            size_bytes=before.size_bytes if size_bytes is None else size_bytes,
            version=before.version or version,
            digest=before.digest or digest,
        )
        return True

    def start_over(self, listed: FileIdentity) -> None:
        with self._using():
            self._clear(listed)

    def missing(self, part_bytes: int | None) -> list[tuple[int, int | None]]:
        """Return the missing parts, at most ``part_bytes`` long; one without end if the size is unknown."""
        spans, size_bytes = self._spans, self.identity.size_bytes
        if not size_bytes or part_bytes is None:
            return [(next(gaps(spans, 2**63))[0], None)]
        return [
            (start, min(start + part_bytes, high))
            for low, high in gaps(spans, size_bytes)
            for start in range(low, high, part_bytes)
        ]

    def save(self, offset: int, pieces: Sequence[bytes], starts: int) -> None:
        """Write bytes; if the disk is full, those that find room. Some later call or ``close`` records them.

        ``starts`` is that of when they were requested: a thread may get here after its task was canceled.
        """
        with self._using():
            if starts != self.starts:
                return
            end, rest = offset, memoryview(b"".join(pieces))
            try:
                while rest:
                    written = os.pwrite(self._part, rest, end)
                    end, rest = end + written, rest[written:]
            finally:
                self._spans = _merged([*self._spans, (offset, end)])
                self._unrecorded_bytes += end - offset
            if self._unrecorded_bytes >= SYNCED_BYTES:
                self._record()

    def _record(self) -> None:
        """Overwrite the journal, once the bytes of which it speaks are on the disk."""
        getattr(os, "fdatasync", os.fsync)(self._part)
        journal = _JOURNAL.dump_json(_Journal(self.identity, self._spans)) + b"\n"
        content = journal.ljust(_JOURNAL_BYTES, b"\n")
        written = 0
        while written < len(content):  # a disk that becomes full takes a part before it refuses the rest
            written += os.pwrite(self._journal, content[written:], written)
        self._unrecorded_bytes = 0

    def feed(self, hasher: hashlib._Hash, offset: int) -> int:
        """Add the next bytes to a digest. Returns their number; 0 at the end."""
        with self._using():
            content = os.pread(self._part, _HASHED_BYTES, offset)
            hasher.update(content)
            return len(content)

    def finish(self, modified_s: float | None) -> None:
        """Rename the complete file once it is on disk; ``modified_s`` sets its modification time."""
        with self._using():
            os.ftruncate(self._part, self.done_bytes)
            os.fsync(self._part)
            if modified_s is not None:
                os.utime(self._part, (modified_s, modified_s))
            os.replace(self._part_name, self.path.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._is_finished = True
            _unlink(self._journal_name, self._folder)
            with suppress(OSError):
                os.fsync(self._folder)

    def close(self) -> None:
        """Close the file. Unless it is finished, its bytes are kept for the next run."""
        with self._lock:
            self._is_closed = True
            if self._is_open and not self._is_finished:
                with suppress(OSError):
                    if self._spans:
                        self._record()
                    else:
                        os.unlink(self._part_name, dir_fd=self._folder)
                        os.unlink(self._journal_name, dir_fd=self._folder)
            self._descriptors.close()

    def _clear(self, listed: FileIdentity) -> None:
        self.identity, self._spans, self._must_be_same_version = listed, [], False
        self.starts += 1
        os.ftruncate(self._part, 0)
        self._record()


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
    about = path.lstat()
    return stat.S_ISLNK(about.st_mode) and about.st_uid in (0, os.geteuid())


def _opened(name: str, folder: int) -> int:
    """Open our own file; whatever else has its name (a link, another's file) gives way to a new one."""
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        about = os.fstat(descriptor)
        if stat.S_ISREG(about.st_mode) and about.st_nlink == 1 and about.st_uid == os.geteuid():
            return descriptor
        os.close(descriptor)
    except OSError as error:
        if error.errno not in _NO_PLAIN_FILE:
            raise
    _unlink(name, folder)
    return new_file(name, USUAL_FILE_MODE, folder=folder, readable=True)


def _unlink(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _read_journal(descriptor: int, listed: FileIdentity, part_size_bytes: int) -> _Journal | None:
    """Return the journal; None if it is invalid, of another file, or claims bytes that are missing."""
    try:
        text = os.pread(descriptor, _MAX_JOURNAL_BYTES, 0).partition(b"\n")[0]
        journal = _JOURNAL.validate_json(text, strict=True)
    except ValidationError:
        return None
    limit = min(part_size_bytes, journal.identity.size_bytes or part_size_bytes)
    is_claimed = any(stop > limit for _, stop in journal.spans)
    return journal if journal.identity.may_be(listed, journal.spans) and not is_claimed else None


def _lock_for_us(descriptor: int, path: Path) -> None:
    """Lock the file against other downloads of it; they would overwrite each other's journal."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DownloadError(f"{path.name} is being downloaded by another bt-tui") from None
    except OSError:
        return  # Some network file systems do not support locks.
