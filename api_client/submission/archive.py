"""Plan and write the archive of a job's code: first decide what is included, then write the file.

It is an uncompressed tar, written directly from the source files.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from api_client.definitions import Workspace
from api_client.errors import ArchiveError
from api_client.files import PRIVATE_FILE_MODE, new_file, why_not_written
from api_client.submission.workspace import (
    IGNORE_FILE,
    ArchivedFile,
    DroppedEntry,
    Survey,
    resolve_folders,
)
from api_client.words import listed

MAXIMUM_BYTES = 5 * 1024**3  # limit of the platform
_MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class ArchivePlan:
    """Content of an archive, in order. ``size_bytes`` is the size of the file to write."""

    files: tuple[ArchivedFile, ...]
    dropped: tuple[DroppedEntry, ...]
    size_bytes: int
    warnings: tuple[str, ...] = ()


def plan_archive(config_dir: Path, workspace: Workspace | None = None) -> ArchivePlan:
    """Scan the disk and decide what to include; does not read contents. ``config_dir`` has the config.

    Raises ArchiveError for an invalid workspace, an unusable ``.truss_ignore``, or more than
    ``MAXIMUM_BYTES``.
    """
    layout = resolve_folders(config_dir, workspace)
    survey = Survey(layout)
    survey.walk(layout.root, "")
    for external in layout.externals:
        if survey.is_included(external.name, is_folder=True):
            survey.walk(external, external.name + "/")
    files = tuple(sorted(survey.files, key=lambda each: each.name))
    size_bytes = _archive_size_bytes(files)
    if size_bytes > MAXIMUM_BYTES:
        largest = sorted(files, key=lambda file: -file.size_bytes)[:_MOST_NAMES]
        names = ", ".join(f"{file.name} ({_gigabytes(file.size_bytes)})" for file in largest)
        raise ArchiveError(
            f"the archive would be {_gigabytes(size_bytes)}, but the platform accepts at most 5 GiB; largest "
            f"files: {names}. Exclude some with exclude_dirs or a {IGNORE_FILE} file"
        )
    warnings = [*layout.warnings, *survey.warnings]
    if survey.surprising:
        warnings.append(
            f"excluded by the official built-in rules: {listed(sorted(survey.surprising), _MOST_NAMES)}"
            f" (a {IGNORE_FILE} file, even an empty one, replaces these rules)"
        )
    if size_bytes > 1_000_000_000:  # above this size the documentation recommends object storage
        warnings.append(
            f"the archive is {_gigabytes(size_bytes)}: above 1 GB, keep weights and data in object storage "
            f"(weights=[…]) or in the cache"
        )
    return ArchivePlan(files, tuple(sorted(survey.dropped)), size_bytes, tuple(warnings))


def write_archive(
    plan: ArchivePlan, to: Path, on_progress: Callable[[int, int], object] | None = None
) -> Path:
    """Write the planned archive as a new file, readable only by its owner; return ``to``.

    ``on_progress`` is called with bytes of content done and in total; an exception from it aborts the
    writing. Blocks; memory use does not grow with the size. Raises ArchiveError if a file has vanished or
    cannot be read, or if the disk is full.
    """
    with writing_to(to), open(new_file(to, PRIVATE_FILE_MODE), "wb") as file:  # noqa: PTH123 – a descriptor
        pack(plan, file, on_progress)
    return to


@contextmanager
def writing_to(path: Path) -> Iterator[None]:
    """Translate OSError to ArchiveError."""
    try:
        yield
    except OSError as error:
        raise ArchiveError(f"can't write the archive to {path}: {why_not_written(error)}") from error


def pack(plan: ArchivePlan, file: IO[bytes], on_progress: Callable[[int, int], object] | None = None) -> None:
    """Write the planned archive to an open file, as ``write_archive`` does. Raises ArchiveError, OSError."""
    total_bytes = sum(each.size_bytes for each in plan.files)
    report = on_progress or (lambda _done, _total: None)
    meter = _ArchiveMeter(total_bytes, report)
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for each in plan.files:
            _add(archive, each, meter)
            # The tar file remembers every member, which is not needed here.
            archive.members.clear()  # type: ignore[attr-defined]  # known to the documentation only
    file.flush()
    report(total_bytes, total_bytes)


@dataclass(slots=True)
class _ArchiveMeter:
    """Reports progress about once per MiB; ``file`` is the one being read."""

    total_bytes: int
    on_progress: Callable[[int, int], object]
    file: IO[bytes] | None = None
    done_bytes: int = 0
    reported_bytes: int = 0

    def read(self, size: int = -1) -> bytes:
        assert self.file is not None
        content = self.file.read(size)
        self.done_bytes = min(self.done_bytes + len(content), self.total_bytes)
        if self.done_bytes - self.reported_bytes >= 1024 * 1024:
            self.reported_bytes = self.done_bytes
            self.on_progress(self.done_bytes, self.total_bytes)
        return content


def _add(archive: tarfile.TarFile, each: ArchivedFile, meter: _ArchiveMeter) -> None:
    try:
        if each.path.is_symlink():
            status = each.path.lstat()
            member = _member(each.name, status)
            member.type, member.linkname = tarfile.SYMTYPE, str(each.path.readlink())
            archive.addfile(member)
            return
        source = each.path.open("rb")
    except OSError as error:
        raise ArchiveError(f"{each.path} cannot be read: {error.strerror or type(error).__name__}") from None
    with source:
        status = os.fstat(source.fileno())
        member = _member(each.name, status)
        member.size = status.st_size
        try:
            meter.file = source
            archive.addfile(member, meter)
        except OSError as error:
            if error.errno is None:
                # tarfile's exception for a file that ended before its size.
                raise ArchiveError(f"{each.path} became shorter while being read") from None
            raise


def _member(name: str, status: os.stat_result) -> tarfile.TarInfo:
    """Create a header without data of this machine: no owner, whole seconds."""
    member = tarfile.TarInfo(name)
    member.mode = status.st_mode & 0o777
    member.mtime = int(status.st_mtime)
    return member


def _archive_size_bytes(files: tuple[ArchivedFile, ...]) -> int:
    """Return the size of the archive, to which a link with a long target adds some bytes."""
    blocks = 2
    for file in files:
        is_plain = file.name.isascii() and len(file.name) <= tarfile.LENGTH_NAME
        header_bytes = tarfile.BLOCKSIZE if is_plain else len(tarfile.TarInfo(file.name).tobuf())
        blocks += -(-(header_bytes + file.size_bytes) // tarfile.BLOCKSIZE)
    return -(-blocks * tarfile.BLOCKSIZE // tarfile.RECORDSIZE) * tarfile.RECORDSIZE


def _gigabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1_000_000_000:.2f} GB"
