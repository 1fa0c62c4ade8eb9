"""The files of a job as the server lists them, and fresh URLs for them when the old ones have expired."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from api_client.checkpoint_names import ROOT_CHECKPOINT, belongs_to
from api_client.downloads.errors import DownloadError
from api_client.downloads.names import ServerName
from api_client.models import CheckpointFile
from api_client.resources.checkpoints import FILES_PAGE_SIZE, Checkpoints

ARCHIVE = ServerName(0, "")
"""The key of a job's archive, which is in no listing of files."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file as it was last listed; ``size_bytes`` is None where the server did not say."""

    key: ServerName
    url: str = field(repr=False)
    size_bytes: int | None
    last_modified: str
    index: int = 0


def as_listed(file: CheckpointFile, index: int = 0) -> ListedFile:
    """A file of the API, with what was null or missing told from zero."""
    says_size = "size_bytes" in file.model_fields_set and file.size_bytes >= 0
    return ListedFile(
        ServerName(file.node_rank, file.relative_file_name),
        file.url,
        file.size_bytes if says_size else None,
        file.last_modified,
        index,
    )


def is_folder_marker(file: ListedFile) -> bool:
    """Whether it is no file but an object store's mark for a folder."""
    return file.key.name.endswith("/") and not file.size_bytes


def chosen(
    files: Iterable[ListedFile],
    checkpoints: Iterable[str] | None,
    patterns: Iterable[str] | None,
    all_checkpoints: Collection[str] = (),
) -> list[ListedFile]:
    """The files of those checkpoints (None: all) that match one of the globs (None: all).

    The checkpoint named ``.`` has the files that are in none of the others, ``all_checkpoints``. A glob is
    tried on the name below the checkpoint's folder, on the whole name, and on the last part of it.
    """
    wanted = None if checkpoints is None else [plain_checkpoint(name) for name in checkpoints]
    others = set(all_checkpoints) - {ROOT_CHECKPOINT}
    globs = None if patterns is None else list(patterns)
    return [
        file
        for file in files
        if (wanted is None or any(belongs_to(file.key.name, checkpoint, others) for checkpoint in wanted))
        and (globs is None or any(_matches(file.key.name, glob) for glob in globs))
    ]


def plain_checkpoint(name: str) -> str:
    """The checkpoint's name without what shells' completion puts around it."""
    return name.removeprefix("./").strip("/") or ROOT_CHECKPOINT


def _matches(name: str, glob: str) -> bool:
    plain = name.removeprefix("./")
    below = plain.partition("/")[2]
    return any(fnmatchcase(text, glob) for text in (plain, below, plain.rpartition("/")[2]) if text)


class UrlBook:
    """The current URL of every file of a run; one renewal serves all files that it comes across."""

    def __init__(
        self, files: Iterable[ListedFile], renew: Callable[[ListedFile], Awaitable[Renewed]]
    ) -> None:
        self._files = {file.key: file for file in files}
        self._renew = renew
        self._lock = asyncio.Lock()

    def __getitem__(self, key: ServerName) -> ListedFile:
        return self._files[key]

    async def renewed(self, stale: ListedFile) -> ListedFile:
        """The file with another URL than ``stale`` has. Raises DownloadError if it is not listed any more.

        Raises what listing the files raises, too.
        """
        async with self._lock:
            current = self._files[stale.key]
            if current is not stale:
                return current
            found = await self._renew(stale)
            for file in found:
                if file.key in self._files:
                    self._files[file.key] = file
            if self._files[stale.key] is stale:
                raise DownloadError("the job has this file no more")
            return self._files[stale.key]


Renewed = list[ListedFile]


async def list_again(checkpoints: Checkpoints, project_id: str, job_id: str, wanted: ListedFile) -> Renewed:
    """The pages of the listing up to the one with the wanted file, that where it was first.

    Nothing but what was seen: whoever wants other files will ask again.
    """
    first = wanted.index // FILES_PAGE_SIZE * FILES_PAGE_SIZE
    seen: Renewed = []
    following: int | None = first
    asked: set[int] = set()
    while following is not None and following not in asked:
        token = following
        asked.add(token)
        page = await checkpoints.files_page(project_id, job_id, page_token=token)
        files = [as_listed(file, token + place) for place, file in enumerate(page.presigned_urls)]
        seen += files
        if any(file.key == wanted.key for file in files):
            break
        following = page.next_page_token if files else None
        if following is None and 0 not in asked:
            # Files were added or taken away before it: look from the beginning.
            following = 0
    return seen
