"""The unfinished file of a download, and beside it a record that identifies the file being downloaded.

Bytes are only appended, so the size of the part file is the progress: a killed process leaves a shorter file,
but never wrong bytes. The record has three lines: the file as it was listed, the object's version, and its
digest. With them, a later run verifies that the server still has the same file.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from api_client.files import (
    FULL_DISK,
    MAX_SMALL_FILE_BYTES,
    TEMPORARY_PREFIX,
    USUAL_FILE_MODE,
    new_file,
    open_folder,
    read_small_file,
    why_not_written,
)
from api_client.transfers.records import DownloadError, NoRoom

_NOT_REGULAR_FILE = frozenset(
    {errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV, errno.EACCES}
)


def part_paths(path: Path) -> tuple[Path, Path]:
    """Return the paths of the part file and of its record."""
    stem = TEMPORARY_PREFIX + hashlib.sha256(os.fsencode(path.name)).hexdigest()[:24]
    return path.with_name(stem + ".part"), path.with_name(stem + ".record")


def stored_part_bytes(path: Path, identity: str, size_bytes: int | None) -> int:
    """Return the number of bytes in the part file; 0 unless its record starts with ``identity``.

    ``identity`` is the ``identity_line`` of the file in the current listing.
    """
    part, record = part_paths(path)
    try:
        done_bytes = part.lstat().st_size
        is_same = _parse_record(read_small_file(record), identity) and not _is_too_long(
            done_bytes, size_bytes
        )
    except OSError:
        return 0
    return done_bytes if is_same else 0


class PartFile:
    """A part file, to be opened and closed once; its methods may run in any thread.

    Other users may have write access to ``root`` and below. Therefore the file's folder is opened once,
    without following links below ``root``, and all files are accessed relative to it; files of other users
    are not used. Only one process at a time can open a part file. Every method raises DownloadError for file
    system errors, and if the part file was closed meanwhile.
    """

    def __init__(self, path: Path, root: Path, identity: str, size_bytes: int | None) -> None:
        self.path = path
        self.size_bytes = size_bytes
        self.done_bytes = 0
        self.version = ""
        """The object's version, from the store's responses; empty if unknown."""
        self.expected_digest = ""
        """The object's digest; recorded, because the responses to a later run may have none."""
        self._root = root
        self._identity = identity
        self._part_name, self._record_name = (file.name for file in part_paths(path))
        self._has_files = self._is_closed = False
        self._lock = threading.Lock()
        self._descriptors = ExitStack()

    @contextmanager
    def _while_open(self) -> Iterator[None]:
        """Hold the lock, so that ``close`` waits for this thread. Raises DownloadError after ``close``."""
        with self._lock, translate_os_errors(self.path):
            if self._is_closed:
                raise DownloadError(f"{self.path.name}: canceled")
            yield

    def open(self) -> None:
        """Open or create the part file and its record; discard stored bytes of another file."""
        with self._while_open():
            parents = self.path.relative_to(self._root).parts[:-1]
            self._folder_descriptor = self._close_later(_open_file_folder(self._root, parents))
            self._part_descriptor = self._close_later(
                _open_own_file(self._part_name, self._folder_descriptor)
            )
            _lock_exclusively(self._part_descriptor, self.path)
            self._record_descriptor = self._close_later(
                _open_own_file(self._record_name, self._folder_descriptor)
            )
            self._has_files = True
            done_bytes = os.fstat(self._part_descriptor).st_size
            recorded = _parse_record(
                os.pread(self._record_descriptor, MAX_SMALL_FILE_BYTES, 0), self._identity
            )
            if recorded is None or _is_too_long(done_bytes, self.size_bytes):
                os.ftruncate(self._part_descriptor, 0)
                self._write_record()
            else:
                self.done_bytes, (self.version, self.expected_digest) = done_bytes, recorded

    def _close_later(self, descriptor: int) -> int:
        self._descriptors.callback(os.close, descriptor)
        return descriptor

    def _write_record(self) -> None:
        # Readers use only the first three lines, so the rest of a longer old record need not be removed.
        content, written_bytes = (
            "\n".join((self._identity, self.version, self.expected_digest, "")).encode(),
            0,
        )
        while written_bytes < len(content):  # a write may be partial when the disk becomes full
            written_bytes += os.pwrite(self._record_descriptor, content[written_bytes:], written_bytes)

    def identify(self, *, size_bytes: int | None = None, version: str = "", digest: str = "") -> bool:
        """Check that a response's headers belong to the object whose bytes are stored here.

        Returns False if the size or the version differs: the object was replaced. Otherwise, values that were
        unknown are set from the response, and recorded for later runs.
        """
        if None not in (size_bytes, self.size_bytes) and size_bytes != self.size_bytes:
            return False
        if version and self.version and version != self.version:
            return False
        self.size_bytes = size_bytes if self.size_bytes is None else self.size_bytes
        old_values = (self.version, self.expected_digest)
        self.version, self.expected_digest = self.version or version, self.expected_digest or digest
        if old_values != (self.version, self.expected_digest):
            with self._while_open():
                self._write_record()
        return True

    def append(self, offset: int, content: bytes | bytearray) -> None:
        """Write bytes of the file from ``offset`` on; if the disk becomes full, write what fits, and raise.

        Does nothing unless ``offset`` is the end of the file: earlier bytes may not have been written.
        """
        with self._while_open():
            remaining = memoryview(content if offset == self.done_bytes else b"")
            while remaining:
                written_bytes = os.pwrite(self._part_descriptor, remaining, self.done_bytes)
                self.done_bytes, remaining = self.done_bytes + written_bytes, remaining[written_bytes:]

    def digest(self, algorithm: str) -> str:
        """Return the digest of the bytes in the part file, like ``sha256:0f…``."""
        hasher, offset = hashlib.new(algorithm, usedforsecurity=False), 0
        while True:
            with self._while_open():
                # One read per lock, so that ``close`` need not wait for the whole file.
                content = os.pread(self._part_descriptor, 1024**2, offset)
            if not content:
                return f"{algorithm}:{hasher.hexdigest()}"
            hasher.update(content)
            offset += len(content)

    def finish(self, modified_s: float | None) -> None:
        """Flush the complete file to disk and rename it; ``modified_s`` sets its modification time."""
        with self._while_open():
            os.fsync(self._part_descriptor)
            if modified_s is not None:
                os.utime(self._part_descriptor, (modified_s, modified_s))
            os.replace(
                self._part_name,
                self.path.name,
                src_dir_fd=self._folder_descriptor,
                dst_dir_fd=self._folder_descriptor,
            )
            self._has_files = False
            _unlink_if_present(self._record_name, self._folder_descriptor)
            with suppress(OSError):
                os.fsync(self._folder_descriptor)

    def close(self, *, keep: bool = True) -> None:
        """Close the files; delete an unfinished download if ``keep`` is false or no byte has arrived."""
        with self._lock:
            self._is_closed = True
            if self._has_files and not (keep and self.done_bytes):
                with suppress(OSError):
                    _unlink_if_present(self._part_name, self._folder_descriptor)
                    _unlink_if_present(self._record_name, self._folder_descriptor)
            self._descriptors.close()


