"""One file, from its first byte until it is whole and sound."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from api_client.downloads.digests import Promises, read_promise
from api_client.downloads.errors import DownloadError
from api_client.downloads.filling import Changed, Filling, Hooks, Means, identity_of_listed
from api_client.downloads.listing import ListedFile
from api_client.downloads.part_file import PartFile
from api_client.downloads.planning import modified

MAX_FRESH_STARTS = 2
"""How often a file that changed, or arrived damaged, is begun anew."""


class FileDownload:
    """Fetches one file into its part file and checks it. The caller gives it its name.

    ``verified_by`` names what vouches for the bytes of a complete file: ``size``, or a digest's algorithm.
    """

    def __init__(self, means: Means, listed: ListedFile, job_id: str, hooks: Hooks) -> None:
        self._means = means
        self._listed = listed
        self._job_id = job_id
        self._hooks = hooks
        self._promises = Promises()
        self.verified_by = "size"

    async def fetch(self, path: Path, root: Path, *, on_open: Callable[[int], object]) -> PartFile:
        """Open the part file below ``root`` and fill it; the caller closes it.

        ``on_open`` is called with how much is there already. Raises DownloadError, RequestError and its
        kinds; what has arrived is kept then.
        """
        part = await self._opened(path, root)
        try:
            on_open(part.done_bytes)
            await self._fetch_sound(part)
        except BaseException:
            # Whatever happens to this task, the thread goes through with it.
            await asyncio.shield(asyncio.to_thread(part.close))
            raise
        return part

    async def _opened(self, path: Path, root: Path) -> PartFile:
        identity = identity_of_listed(self._listed, self._job_id)
        opening = asyncio.ensure_future(
            asyncio.to_thread(PartFile, path, root, identity, self._means.clock.monotonic)
        )
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_unwanted)
            raise

    async def _fetch_sound(self, part: PartFile) -> None:
        """Fill the part file, and again if it turns out to be another's, or damaged."""
        fresh_starts = 0
        while True:
            reason = ""
            try:
                await self._fill(part)
            except Changed as error:
                reason = str(error)
            else:
                promise = self._promises.strongest() or read_promise(part.identity.digest)
                if promise is None:
                    return
                # The disk takes the last bytes while they are summed up.
                digest, _ = await asyncio.gather(
                    asyncio.to_thread(part.digest, promise[0]), asyncio.to_thread(part.save)
                )
                if digest == promise[1]:
                    self.verified_by = promise[0]
                    return
                reason = f"its bytes do not have the {promise[0]} that the server promises"
            fresh_starts += 1
            if fresh_starts > MAX_FRESH_STARTS:
                # Nothing of it is worth going on with.
                await asyncio.to_thread(part.start_over, identity_of_listed(self._listed, self._job_id))
                raise DownloadError(reason)
            self._hooks.on_word(f"{reason}; starting over")
            # What the listing says may be as old as the bytes.
            self._listed = await self._means.urls.renewed(self._listed)
            self._promises = Promises()
            await asyncio.to_thread(part.start_over, identity_of_listed(self._listed, self._job_id))
            self._hooks.on_arrival(0, 0)

    @property
    def modified_s(self) -> float | None:
        """The time that the listing gives the file, in epoch seconds."""
        return modified(self._listed.last_modified)

    async def _fill(self, part: PartFile) -> None:
        filling = Filling(self._means, part, self._listed, self._job_id, self._promises, self._hooks)
        try:
            await filling.fill()
        finally:
            self._listed = filling.listed


def _close_unwanted(opening: asyncio.Future[PartFile]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
