"""Checkpoints and their files."""

from __future__ import annotations

from typing import Any

from api_client.models.base import ApiModel, TolerantList, UtcDatetime


class Checkpoint(ApiModel):
    """A checkpoint: ``checkpoint_id`` is its directory's name and may be ``"."``.

    ``sync_status`` is SYNCING, COMPLETE or null (the job's own field says COMPLETED instead).
    """

    checkpoint_id: str
    created_at: UtcDatetime | None = None
    checkpoint_type: str | None = None
    base_model: str | None = None
    lora_adapter_config: dict[str, Any] | None = None
    size_bytes: int | None = None
    sync_status: str | None = None
    training_job_id: str = ""


class CheckpointFile(ApiModel):
    """A file of a checkpoint. ``url`` is presigned: fetch it without credentials, refetch on 403."""

    url: str = ""
    relative_file_name: str = ""
    node_rank: int = 0
    size_bytes: int = 0
    last_modified: str = ""


class CheckpointFilesPage(ApiModel):
    """A page of files; ``next_page_token`` is an integer offset, null at the end."""

    presigned_urls: TolerantList[CheckpointFile] = []
    next_page_token: int | None = None
    total_count: int = 0
