"""Read and write files safely: completely or not at all, never through a link, with readable errors.

All file writes of this program go through here, and reads of its own small files: settings, credentials,
state. A file is written under a temporary name in the same folder and renamed when it is complete, so nobody
sees a partial file. New names are created exclusively, so a link or file created by someone else is never
written to.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

PRIVATE_FOLDER_MODE = 0o700
PRIVATE_FILE_MODE = 0o600
USUAL_FILE_MODE = 0o666  # default mode, before the umask is applied
TEMPORARY_PREFIX = ".bt-tui-"
FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

_STREAM_FOLDERS = frozenset({Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd")})
_NEW_FILE_FLAGS = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_REASONS_BY_ERRNO = {
    errno.ENOSPC: "the disk is full; make room or choose another place",
    errno.EDQUOT: "your disk quota is used up; make room or choose another place",
    errno.EFBIG: "the file is too large for the file system or your limits (ulimit -f)",
    errno.EACCES: "permission denied; choose a folder you can write to",
    errno.EPERM: "permission denied; choose a folder you can write to",
    errno.EROFS: "the file system is read-only; choose another place",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.EISDIR: "it is a folder; give a file name",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.ENOENT: "the folder does not exist; create it first",
    errno.ELOOP: "it is a link; remove it or choose another name",
    errno.EEXIST: "it already exists; choose another name",
}


WRONG_PLACE = frozenset(_REASONS_BY_ERRNO) - FULL_DISK
"""Errors that another path would avoid."""


def why_not_written(error: OSError) -> str:
    return _REASONS_BY_ERRNO.get(error.errno or 0) or error.strerror or str(error) or type(error).__name__


@contextmanager
def os_errors_as(error_type: Callable[[str], Exception], action: str) -> Iterator[None]:
    """Replace an OSError by ``kind(message)``; the message is ``action`` ("can't write …") and the reason."""
    try:
        yield
    except OSError as error:
        raise error_type(f"{action}: {why_not_written(error)}") from error


def user_path(text: str) -> Path:
    """Return the path with ``~`` expanded; the ``~name`` of an unknown user stays as it is."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 - Path.expanduser raises for unknown users


MAX_SMALL_FILE_BYTES = 1_000_000


def read_small_file(path: Path, max_bytes: int = MAX_SMALL_FILE_BYTES) -> bytes:
    """Read a file of settings, credentials or state, following links. The null device is an empty file.

    Raises OSError with a readable ``strerror``, also for a file that is too large, and for a pipe or a
    device, which could block forever.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
        if not (stat.S_ISREG(status.st_mode) or os.path.samestat(status, os.stat(os.devnull))):  # noqa: PTH116
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        content = b""
        while chunk := os.read(descriptor, max_bytes + 1 - len(content)):
            content += chunk
    finally:
        os.close(descriptor)
    if len(content) > max_bytes:
        raise OSError(errno.EINVAL, f"it is larger than {max_bytes:,} bytes", str(path))
    return content


def new_file(path: Path | str, mode: int, *, folder: int | None = None, readable: bool = False) -> int:
    """Create a new file and return its descriptor; ``path`` is relative to the open ``folder``, if given.

    Raises FileExistsError if anything has the name, including a broken link, and OSError.
    """
    return os.open(path, _NEW_FILE_FLAGS | (os.O_RDWR if readable else os.O_WRONLY), mode, dir_fd=folder)


def open_folder(root: int, names: Iterable[str]) -> int:
    """Open the folder ``names`` below the open folder ``root``, creating it if needed; follows no links.

    The caller closes it. Raises NotADirectoryError if a component is a link or a file, and OSError.
    """
    folder = os.dup(root)
    try:
        for name in names:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                inner = os.open(name, flags, dir_fd=folder)
            except OSError as error:
                if error.errno != errno.ELOOP:  # macOS returns ELOOP for a link
                    raise
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name) from None
            os.close(folder)
            folder = inner
    except BaseException:
        os.close(folder)
        raise
    return folder


class AtomicFile:
    """A file that gets its name only when it is complete.

    ::

        with AtomicFile(path) as file:
            file.write(b"…")

    The bytes go to a temporary file in the same folder, which is deleted if the block raises. With
    ``partial``, the temporary file has that name, and is kept unless it is empty. Without ``replace``, an
    existing ``path`` raises FileExistsError before anything is written. With ``replace``, a link is replaced
    and its target is not changed; a device or the user's own pipe (``/dev/stdout``) is written to directly
    unless ``streams`` is False. Raises OSError.
    """

    def __init__(
        self,
        path: Path,
        *,
        mode: int = USUAL_FILE_MODE,
        replace: bool = False,
        partial: Path | None = None,
        streams: bool = True,
    ) -> None:
        self._path = path
        self._replace = replace
        self._keeps_partial = partial is not None
        self._temporary: Path | None = None
        if replace and streams and _is_stream(path):
            descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        else:
            _check_replaceable(path, replace=replace)
            if replace and partial is not None:
                partial.unlink(missing_ok=True)
            self._temporary = partial or path.with_name(f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}")
            descriptor = new_file(self._temporary, mode)
        self.file: BinaryIO = os.fdopen(descriptor, "wb")

    def commit(self) -> None:
        self.file.flush()
        if self._temporary is not None:
            os.fsync(self.file.fileno())
        self.file.close()
        if self._temporary is not None:
            _rename_into_place(self._temporary, self._path, replace=self._replace)
            self._keeps_partial = False

    def discard(self) -> None:
        """Close the file and delete an uncommitted temporary file; never raises."""
        with suppress(OSError):
            self.file.close()
        if self._temporary is not None:
            with suppress(OSError):
                if not self._keeps_partial or not self._temporary.lstat().st_size:
                    self._temporary.unlink(missing_ok=True)

    def __enter__(self) -> BinaryIO:
        return self.file

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.discard()


def write_file(path: Path, content: bytes, *, mode: int = USUAL_FILE_MODE, replace: bool = True) -> None:
    """Write a file atomically: readers see either the old content or the new. Raises OSError."""
    with AtomicFile(path, mode=mode, replace=replace) as file:
        file.write(content)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that is never readable by others, not even for a moment. Raises OSError."""
    with AtomicFile(path, mode=PRIVATE_FILE_MODE, replace=True, streams=False) as file:
        file.write(content)


