"""The members of a recording: those of a zip file, or the files of a folder with the same content.

Nothing is ever extracted, so that the name of a member leads nowhere: members are only looked up by the names
that bt-tui gives them, and read in memory, within limits. A zip file without its directory, as a
killed recorder leaves it, is read from its beginning up to the last complete member. ``ZipAppender`` takes
back a member that it could not write completely.
"""

from __future__ import annotations

import fcntl
import io
import os
import struct
import threading
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from api_client.errors import ConfigurationError

SUFFIX = ".btrun"
LINES_SUFFIX = ".ndjson"
MAX_MEMBERS = 60_000
MAX_TOTAL_BYTES = 4 * 1024**3
"""Maximum size of all members together, decompressed: some twenty million log lines."""
MAX_DOCUMENT_BYTES = 32 * 1024**2
"""Maximum size of a member that is read at once."""
MAX_RATIO = 128
"""Maximum size of a member for each byte that it takes in the file; samples of an idle job have about 100."""
MAX_DIRECTORY_BYTES = 16 * 1024**2
MAX_ZIP_BYTES = 2**32 - 1
READ_BYTES = 1024**2

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_LOCAL_SIGNATURE, _CENTRAL_SIGNATURE, _END_SIGNATURE = b"PK\3\4", b"PK\1\2", b"PK\5\6"
_VERSION = 20
_UTF8_NAMES, _ENCRYPTED, _SIZES_FOLLOW = 0x800, 0x1, 0x8
_NO_TIME, _NO_DATE = 0, 0x21
_OWNER_ONLY = 0o100600 << 16


class RecordingError(ConfigurationError):
    """A recording cannot be opened or written; the message says why."""


class DamagedMember(Exception):
    """A member of a recording cannot be read."""