@contextmanager
def translate_os_errors(path: Path) -> Iterator[None]:
    """Translate file system errors to DownloadError with the file's name; a full disk becomes NoRoom."""
    try:
        yield
    except OSError as error:
        reason = why_not_written(error)
        if error.errno in FULL_DISK:
            raise NoRoom(f"{reason}. Then run it again to resume") from error
        if isinstance(error, NotADirectoryError) and error.filename is not None:
            reason = f"{error.filename} is a link or a file, not a folder"
        raise DownloadError(f"can't write {path.name}: {reason}") from error


def _open_file_folder(root: Path, names: Sequence[str]) -> int:
    """Create and open the file's folder; the caller closes it.

    ``root`` may be a link made by the user or the system, but not by another user: it is often named after
    the job's id, in the working directory, where other users may have write access.
    """
    root = root.absolute()
    if root.is_symlink() and root.lstat().st_uid in (0, os.geteuid()):
        root = root.resolve()
    with suppress(FileExistsError):
        root.parent.mkdir(parents=True, exist_ok=True)
    parent = os.open(root.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return open_folder(parent, [*filter(None, [root.name]), *names])
    finally:
        os.close(parent)


def _open_own_file(name: str, folder: int) -> int:
    """Open or create a regular file of this user; replace any other object of that name, such as a link."""
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid == os.geteuid():
            return descriptor
        os.close(descriptor)
    except OSError as error:
        if error.errno not in _NOT_REGULAR_FILE:
            raise
    _unlink_if_present(name, folder)
    return new_file(name, USUAL_FILE_MODE, folder=folder, readable=True)


def _unlink_if_present(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _parse_record(content: bytes, identity: str) -> list[str] | None:
    """Parse a record into version and digest; None if it is damaged or of another file."""
    lines = content.decode(errors="replace").split("\n", 3)
    is_valid = (
        lines[0] == identity
        and len(lines) == 4
        and re.fullmatch("(sha256:[0-9a-f]{64}|md5:[0-9a-f]{32})?", lines[2]) is not None
    )
    return lines[1:3] if is_valid else None


def _is_too_long(done_bytes: int, size_bytes: int | None) -> bool:
    return size_bytes is not None and done_bytes > size_bytes


def _lock_exclusively(descriptor: int, path: Path) -> None:
    """Lock the part file, so that two downloads never append to it. Raises DownloadError if it is locked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DownloadError(f"{path.name} is being downloaded by another bt-tui") from None
    except OSError:
        return  # Some network file systems do not support locks.
