"""Checkpoints of a job."""

from __future__ import annotations

from collections.abc import AsyncIterator

from api_client import routes
from api_client.models import CheckpointFile, CheckpointFilesPage
from api_client.models.checkpoints import ROOT_CHECKPOINT, Checkpoint, belongs_to
from api_client.resources import Resource

CheckpointList = list[Checkpoint]
FileList = list[CheckpointFile]


class Checkpoints(Resource):
    """Checkpoints and their files. Every method raises RequestError."""

    async def list(self, project_id: str, job_id: str) -> CheckpointList:
        """Return all checkpoints of a job, in the server's order (the API has no paging here)."""
        return await self._transport.request(routes.CHECKPOINTS, project_id, job_id)

    async def files_page(
        self, project_id: str, job_id: str, *, page_size: int = 1000, page_token: int = 0
    ) -> CheckpointFilesPage:
        """Return a page of the files of all checkpoints: ``page_size`` (at least 1) from ``page_token`` on.

        ``page_token`` is an offset. The URLs are presigned: fetch them without a key.
        """
        query = {"page_size": page_size, "page_token": page_token}
        return await self._transport.request(routes.CHECKPOINT_FILES, project_id, job_id, query=query)

    async def files(self, project_id: str, job_id: str) -> AsyncIterator[CheckpointFile]:
        """Yield the files of all checkpoints, page by page.

        The URLs are presigned: fetch them without a key.
        """
        token: int | None = 0
        seen_identities: set[tuple[str, int, str]] = set()
        while token is not None:
            page = await self.files_page(project_id, job_id, page_token=token)
            count_before = len(seen_identities)
            for file in page.presigned_urls:
                # The query of a URL is its signature, which is new in each response.
                identity = file.relative_file_name, file.node_rank, file.url.partition("?")[0]
                if identity not in seen_identities:
                    seen_identities.add(identity)
                    yield file
            next_token, is_new = page.next_page_token, len(seen_identities) > count_before
            # A token that does not advance, or a page without a new file, would loop forever.
            token = next_token if next_token is not None and next_token > token and is_new else None

    async def files_of(self, project_id: str, job_id: str, checkpoint_id: str) -> FileList:
        """Return the files of one checkpoint, of all nodes, in the server's order.

        The API lists the files of all checkpoints together, so every page is read. The root checkpoint,
        ``.``, holds the files that belong to no other checkpoint.
        """
        all_names: set[str] = set()
        if checkpoint_id == ROOT_CHECKPOINT:
            all_names = {checkpoint.checkpoint_id for checkpoint in await self.list(project_id, job_id)}
        return [
            file
            async for file in self.files(project_id, job_id)
            if belongs_to(file.relative_file_name, checkpoint_id, all_names)
        ]