class Members(Protocol):
    """The named members of a recording."""

    def names(self) -> Collection[str]: ...

    def size(self, name: str) -> int: ...

    def stored_bytes(self, name: str) -> int:
        """Return the size in the file, compressed."""

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield the content piece by piece. Raises DamagedMember."""

    def close(self) -> None: ...


def open_members(path: Path, *, complete_only: bool = False) -> Members:
    """Open a zip file or a folder. Raises RecordingError.

    A last member that is cut off is listed, too, unless it replaces another or ``complete_only`` is true;
    reading it raises DamagedMember.
    """
    try:
        return FolderMembers(path) if path.is_dir() else ZipMembers(path, complete_only=complete_only)
    except OSError as error:
        raise RecordingError(f"can't read {path}: {error.strerror}") from error
    except RecordingError as error:
        raise RecordingError(f"{path}: {error}") from None


def read_member(members: Members, name: str, most_bytes: int = MAX_DOCUMENT_BYTES) -> bytes:
    """Return the content of a member that is read at once. Raises DamagedMember."""
    content = bytearray()
    for piece in members.pieces(name):
        content += piece
        if len(content) > most_bytes:
            raise DamagedMember(f"{name} has more than {most_bytes:,} bytes")
    return bytes(content)


def max_bytes(stored_bytes: int) -> int:
    """Return the maximum size of a member that takes so many bytes in the file."""
    return 1024 + stored_bytes * MAX_RATIO


def max_lines(stored_bytes: int) -> int:
    """Return the maximum number of lines of a member that takes so many bytes in the file.

    The lines of a log take 5 bytes or more, the samples of an idle job 3.
    """
    return 64 + stored_bytes // 2


class FolderMembers:
    """The regular files below a folder; links are not followed."""

    def __init__(self, folder: Path) -> None:
        self._files: dict[str, tuple[Path, int]] = {}
        total = _Total()
        for directory, _, files in os.walk(folder):
            for path in (Path(directory, name) for name in files):
                if path.is_file() and not path.is_symlink():
                    size = path.stat().st_size
                    total.add(size)
                    self._files[path.relative_to(folder).as_posix()] = (path, size)

    def names(self) -> Collection[str]:
        return self._files.keys()

    def size(self, name: str) -> int:
        return self._files[name][1]

    stored_bytes = size

    def pieces(self, name: str) -> Iterator[bytes]:
        try:
            with self._files[name][0].open("rb") as file:
                while piece := file.read(READ_BYTES):
                    yield piece
        except OSError as error:
            raise DamagedMember(f"can't read {name}: {error.strerror}") from error

    def close(self) -> None:
        """Nothing is kept open."""


@dataclass
class _Total:
    """Number and size of the members, which may not be larger than the limits."""

    count: int = 0
    size: int = 0

    def add(self, size: int, count: int = 1) -> None:
        """Raises RecordingError."""
        self.count += count
        self.size += size
        if self.count > MAX_MEMBERS:
            raise RecordingError(f"refused: it has more than {MAX_MEMBERS:,} members")
        if self.size > MAX_TOTAL_BYTES:
            raise RecordingError(f"refused: it has more than {MAX_TOTAL_BYTES:,} bytes")


@dataclass(frozen=True, slots=True)
class _ZipMember:
    name: str
    offset: int
    stored_bytes: int
    size: int
    method: int
    crc: int
    end: int = field(default=0, compare=False)
    """Offset of the next member; 0 if it was not written or scanned."""


class _Newest:
    """The last member of each name, within the limits of a recording."""

    def __init__(self, members: Iterable[_ZipMember] = ()) -> None:
        self.by_name: dict[str, _ZipMember] = {}
        """The members in the order in which they were added."""
        self._total = _Total()
        self.add(members)

    def add(self, members: Iterable[_ZipMember]) -> None:
        """Add members, which replace those with the same names. Raises RecordingError for too many."""
        for member in members:
            replaced = self.by_name.pop(member.name, None)
            if replaced is not None:
                self._total.add(-replaced.size, -1)
            self._total.add(member.size)
            self.by_name[member.name] = member

    @property
    def last(self) -> _ZipMember | None:
        return next(reversed(self.by_name.values()), None)


class ZipMembers:
    """The members of a zip file; of several with one name, the last. Reads are safe from any thread."""

    def __init__(self, path: Path, *, complete_only: bool) -> None:
        self._file = _ZipReader(path.open("rb", buffering=0))
        self._lock = threading.Lock()
        try:
            newest, end = _zip_members(self._file)
            self._members = newest.by_name
            cut_off = None if complete_only else _member_at(self._file, end)
            if cut_off is not None:
                self._members.setdefault(cut_off.name, cut_off)
        except BaseException:
            self._file.close()
            raise

    def names(self) -> Collection[str]:
        return self._members.keys()

    def size(self, name: str) -> int:
        return self._members[name].size

    def stored_bytes(self, name: str) -> int:
        return self._members[name].stored_bytes

    def pieces(self, name: str) -> Iterator[bytes]:
        member = self._members[name]
        start = member.offset + _LOCAL.size
        # A damaged directory offset moves all members, even to before the beginning.
        header = self._bytes(member.offset, _LOCAL.size) if member.offset >= 0 else b""
        if len(header) < _LOCAL.size or not header.startswith(_LOCAL_SIGNATURE):
            raise DamagedMember(f"{name} is not where it should be")
        if member.method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DamagedMember(f"{name} is neither stored nor deflated")
        if member.size > max_bytes(member.stored_bytes):
            raise DamagedMember(f"{name} is compressed more than {MAX_RATIO} times")
        name_bytes, extra_bytes = _LOCAL.unpack(header)[-2:]
        start += name_bytes + extra_bytes
        inflater = zlib.decompressobj(-zlib.MAX_WBITS) if member.method == zipfile.ZIP_DEFLATED else None
        crc = size = 0
        for position in range(0, member.stored_bytes, READ_BYTES):
            raw = self._bytes(start + position, min(READ_BYTES, member.stored_bytes - position))
            if not raw:
                break
            while raw:
                try:
                    piece = raw if inflater is None else inflater.decompress(raw, READ_BYTES)
                except zlib.error as error:
                    raise DamagedMember(f"{name} is damaged") from error
                raw = b"" if inflater is None else inflater.unconsumed_tail
                crc, size = zlib.crc32(piece, crc), size + len(piece)
                if size > member.size:
                    break
                yield piece
        if size != member.size or crc != member.crc:
            raise DamagedMember(f"{name} is damaged")

    def close(self) -> None:
        self._file.close()

    def _bytes(self, offset: int, size: int) -> bytes:
        with self._lock:
            try:
                self._file.seek(offset)
                return self._file.read(size)
            except (OSError, ValueError) as error:
                raise DamagedMember(f"can't read the recording: {error}") from error


class _ZipReader(io.BufferedReader):
    """A zip file whose directory has at most ``MAX_DIRECTORY_BYTES``: ``zipfile`` reads it at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MAX_DIRECTORY_BYTES:
            raise RecordingError(f"refused: its directory has more than {MAX_DIRECTORY_BYTES:,} bytes")
        return super().read(size)


def _zip_members(file: _ZipReader) -> tuple[_Newest, int]:
    """Return the members, and where the next one may be written."""
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        newest = _Newest(_scanned(file))
        end = 0 if newest.last is None else newest.last.end
    else:
        newest, end = _Newest(_listed(archive)), archive.start_dir
    if newest.last is None:
        raise RecordingError("not a recording: neither a zip file nor a folder")
    if sum(member.stored_bytes for member in newest.by_name.values()) > file.seek(0, os.SEEK_END):
        raise RecordingError("refused: its members overlap")
    return newest, end


def _listed(archive: zipfile.ZipFile) -> Iterator[_ZipMember]:
    for info in archive.infolist():
        if info.flag_bits & _ENCRYPTED:
            raise RecordingError("refused: it is encrypted")
        yield _ZipMember(
            *(info.filename, info.header_offset, info.compress_size, info.file_size),
            *(info.compress_type, info.CRC),
        )


