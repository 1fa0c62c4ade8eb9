"""Checkpoints and their files."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from api_client.models.base import ApiModel, Integer, OptionalDatetime, TolerantList
from api_client.models.jobs import TrainingJob


class Checkpoint(ApiModel):
    """Checkpoint: ``checkpoint_id`` is its directory's name and may be ``"."``.

    ``sync_status`` is SYNCING, COMPLETE or null (the job's own field uses COMPLETED instead).
    """

    checkpoint_id: str
    created_at: OptionalDatetime = None
    checkpoint_type: str | None = None
    base_model: str | None = None
    lora_adapter_config: dict[str, Any] | None = None
    size_bytes: Integer | None = None
    sync_status: str | None = None
    training_job_id: str = ""


class CheckpointFile(ApiModel):
    """File of a checkpoint. ``url`` is presigned: fetch it without a key; list again if that returns 403."""

    url: str = ""
    relative_file_name: str = ""
    node_rank: Integer = 0
    size_bytes: Integer = 0
    last_modified: str = ""


class CheckpointFilesPage(ApiModel):
    """Page of files; ``next_page_token`` is an integer offset, null at the end."""

    presigned_urls: TolerantList[CheckpointFile] = []
    next_page_token: Integer | None = None
    total_count: Integer = 0


ROOT_CHECKPOINT = "."  # name of the checkpoint that is the checkpoint folder itself
SAFETENSORS_SUFFIX = ".safetensors"


def _without_rank(name: str, checkpoint_id: str) -> str:
    """Strip a leading ``rank-0/``, which some servers put before the checkpoint's folder."""
    name = name.removeprefix("./")
    rank_folder = re.match(r"rank-[0-9]+/", name, re.ASCII)
    if rank_folder and not checkpoint_id.startswith(rank_folder[0]):
        name = name[rank_folder.end() :].removeprefix("./")
    return name


def belongs_to(name: str, checkpoint_id: str, all_checkpoints: Collection[str] = ()) -> bool:
    """Return True if the file ``name`` (``relative_file_name``) belongs to the checkpoint.

    The root checkpoint ``.`` holds the files that belong to none of ``all_checkpoints``.
    """
    relative_name = _without_rank(name, checkpoint_id)
    if checkpoint_id != ROOT_CHECKPOINT:
        return relative_name.startswith(f"{checkpoint_id}/")
    components = relative_name.split("/")
    folders = ("/".join(components[:depth]) for depth in range(1, len(components)))
    return not any(folder in all_checkpoints for folder in folders)


def name_inside(name: str, checkpoint_id: str) -> str:
    """Return the file name below the checkpoint's folder: ``checkpoint-40/config.json`` → ``config.json``."""
    relative_name = _without_rank(name, checkpoint_id)
    return (
        relative_name if checkpoint_id == ROOT_CHECKPOINT else relative_name.removeprefix(f"{checkpoint_id}/")
    )


def is_safetensors(name: str) -> bool:
    """Return True if the name is that of a safetensors file."""
    return name.lower().endswith(SAFETENSORS_SUFFIX)


def checkpoint_address(job: TrainingJob, checkpoint_name: str) -> str:
    """Return ``bt://project@job/checkpoint``, from which a Truss loads weights.

    Empty if a name has a special character, because no documentation says how to escape it.
    """
    project = job.training_project.name if job.training_project is not None else ""
    names = (project, job.id, checkpoint_name)
    is_plain = all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name, re.ASCII) for name in names)
    return f"bt://{project}@{job.id}/{checkpoint_name}" if is_plain else ""