LOCK_WAIT_S = 5.0
"""Longest wait for another process that changes a file in the same folder; it usually takes milliseconds."""


def update_private_file(
    path: Path,
    change: Callable[[bytes], bytes | None],
    *,
    wait_s: float = LOCK_WAIT_S,
    replace_unreadable: bool = False,
) -> None:
    """Replace the content of a small file by ``change(content)``; None leaves the file unchanged.

    A missing file counts as empty, and so does an unreadable one with ``replace_unreadable``. A lock keeps
    other processes of this program from updating files of the folder meanwhile. If another program, which
    ignores the lock, writes the file meanwhile, ``change`` is called again with the new content. Raises
    OSError; TimeoutError if another process holds the lock for longer than ``wait_s``.
    """
    with locked_folder(path.parent, wait_s):
        for _ in range(10):
            old_content = _read_or_empty(path, replace_unreadable=replace_unreadable)
            new_content = change(old_content)
            if new_content is None:
                return
            with suppress(_ContentChanged):
                with AtomicFile(path, mode=PRIVATE_FILE_MODE, replace=True, streams=False) as file:
                    file.write(new_content)
                    if _read_or_empty(path, replace_unreadable=replace_unreadable) != old_content:
                        raise _ContentChanged
                return
    raise OSError(errno.EBUSY, "another program keeps changing it; try again later", str(path))


class _ContentChanged(Exception):
    """Another program has written the file since it was read."""


def _read_or_empty(path: Path, *, replace_unreadable: bool) -> bytes:
    try:
        return read_small_file(path)
    except FileNotFoundError:
        return b""
    except OSError:
        if not replace_unreadable:
            raise
        return b""


@contextmanager
def locked_folder(folder: Path, wait_s: float = LOCK_WAIT_S) -> Iterator[None]:
    """Hold the lock of a folder, which creates no file. Network file systems may lack such locks.

    Raises OSError; TimeoutError if another process holds the lock for longer than ``wait_s``.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        until_s = time.monotonic() + wait_s
        while not _acquired_lock(descriptor):
            if time.monotonic() >= until_s:
                problem = f"another program is changing a file in {folder}; try again"
                raise TimeoutError(errno.ETIMEDOUT, problem)
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def _acquired_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # the file system has no locks: rely on the check for other programs' changes
    return True


def make_private_folder(path: Path) -> None:
    """Create a folder that only its owner can access; restrict the permissions of an existing folder."""
    path.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER_MODE)
    path.chmod(PRIVATE_FOLDER_MODE)


def _check_replaceable(path: Path, *, replace: bool) -> None:
    """Raise OSError before anything is written if the complete file could not be renamed to ``path``."""
    try:
        path.lstat()
    except FileNotFoundError:
        return
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not replace:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def _is_stream(path: Path) -> bool:
    """Return True for a device or the user's own pipe: it is written to, not replaced."""
    if path.absolute().parent in _STREAM_FOLDERS:
        return path.exists()
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISCHR(status.st_mode) or (stat.S_ISFIFO(status.st_mode) and status.st_uid == os.geteuid())


def _rename_into_place(temporary: Path, path: Path, *, replace: bool) -> None:
    """Rename a complete file. Without ``replace``, raises FileExistsError if ``path`` exists by now."""
    if replace:
        temporary.replace(path)
        return
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # file system without hard links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        temporary.rename(path)