def _scanned(file: _ZipReader) -> Iterator[_ZipMember]:
    """Yield the complete members of a zip file without a directory."""
    offset, file_bytes = 0, file.seek(0, os.SEEK_END)
    while (member := _member_at(file, offset)) is not None:
        offset = file.tell() + member.stored_bytes
        if offset > file_bytes:
            return
        yield replace(member, end=offset)


def _member_at(file: _ZipReader, offset: int) -> _ZipMember | None:
    """Return the member whose header is at an offset, and leave the file at its content; None if none is."""
    file.seek(offset)
    header = file.read(_LOCAL.size)
    if len(header) < _LOCAL.size:
        return None
    signature, _, flags, method, _, _, crc, stored, size, name_bytes, extra_bytes = _LOCAL.unpack(header)
    name = file.read(name_bytes)
    is_complete = stored > 0 or size == 0
    if signature != _LOCAL_SIGNATURE or flags & (_SIZES_FOLLOW | _ENCRYPTED) or not is_complete:
        return None
    if len(name) < name_bytes:
        return None
    file.seek(extra_bytes, os.SEEK_CUR)
    return _ZipMember(name.decode("utf-8", "replace"), offset, stored, size, method, crc)


class ZipAppender:
    """Appends members to a zip file; ``close`` writes its directory, without which it can be read, too.

    Raises RecordingError if another process is appending to the file.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("r+b", buffering=0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            reader = _ZipReader(self._file)
            self._members, self._end = _zip_members(reader)
            if _Newest(_scanned(reader)).last != self._members.last:
                raise RecordingError("another program wrote this zip file; record to a new file")
            reader.detach()
            # Without the old directory, a kill leaves what can be scanned.
            self._file.truncate(self._end)
        except BlockingIOError:
            self._file.close()
            raise RecordingError("another process is recording to this file") from None
        except BaseException:
            self._file.close()
            raise

    def append(self, contents: Mapping[str, bytes]) -> None:
        """Write members, which replace those with the same names: all of them, or none.

        Raises RecordingError if a recording can't have them, OSError if they can't be written.
        """
        offset, parts, members = self._end, [], []
        for name, content in contents.items():
            method, data = _compressed(name, content)
            member = _ZipMember(name, offset, len(data), len(content), method, zlib.crc32(content))
            parts.append(_local_header(member) + data)
            offset += len(parts[-1])
            members.append(member)
        if offset > MAX_ZIP_BYTES:
            raise RecordingError("the recording is full: a zip file has at most 4 GiB")
        newest = _Newest(self._members.by_name.values())
        newest.add(members)
        self._write(b"".join(parts))
        self._members, self._end = newest, offset

    def close(self) -> None:
        """Write the directory. Raises OSError; the recording is complete without it."""
        members = self._members.by_name.values()
        directory = b"".join(map(_directory_entry, members))
        sizes = (len(members), len(members), len(directory), self._end)
        try:
            self._write(directory + _END.pack(_END_SIGNATURE, 0, 0, *sizes, 0))
        finally:
            self._file.close()

    def _write(self, content: bytes) -> None:
        """Write at the end, or leave the file as it was. Raises OSError."""
        self._file.seek(self._end)
        left = memoryview(content)
        try:
            while left:
                left = left[self._file.write(left) or 0 :]
        except BaseException:
            self._file.truncate(self._end)
            raise


def new_zip(path: Path, contents: Mapping[str, bytes]) -> None:
    """Create a zip file with these members; it appears at once. Raises FileExistsError."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in contents.items():
                archive.writestr(zipfile.ZipInfo(name), content, _compressed(name, content)[0])
        os.link(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _compressed(name: str, content: bytes) -> tuple[int, bytes]:
    """Return the method and the stored bytes; not deflated if that would make it look like a zip bomb."""
    deflater = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    data = deflater.compress(content) + deflater.flush()
    lines = content.count(b"\n") if name.endswith(LINES_SUFFIX) else 0
    if len(content) > max_bytes(len(data)) or lines > max_lines(len(data)):
        return zipfile.ZIP_STORED, content
    return zipfile.ZIP_DEFLATED, data


def _local_header(member: _ZipMember) -> bytes:
    name = member.name.encode()
    fields = (_VERSION, _UTF8_NAMES, member.method, _NO_TIME, _NO_DATE)
    sizes = (member.crc, member.stored_bytes, member.size, len(name), 0)
    return _LOCAL.pack(_LOCAL_SIGNATURE, *fields, *sizes) + name


def _directory_entry(member: _ZipMember) -> bytes:
    name = member.name.encode()
    fields = (_VERSION | 3 << 8, _VERSION, _UTF8_NAMES, member.method, _NO_TIME, _NO_DATE)
    sizes = (member.crc, member.stored_bytes, member.size, len(name), 0, 0, 0, 0)
    return _CENTRAL.pack(_CENTRAL_SIGNATURE, *fields, *sizes, _OWNER_ONLY, member.offset) + name
