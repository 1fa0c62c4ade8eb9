"""Unpack untrusted tar archives safely: nothing is written outside the target folder on any Python version.

tarfile's own filter has had several path traversal bugs, so this module uses tarfile only to read headers. It
creates each file exclusively, relative to open folders, without following links. Links are created last,
after all files, and only if they are relative and stay inside the folder.
"""

from __future__ import annotations

import gzip
import itertools
import os
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Self, cast

from api_client.files import USUAL_FILE_MODE, new_file, open_folder

MAX_MEMBERS = 500_000
MAX_BYTES = 64 * 1024**3  # maximum total size of the files, far above the size of any code
MAX_NAME_BYTES = 1024  # far below PATH_MAX; beyond that, systems and Python resolve paths differently
MAX_HEADER_BYTES = 16 * 1024  # per member; tarfile parses headers in quadratic time

_CHUNK_BYTES = 256 * 1024
_GZIP = b"\x1f\x8b"

PathComponents = tuple[str, ...]


class BadArchive(ValueError):
    """The archive is damaged, too large, or has a rejected member; the message says which."""


class Unpacker:
    """Unpacks archives, one after the other, into a folder that nobody else writes to.

    ::

        with Unpacker(folder) as unpacker:
            unpacker.add(archive)

    Files and folders get default permissions, the executable bit is kept, and owners and special bits are
    dropped. If a file name appears again, the later file replaces the earlier one. Raises BadArchive and
    OSError; the caller must then delete what is in the folder.
    """

    def __init__(self, folder: Path, *, max_bytes: int = MAX_BYTES) -> None:
        self._root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._left_bytes = max_bytes
        self._left_members = MAX_MEMBERS
        self._files: set[PathComponents] = set()
        self._links: dict[PathComponents, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        try:
            if kind is None:
                for components, target in self._links.items():
                    with self._parent(components) as folder:
                        os.symlink(target, components[-1], dir_fd=folder)
        finally:
            os.close(self._root)

    def add(self, archive: Path) -> None:
        """Unpack all files and folders of a gzipped or plain archive; its links are created at the end."""
        with archive.open("rb") as file:
            is_gzip = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            try:
                if is_gzip:
                    with gzip.open(file) as decompressed:
                        self._add_all(_BoundedReader(decompressed))
                else:
                    self._add_all(_BoundedReader(file))
            except BadArchive:
                raise
            except (
                *(tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile),
                *(ValueError, OverflowError, UnicodeError),
            ) as error:
                raise BadArchive(f"damaged or not an archive ({type(error).__name__})") from None

    def _add_all(self, reader: _BoundedReader) -> None:
        reader.allow(MAX_HEADER_BYTES)
        with tarfile.open(fileobj=cast(IO[bytes], reader), mode="r:") as archive:
            while (member := archive.next()) is not None:
                if member.size < 0:
                    raise BadArchive(f"{_quoted(member.name)} has a negative size")
                self._left_members -= 1
                self._left_bytes -= member.size
                if self._left_members < 0 or self._left_bytes < 0:
                    raise BadArchive(
                        "too large to unpack: over the free disk space,"
                        f" {MAX_BYTES // 1024**3} GiB or {MAX_MEMBERS:,} members"
                    )
                if sum(map(len, itertools.chain(*archive.pax_headers.items()))) > MAX_HEADER_BYTES:
                    raise BadArchive("a header is too large")  # each member has a copy of the headers
                reader.allow(member.size + MAX_HEADER_BYTES)
                self._add(archive, member)
                reader.allow(MAX_HEADER_BYTES)
                archive.members.clear()  # type: ignore[attr-defined]  # don't keep every header in memory
        reader.finish()

    def _add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        components = _split_name(member.name)
        if member.isdir():
            with self._parent((*components, "")):
                return
        if not components:
            raise BadArchive(f"{_quoted(member.name)} is not a file name")
        if member.isreg():
            self._write(archive, member, components)
        elif member.issym():
            self._links[components] = _link_target(member.linkname, len(components) - 1)
        elif member.islnk():
            self._link_to_file(components, _split_name(member.linkname))
        else:
            raise BadArchive(f"{_quoted(member.name)} is a device or a pipe")

    def _write(self, archive: tarfile.TarFile, member: tarfile.TarInfo, components: PathComponents) -> None:
        content = archive.extractfile(member)
        if content is None:
            raise BadArchive(f"{_quoted(member.name)} is not a file")
        mode = 0o777 if member.mode & 0o100 else USUAL_FILE_MODE
        with self._parent(components) as folder:
            if components in self._files:
                os.unlink(components[-1], dir_fd=folder)
            descriptor = new_file(components[-1], mode, folder=folder)
        self._files.add(components)
        with os.fdopen(descriptor, "wb") as file:
            left_bytes = member.size
            while left_bytes and (chunk := content.read(min(left_bytes, _CHUNK_BYTES))):
                left_bytes -= file.write(chunk)
            if left_bytes:
                raise BadArchive(f"{_quoted(member.name)} is truncated")
            file.flush()
            with suppress(ValueError, OverflowError, TypeError):  # a timestamp that no file can have
                os.utime(file.fileno(), (member.mtime, member.mtime))

    def _link_to_file(self, components: PathComponents, target: PathComponents) -> None:
        if target not in self._files or components in self._files:
            raise BadArchive(
                f"{_quoted('/'.join(components))} is a hard link to a file that does not precede it"
            )
        with self._parent(target) as source, self._parent(components) as folder:
            os.link(target[-1], components[-1], src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
        self._files.add(components)

    @contextmanager
    def _parent(self, components: PathComponents) -> Iterator[int]:
        """Open the folder that the member is in. Raises BadArchive if a name on the way is not a folder."""
        try:
            folder = open_folder(self._root, components[:-1])
            try:
                yield folder
            finally:
                os.close(folder)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise BadArchive(
                f"{_quoted('/'.join(components))} conflicts with another member of that name"
            ) from None


class _BoundedReader:
    """File object for tarfile that limits how many bytes it may read, so that no header is endless."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self._file = file
        self._allowed_bytes = 0
        self._last_chunk = b""
        self.tell = file.tell
        self.seek = file.seek

    def allow(self, size_bytes: int) -> None:
        self._allowed_bytes = size_bytes

    def read(self, size_bytes: int) -> bytes:
        if not 0 <= size_bytes <= self._allowed_bytes:
            raise BadArchive("a header is too large")
        self._last_chunk = self._file.read(size_bytes)
        self._allowed_bytes -= len(self._last_chunk)
        return self._last_chunk

    def finish(self) -> None:
        """Raise BadArchive unless the archive's end mark was read: tarfile stops at a damaged header, too.

        Reads to the end of the compressed stream, which verifies its checksum.
        """
        if self._last_chunk.strip(b"\0"):
            raise BadArchive("damaged in the middle")
        left_bytes = 1024 * 1024
        while left_bytes > 0 and (chunk := self._file.read(_CHUNK_BYTES)):
            left_bytes -= len(chunk)


def _split_name(name: str) -> PathComponents:
    """Split a member's name into components. Raises BadArchive if it points outside or is invalid."""
    components = tuple(component for component in name.split("/") if component not in ("", "."))
    if name.startswith("/") or ".." in components:
        raise BadArchive(f"{_quoted(name)} would be outside the folder")
    if "\0" in name or len(os.fsencode(name)) > MAX_NAME_BYTES or len(components) > 64:
        raise BadArchive(f"the name {_quoted(name)} is too long or not a file name")
    return components


def _link_target(target: str, depth: int) -> str:
    """Check the target of a symbolic link ``depth`` folders down; raise BadArchive if it may lead outside.

    ``..`` is allowed only at the beginning, where it leads from a real folder to its parent. After a name,
    which may be a link, it would lead to the parent of that link's target.
    """
    components = [component for component in target.split("/") if component not in ("", ".")]
    up_count = next((index for index, name in enumerate(components) if name != ".."), len(components))
    if not target or target.startswith("/") or up_count > depth or ".." in components[up_count:]:
        raise BadArchive(f"a link to {_quoted(target)} points outside the folder")
    if "\0" in target or len(os.fsencode(target)) > MAX_NAME_BYTES:
        raise BadArchive(f"the link to {_quoted(target)} is too long or invalid")
    return target


def _quoted(name: str) -> str:
    return repr(name if len(name) <= 100 else f"{name[:100]}…")
