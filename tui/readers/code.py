"""Read the code that a job was submitted with, to show it; the code is neither executed nor left on disk."""

from __future__ import annotations

import asyncio
from hashlib import file_digest
from pathlib import Path
from tempfile import TemporaryDirectory

from api_client.archives import BadArchive, Unpacker
from api_client.client import TrainingClient
from api_client.errors import ApiClientError, NotFound
from api_client.models import TrainingJob
from tui.analysis.differences import MAX_FILE_BYTES, Files, JobDifferences, LargeFile, code_differences
from tui.readers.watcher import gather_or_cancel

MAX_ARCHIVE_BYTES = 50_000_000


class NoCode(ApiClientError):
    """The code of a job cannot be read; the message says why."""


async def read_differences(client: TrainingClient, before: TrainingJob, after: TrainingJob) -> JobDifferences:
    """Compare two jobs; if their code cannot be read, only their hardware. Raises RequestError."""
    try:
        files = await gather_or_cancel(read_code(client, before), read_code(client, after))
    except NoCode as error:
        return JobDifferences(before, after, not_compared=str(error))
    return JobDifferences(before, after, await asyncio.to_thread(code_differences, *files))


async def read_code(client: TrainingClient, job: TrainingJob) -> Files:
    """Return the files of a job's archive by path. Raises NoCode and RequestError."""
    no_archive = f"job {job.id} has no code archive"
    try:
        urls = await client.jobs.download_urls(job.project_id, job.id)
    except NotFound as error:
        raise NoCode(f"{no_archive} (404)") from error
    if not urls:
        raise NoCode(no_archive)
    archive_bytes = await client.objects.read(urls[0], length=MAX_ARCHIVE_BYTES + 1)
    if len(archive_bytes) > MAX_ARCHIVE_BYTES:
        raise NoCode(f"the archive of {job.id} is larger than {MAX_ARCHIVE_BYTES:,} bytes")
    try:
        return await asyncio.to_thread(_unpacked_files, archive_bytes)
    except BadArchive as error:
        raise NoCode(f"the archive of {job.id} can't be read: {error}") from None


def _unpacked_files(archive_bytes: bytes) -> Files:
    with TemporaryDirectory(prefix="bt-tui-code-") as name:
        folder = Path(name)
        archive, files_folder = folder / "archive", folder / "files"
        archive.write_bytes(archive_bytes)
        files_folder.mkdir()
        with Unpacker(files_folder, max_bytes=400_000_000) as unpacker:
            unpacker.add(archive)
        files = (path for path in files_folder.rglob("*") if path.is_file() and not path.is_symlink())
        return {path.relative_to(files_folder).as_posix(): _content(path) for path in files}


def _content(path: Path) -> bytes | LargeFile:
    size_bytes = path.stat().st_size
    if size_bytes <= MAX_FILE_BYTES:
        return path.read_bytes()
    with path.open("rb") as file:
        return LargeFile(size_bytes, file_digest(file, "blake2b").hexdigest())
