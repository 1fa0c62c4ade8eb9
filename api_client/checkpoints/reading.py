"""Read files of checkpoints without downloading them: headers, JSON files and the beginning of text files.

``CheckpointContents`` reads a few bytes with range requests and renews expired URLs. ``preview`` decodes the
beginning of a file, and decides if it is text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from api_client.checkpoints.safetensors import (
    INDEX_SUFFIX,
    LENGTH_BYTES,
    ReadShard,
    SafetensorsHeader,
    Weights,
    header_length,
    parse_header,
    shards_of_index,
)
from api_client.checkpoints.trainer_state import MAX_BYTES, TrainerState, parse_trainer_state
from api_client.errors import InvalidAnswer, UnreadableFile, UrlExpired
from api_client.http.decoding import NotDecodable, read_json
from api_client.models import CheckpointFile
from api_client.models.checkpoints import is_safetensors
from api_client.resources.checkpoints import Checkpoints
from api_client.transfers.objects import Objects
from api_client.words import counted

_TEXT_CONTROL_BYTES = frozenset(b"\t\n\r\f\b\x1b")


@dataclass(frozen=True, slots=True)
class Preview:
    """Beginning of a file: the first ``bytes_read`` of ``size_bytes``.

    ``text`` is not sanitized; it is None if the file is not text.
    """

    text: str | None
    bytes_read: int
    size_bytes: int

    @property
    def is_whole(self) -> bool:
        """True if the whole file was read."""
        return self.bytes_read >= self.size_bytes


def preview(content: bytes, size_bytes: int) -> Preview:
    """Decode the first bytes of a file of ``size_bytes``; invalid characters become U+FFFD."""
    is_whole = len(content) >= size_bytes
    text = None if _is_binary(content) else _decode(content, is_whole)
    return Preview(text=text, bytes_read=len(content), size_bytes=max(size_bytes, len(content)))


def _is_binary(content: bytes) -> bool:
    beginning = content[:8192]
    if b"\0" in beginning:
        return True
    controls = sum(byte < 0x20 and byte not in _TEXT_CONTROL_BYTES for byte in beginning)
    return controls > len(beginning) / 10


def _decode(content: bytes, is_whole: bool) -> str:
    text = content.decode("utf-8-sig", errors="replace")
    # The limit may cut a character in two; that does not make the file invalid.
    return text if is_whole else text.removesuffix("\ufffd")


FIRST_READ_BYTES = 32 * 1024  # enough for the whole header of most adapters

Parsed = TypeVar("Parsed")
FileKey = tuple[str, int, str]  # job id, node rank and name: unlike the URL, they never change


class CheckpointContents:
    """Reads files of checkpoints without downloading them.

    Every method takes a file as it was listed. Methods raise RequestError and its subclasses, including
    UnreadableFile if the content is not in the expected format. When a URL has expired, the files are listed
    again, only once for all readers that wait.
    """

    def __init__(self, checkpoints: Checkpoints, objects: Objects) -> None:
        self._checkpoints = checkpoints
        self._objects = objects
        self._renewed_urls: dict[FileKey, str] = {}
        self._renewal_lock = asyncio.Lock()

    async def read(
        self, project_id: str, job_id: str, file: CheckpointFile, *, start: int = 0, length: int
    ) -> bytes:
        """Read ``length`` bytes of a file from ``start``; fewer at the end of the file.

        Raises InvalidAnswer if the file is shorter than its listed size.
        """
        key = (job_id, file.node_rank, file.relative_file_name)
        url = self._renewed_urls.get(key, file.url)
        try:
            content = await self._objects.read(url, start=start, length=length)
        except UrlExpired:
            fresh_url = await self._fresh_url(project_id, key, url)
            if fresh_url is None:
                raise
            content = await self._objects.read(fresh_url, start=start, length=length)
        listed_bytes = min(length, file.size_bytes - start)
        if len(content) < listed_bytes:
            # This is not the listed file, but a proxy's error page or a changed file.
            raise InvalidAnswer(
                f"the file ended after {counted(start + len(content), 'byte')} but is listed with "
                f"{file.size_bytes:,}; list the files again"
            )
        return content

    async def safetensors_header(
        self, project_id: str, job_id: str, file: CheckpointFile
    ) -> SafetensorsHeader:
        """Read the header of a safetensors file, with at most two range requests."""
        size = file.size_bytes if file.size_bytes > 0 else None
        beginning = await self.read(
            project_id, job_id, file, length=min(FIRST_READ_BYTES, size or FIRST_READ_BYTES)
        )
        try:
            length = header_length(beginning, size)
            header = beginning[LENGTH_BYTES : LENGTH_BYTES + length]
            if len(header) < length:
                header += await self.read(
                    project_id, job_id, file, start=LENGTH_BYTES + len(header), length=length - len(header)
                )
            if len(header) < length:
                raise UnreadableFile(f"it ends within its header of {length:,} bytes")
            return await asyncio.to_thread(parse_header, header, size)
        except UnreadableFile as error:
            raise UnreadableFile(error.problem, file=file.relative_file_name) from None

    async def weights(self, project_id: str, job_id: str, files: Sequence[CheckpointFile]) -> Weights:
        """Read all safetensors headers among these files (of one checkpoint), a few at a time.

        A file that cannot be read is reported in the result; an error that affects all files is raised.
        """
        read_slots = asyncio.Semaphore(4)  # concurrent reads

        async def shard(file: CheckpointFile) -> ReadShard:
            async with read_slots:
                try:
                    return ReadShard(file, header=await self.safetensors_header(project_id, job_id, file))
                except UnreadableFile as error:
                    return ReadShard(file, problem=error.problem)
                except (InvalidAnswer, UrlExpired) as error:
                    return ReadShard(file, problem=str(error))

        shards = [file for file in files if is_safetensors(file.relative_file_name)]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(shard(file)) for file in shards]
                missing_shards = group.create_task(self._missing_shards(project_id, job_id, files))
        except ExceptionGroup as failures:
            # Raise only the first error: all errors have the same cause, the object store or our listing.
            raise failures.exceptions[0] from None
        return Weights(shards=tuple(task.result() for task in tasks), missing=missing_shards.result())

    async def json(self, project_id: str, job_id: str, file: CheckpointFile) -> Any:
        """Read and parse a JSON file; characters that JSON forbids are tolerated."""
        # The index of a model with 100,000 tensors takes about 10 MB.
        return await self._read_and_parse(project_id, job_id, file, 16 * 1024 * 1024, read_json)

    async def trainer_state(self, project_id: str, job_id: str, file: CheckpointFile) -> TrainerState:
        """Read a trainer_state.json; its history is returned as curves."""
        return await self._read_and_parse(project_id, job_id, file, MAX_BYTES, parse_trainer_state)

    async def preview(self, project_id: str, job_id: str, file: CheckpointFile) -> Preview:
        """Read the beginning of a file, at most 1 MiB, if it is text."""
        content = await self.read(project_id, job_id, file, length=1024 * 1024)
        return preview(content, file.size_bytes)

    async def _read_and_parse(
        self,
        project_id: str,
        job_id: str,
        file: CheckpointFile,
        limit_bytes: int,
        parse: Callable[[bytes], Parsed],
    ) -> Parsed:
        name = file.relative_file_name
        if file.size_bytes > limit_bytes:
            raise UnreadableFile(f"too large to read ({file.size_bytes:,} bytes)", file=name)
        # Reading one byte more than allowed detects a listing with a wrong size.
        content = await self.read(project_id, job_id, file, length=limit_bytes + 1)
        if len(content) > limit_bytes:
            raise UnreadableFile(f"too large to read (over {limit_bytes:,} bytes)", file=name)
        try:
            return await asyncio.to_thread(parse, content)
        except (NotDecodable, UnreadableFile) as error:
            raise UnreadableFile(str(error), file=name) from None

    async def _missing_shards(
        self, project_id: str, job_id: str, files: Sequence[CheckpointFile]
    ) -> tuple[str, ...]:
        names = {file.relative_file_name for file in files}
        missing: list[str] = []
        for file in files:
            if not file.relative_file_name.endswith(INDEX_SUFFIX):
                continue
            folder = file.relative_file_name.rpartition("/")[0]
            try:
                shards = shards_of_index(await self.json(project_id, job_id, file))
            except InvalidAnswer:
                # The file's preview shows the problem, and the weights do not depend on the index.
                continue
            paths = (f"{folder}/{name}" if folder else name for name in shards)
            missing += [path for path in paths if path not in names]
        return tuple(missing)

    async def _fresh_url(self, project_id: str, key: FileKey, stale_url: str) -> str | None:
        """Return a newer URL for the file than ``stale_url``; None if the listing still has that URL."""
        async with self._renewal_lock:
            renewed_url = self._renewed_urls.get(key)
            if renewed_url is not None and renewed_url != stale_url:
                return renewed_url
            job_id = key[0]
            if len(self._renewed_urls) > 100_000:
                self._renewed_urls.clear()
            async for file in self._checkpoints.files(project_id, job_id):
                self._renewed_urls[(job_id, file.node_rank, file.relative_file_name)] = file.url
            fresh_url = self._renewed_urls.get(key)
            return fresh_url if fresh_url != stale_url else None
