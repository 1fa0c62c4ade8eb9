"""The members of a recording: those of a zip file, or the files of a folder with the same content.

Nothing is ever extracted: members are read in memory, within limits. A zip file without its directory, as a
killed recorder leaves it, is read from its beginning up to the last complete member. ``ZipAppender`` writes
each member with one call, so that a file is complete up to its last member at any moment.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from api_client.errors import ConfigurationError

SUFFIX = ".btrun"
MAX_MEMBERS = 60_000
MAX_TOTAL_BYTES = 4 * 1024**3
"""Maximum size of all members together, decompressed: some twenty million log lines."""
MAX_DOCUMENT_BYTES = 32 * 1024**2
"""Maximum size of a member that is read at once."""
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

    def names(self) -> list[str]: ...

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


def read_member(members: Members, name: str) -> bytes:
    """Return the content of a member that is read at once. Raises DamagedMember."""
    content = bytearray()
    for piece in members.pieces(name):
        content += piece
        if len(content) > MAX_DOCUMENT_BYTES:
            raise DamagedMember(f"{name} has more than {MAX_DOCUMENT_BYTES:,} bytes")
    return bytes(content)


def _check_name(name: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or ":" in name[:2]:
        raise RecordingError(f"refused: the name {name[:80]!r} in it leads out of the recording")


def _check_sizes(sizes: list[int]) -> None:
    if len(sizes) > MAX_MEMBERS:
        raise RecordingError(f"refused: it has {len(sizes):,} members; the limit is {MAX_MEMBERS:,}")
    if sum(sizes) > MAX_TOTAL_BYTES:
        raise RecordingError(f"refused: it has {sum(sizes):,} bytes; the limit is {MAX_TOTAL_BYTES:,}")


class FolderMembers:
    """The regular files below a folder; links are not followed."""

    def __init__(self, folder: Path) -> None:
        self._files: dict[str, Path] = {}
        sizes = []
        for place, _, files in os.walk(folder):
            for name in files:
                path = Path(place, name)
                if path.is_file() and not path.is_symlink():
                    self._files[path.relative_to(folder).as_posix()] = path
                    sizes.append(path.stat().st_size)
            _check_sizes(sizes)

    def names(self) -> list[str]:
        return list(self._files)

    def pieces(self, name: str) -> Iterator[bytes]:
        try:
            with self._files[name].open("rb") as file:
                while piece := file.read(READ_BYTES):
                    yield piece
        except OSError as error:
            raise DamagedMember(f"can't read {name}: {error.strerror}") from error

    def close(self) -> None:
        """Nothing is kept open."""


@dataclass(frozen=True, slots=True)
class _ZipMember:
    name: str
    offset: int
    stored_bytes: int
    size: int
    method: int
    crc: int


class ZipMembers:
    """The members of a zip file; of several with one name, the last. Reads are safe from any thread."""

    def __init__(self, path: Path, *, complete_only: bool) -> None:
        self._file = path.open("rb")
        self._lock = threading.Lock()
        try:
            self._members, self.end = _zip_members(self._file)
            rest = None if complete_only else _member_at(self._file, self.end)
            if rest is not None and rest.name not in self._members:
                _check_name(rest.name)
                self._members[rest.name] = rest
        except BaseException:
            self._file.close()
            raise

    def names(self) -> list[str]:
        return list(self._members)

    def pieces(self, name: str) -> Iterator[bytes]:
        member = self._members[name]
        start = member.offset + _LOCAL.size
        # A damaged directory offset moves all members, even to before the beginning.
        header = self._bytes(member.offset, _LOCAL.size) if member.offset >= 0 else b""
        if len(header) < _LOCAL.size or not header.startswith(_LOCAL_SIGNATURE):
            raise DamagedMember(f"{name} is not where it should be")
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


def _zip_members(file: BinaryIO) -> tuple[dict[str, _ZipMember], int]:
    """Return the members, and where the next one may be written."""
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        found = list(_scanned(file))
        end = found[-1][1] if found else 0
        members = [member for member, _ in found]
    else:
        if any(info.flag_bits & _ENCRYPTED for info in archive.infolist()):
            raise RecordingError("refused: it is encrypted")
        end = archive.start_dir
        members = [
            _ZipMember(
                *(info.filename, info.header_offset, info.compress_size, info.file_size),
                *(info.compress_type, info.CRC),
            )
            for info in archive.infolist()
            if not info.is_dir()
        ]
    if not members:
        raise RecordingError("not a recording: neither a zip file nor a folder")
    for member in members:
        _check_name(member.name)
        if member.method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise RecordingError(f"refused: {member.name[:80]} is neither stored nor deflated")
    _check_sizes([member.size for member in members])
    newest: dict[str, _ZipMember] = {}
    for member in members:
        newest.pop(member.name, None)
        newest[member.name] = member
    return newest, end


def _scanned(file: BinaryIO) -> Iterator[tuple[_ZipMember, int]]:
    """Yield the complete members of a zip file without a directory, and the end of each."""
    offset, file_bytes = 0, file.seek(0, os.SEEK_END)
    while (member := _member_at(file, offset)) is not None:
        offset = file.tell() + member.stored_bytes
        if offset > file_bytes:
            return
        yield member, offset


def _member_at(file: BinaryIO, offset: int) -> _ZipMember | None:
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
        self._file = path.open("r+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._members, end = _zip_members(self._file)
            if [member for member, _ in _scanned(self._file)][-1:] != [*self._members.values()][-1:]:
                raise RecordingError("another program wrote this zip file; record to a new file")
            # Without the old directory, a kill leaves what can be scanned.
            self._file.truncate(end)
            self._file.seek(end)
        except BlockingIOError:
            self._file.close()
            raise RecordingError("another process is recording to this file") from None
        except BaseException:
            self._file.close()
            raise

    def append(self, contents: Mapping[str, bytes]) -> None:
        """Write members with one call; they replace those with the same names."""
        offset, parts = self._file.tell(), []
        for name, content in contents.items():
            deflater = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
            data = deflater.compress(content) + deflater.flush()
            member = _ZipMember(
                name, offset, len(data), len(content), zipfile.ZIP_DEFLATED, zlib.crc32(content)
            )
            parts.append(_local_header(member) + data)
            offset += len(parts[-1])
            self._members.pop(name, None)
            self._members[name] = member
        if offset > MAX_ZIP_BYTES or len(self._members) > MAX_MEMBERS:
            raise RecordingError("the recording is full: a zip file has at most 4 GiB")
        self._file.write(b"".join(parts))
        self._file.flush()

    def close(self) -> None:
        start = self._file.tell()
        directory = b"".join(_directory_entry(member) for member in self._members.values())
        count = len(self._members)
        self._file.write(directory + _END.pack(_END_SIGNATURE, 0, 0, count, count, len(directory), start, 0))
        self._file.close()


def new_zip(path: Path, contents: Mapping[str, bytes]) -> None:
    """Create a zip file with these members; it appears at once. Raises FileExistsError."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(partial, "x", zipfile.ZIP_DEFLATED) as archive:
            for name, content in contents.items():
                archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
        partial.chmod(0o600)
        os.link(partial, path)
    finally:
        partial.unlink(missing_ok=True)


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
