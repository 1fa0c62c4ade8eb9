"""Read and write the members of a recording, which is a zip file.

Members are never extracted to the disk, so their names cannot point outside a folder. They are looked up by
the names that bt-tui gives them, and read into memory, within limits. ``zipfile`` reads and writes zip files,
with one exception: a file without a central directory, as a killed recorder leaves it, is scanned by this
module, from its beginning to the last complete member.
"""

from __future__ import annotations

import fcntl
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from api_client.errors import ConfigurationError
from api_client.files import PRIVATE_FILE_MODE, AtomicFile

SUFFIX = ".btrun"
LINES_SUFFIX = ".ndjson"
MAX_MEMBERS = 60_000
MAX_TOTAL_BYTES = 4 * 1024**3
"""Maximum decompressed size of all members together, enough for about twenty million log lines."""
MAX_DOCUMENT_BYTES = 32 * 1024**2
"""Maximum size of a member that is read into memory as a whole."""
MAX_RATIO = 128
"""Maximum compression ratio of a member, against zip bombs; the samples of an idle job reach about 100."""
MAX_DIRECTORY_BYTES = 16 * 1024**2  # of the zip file's central directory

_HEADER_STRUCT = struct.Struct("<4s5H3L2H")
_HEADER_SIGNATURE, _EMPTY_ZIP = b"PK\3\4", b"PK\5\6" + bytes(18)
_ZIP_READ_ERRORS = (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""Errors of ``zipfile`` for a member that is damaged, encrypted, or not at the recorded position."""


class RecordingError(ConfigurationError):
    """A recording cannot be opened or written; the message says why."""


class DamagedMember(Exception):
    """A member of a recording cannot be read."""


class Members:
    """The members of a recording by name. Reads are safe from any thread.

    Raises RecordingError if there are too many members, or too large ones.
    """

    def __init__(self, archive: ZipFile, members: Mapping[str, ZipInfo], close: Callable[[], object]) -> None:
        _check_total(member.file_size for member in members.values())
        self._archive = archive
        self._members = members
        self.close = close

    def names(self) -> Collection[str]:
        return self._members.keys()

    def size(self, name: str) -> int:
        return self._members[name].file_size

    def stored_bytes(self, name: str) -> int:
        """Return the compressed size of a member."""
        return self._members[name].compress_size

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield a member's content in chunks. Raises DamagedMember."""
        member = self._members[name]
        if member.file_size > max_bytes(member.compress_size):
            raise DamagedMember(f"{name} is compressed more than {MAX_RATIO} times")
        # With other compression methods, zipfile's memory use has no limit.
        if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise DamagedMember(f"{name} is damaged")
        try:
            with self._archive.open(member) as file:
                while chunk := file.read(1024**2):
                    yield chunk
        except _ZIP_READ_ERRORS as error:
            raise DamagedMember(f"{name} is damaged") from error


def open_members(path: Path, *, complete_only: bool = False) -> Members:
    """Open a recording for reading. Raises RecordingError.

    A truncated last member is listed, too, unless it replaces another member or ``complete_only`` is true;
    reading the truncated member raises DamagedMember.
    """
    try:
        with ExitStack() as exit_stack:
            file = exit_stack.enter_context(_LimitedReader(path.open("rb", buffering=0)))
            archive, directory, truncated_member = _read_zip(file)
            if truncated_member is not None and not complete_only:
                directory.setdefault(truncated_member.filename, truncated_member)
            members = Members(archive, directory, file.close)
            exit_stack.pop_all()  # success: leave the file open
            return members
    except OSError as error:
        raise RecordingError(f"can't read {path}: {error.strerror}") from error
    except RecordingError as error:
        raise RecordingError(f"{path}: {error}") from None


def read_member(members: Members, name: str, max_size_bytes: int = MAX_DOCUMENT_BYTES) -> bytes:
    """Return the whole content of a member. Raises DamagedMember, also if it exceeds ``max_size_bytes``."""
    content = bytearray()
    for chunk in members.chunks(name):
        content += chunk
        if len(content) > max_size_bytes:
            raise DamagedMember(f"{name} has more than {max_size_bytes:,} bytes")
    return bytes(content)


def max_bytes(stored_bytes: int) -> int:
    """Return the maximum decompressed size of a member with this compressed size."""
    return 1024 + stored_bytes * MAX_RATIO


def max_lines(stored_bytes: int) -> int:
    """Return the maximum number of lines of a member with this compressed size.

    A log line takes at least 5 compressed bytes, a sample of an idle job 3.
    """
    return 64 + stored_bytes // 2


def _check_count(count: int) -> None:
    if count > MAX_MEMBERS:
        raise RecordingError(f"refused: it has more than {MAX_MEMBERS:,} members")


def _check_total(sizes: Iterable[int]) -> None:
    member_sizes = list(sizes)
    _check_count(len(member_sizes))
    if sum(member_sizes) > MAX_TOTAL_BYTES:
        raise RecordingError(f"refused: it has more than {MAX_TOTAL_BYTES:,} bytes")


class _LimitedReader(io.BufferedReader):
    """Reads a zip file; refuses a directory over ``MAX_DIRECTORY_BYTES``, which ``zipfile`` reads at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MAX_DIRECTORY_BYTES:
            raise RecordingError(f"refused: its directory has more than {MAX_DIRECTORY_BYTES:,} bytes")
        return super().read(size)


_Directory = dict[str, ZipInfo]
"""Members by name; of members with the same name, the last."""


def _read_zip(file: _LimitedReader) -> tuple[ZipFile, _Directory, ZipInfo | None]:
    """Return the zip file, its directory, and its truncated last member, if any.

    Raises RecordingError.
    """
    truncated_member = None
    try:
        archive = ZipFile(file)
        directory = {info.filename: info for info in archive.infolist()}
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        archive = ZipFile(io.BytesIO(_EMPTY_ZIP))
        archive.fp = file
        directory, truncated_member, archive.start_dir = _scan_members(file)
    if not directory:
        raise RecordingError("not a recording: it is not a zip file")
    if sum(info.compress_size for info in directory.values()) > file.seek(0, os.SEEK_END):
        raise RecordingError("refused: its members overlap")
    return archive, directory, truncated_member


def _scan_members(file: _LimitedReader) -> tuple[_Directory, ZipInfo | None, int]:
    """Scan a zip file that has no directory.

    Returns its complete members, the truncated last member, if any, and the offset after the complete
    members.
    """
    directory: _Directory = {}
    file_bytes, offset = file.seek(0, os.SEEK_END), 0
    while (info := _header_at(file, offset)) is not None:
        end = file.tell() + info.compress_size
        if end > file_bytes:
            break
        directory[info.filename], offset = info, end
        _check_count(len(directory))
    return directory, info, offset


def _header_at(file: _LimitedReader, offset: int) -> ZipInfo | None:
    """Read the member header at ``offset`` and seek to the member's content; None if there is no header."""
    file.seek(offset)
    header = file.read(_HEADER_STRUCT.size)
    if len(header) < _HEADER_STRUCT.size:
        return None
    signature, _, flags, method, _, _, crc, stored, size, name_bytes, extra_bytes = _HEADER_STRUCT.unpack(
        header
    )
    name = file.read(name_bytes)
    is_complete = len(name) == name_bytes and (stored > 0 or size == 0)
    # Flag 8: the sizes follow the content; flag 1: it is encrypted.
    if signature != _HEADER_SIGNATURE or flags & 0x9 or not is_complete:
        return None
    file.seek(extra_bytes, os.SEEK_CUR)
    info = ZipInfo(name.decode("utf-8", "replace"))
    info.flag_bits, info.compress_type, info.CRC = flags, method, crc
    info.header_offset, info.compress_size, info.file_size = offset, stored, size
    return info


class ZipAppender:
    """Appends members to a zip file; ``close`` writes its directory, without which it can be read, too.

    Raises RecordingError if another process is appending to the file.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("r+b", buffering=0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            reader = _LimitedReader(self._file)
            archive, self._directory, _ = _read_zip(reader)
            self._end = archive.start_dir
            if _scan_members(reader)[2] != self._end:
                raise RecordingError("another program wrote this zip file; record to a new file")
            reader.detach()
            # Remove the old directory, so that the file can be scanned if this process is killed.
            self._file.truncate(self._end)
        except BlockingIOError:
            self._file.close()
            raise RecordingError("another process is recording to this file") from None
        except BaseException:
            self._file.close()
            raise

    def append(self, contents: Mapping[str, bytes]) -> None:
        """Write all members in ``contents``, or none; they replace members with the same names.

        Raises RecordingError if the recording would exceed a limit, OSError if they can't be written.
        """
        data, infos = _encode(contents, self._end)
        directory = self._directory | {info.filename: info for info in infos}
        _check_total(info.file_size for info in directory.values())
        self._write(data)
        self._directory, self._end = directory, self._end + len(data)

    def close(self) -> None:
        """Write the directory. Raises OSError; the recording is readable without it."""
        try:
            with os.fdopen(os.dup(self._file.fileno()), "r+b") as file, ZipFile(file, "a") as archive:
                archive.filelist += self._directory.values()
        finally:
            self._file.close()

    def _write(self, content: bytes) -> None:
        """Write at the end; if that fails, truncate the file to its previous size. Raises OSError."""
        self._file.seek(self._end)
        remaining = memoryview(content)
        try:
            while remaining:
                remaining = remaining[self._file.write(remaining) or 0 :]
        except BaseException:
            self._file.truncate(self._end)
            raise


def new_zip(path: Path, contents: Mapping[str, bytes]) -> None:
    """Create a zip file with these members, atomically. Raises FileExistsError, OSError."""
    with AtomicFile(path, mode=PRIVATE_FILE_MODE, replace=False, streams=False) as file:
        file.write(_encode(contents, 0)[0])


def _encode(contents: Mapping[str, bytes], offset: int) -> tuple[bytes, list[ZipInfo]]:
    """Return the encoded members as stored from ``offset`` on, and their directory entries."""
    encoded, infos = [], []
    for name, content in contents.items():
        info, data = _member(name, content, ZIP_DEFLATED)
        lines = content.count(b"\n") if name.endswith(LINES_SUFFIX) else 0
        if len(content) > max_bytes(info.compress_size) or lines > max_lines(info.compress_size):
            # Readers would reject the deflated member as a zip bomb.
            info, data = _member(name, content, ZIP_STORED)
        info.header_offset = offset
        offset += len(data)
        encoded.append(data)
        infos.append(info)
    return b"".join(encoded), infos


def _member(name: str, content: bytes, method: int) -> tuple[ZipInfo, bytes]:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        archive.writestr(ZipInfo(name), content, method)
        data = buffer.getvalue()
    return archive.infolist()[0], data
