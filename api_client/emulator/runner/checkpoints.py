"""Checkpoints on disk: listed for the API, and copied into the folder from which a later job loads them.

Each folder directly below a node's checkpoint folder is a checkpoint; files next to them form the checkpoint
``"."``. The content determines the type: an adapter config → lora, a Whisper architecture → whisper,
otherwise full. A job that loads a checkpoint finds the files of node N below ``rank-N/<checkpoint>/``.
"""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import stat
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from api_client.definitions.job_request import CheckpointSource, read_job_request
from api_client.emulator.backend import StoredFile
from api_client.emulator.runner.environment import CHECKPOINTS, CannotStart, DataFolders, JobFolders, walk
from api_client.emulator.store.stores import StoredJob, Stores
from api_client.files import read_small_file
from api_client.models import Checkpoint, TrainingJob
from api_client.models.checkpoints import ROOT_CHECKPOINT


@dataclass(frozen=True, slots=True)
class DiskCheckpoint:
    """A checkpoint of a job on disk, with the files of all nodes."""

    name: str
    files: tuple[StoredFile, ...]

    @property
    def created_at(self) -> datetime:
        return min(datetime.fromisoformat(file.modified) for file in self.files)

    def is_settled(self, now: datetime) -> bool:
        """Return True if no file has changed for two seconds, so it is probably written completely."""
        return now - max(datetime.fromisoformat(file.modified) for file in self.files) >= timedelta(seconds=2)

    def describe(self, job_id: str, *, is_settled: bool) -> Checkpoint:
        """Return the checkpoint as the API does; ``is_settled`` means that all of it is written."""
        adapter_config = self._read_json("adapter_config.json")
        config = self._read_json("config.json") or {}
        kind = "lora" if adapter_config is not None else "whisper" if _is_whisper(config) else "full"
        base_model = (adapter_config or {}).get("base_model_name_or_path") or config.get("_name_or_path")
        return Checkpoint(
            checkpoint_id=self.name,
            created_at=self.created_at,
            checkpoint_type=kind,
            base_model=base_model if isinstance(base_model, str) else None,
            lora_adapter_config=adapter_config,
            size_bytes=sum(file.size_bytes for file in self.files),
            sync_status="COMPLETE" if is_settled else "SYNCING",
            training_job_id=job_id,
        )

    def _read_json(self, name: str) -> dict[str, Any] | None:
        """Return the JSON object in a file; None if the file is missing, invalid or still being written."""
        path = next(
            (file.path for file in self.files if file.relative_name == Path(self.name, name).as_posix()), None
        )
        with contextlib.suppress(OSError, ValueError, RecursionError):
            content = json.loads(read_small_file(path)) if path else None
            return content if isinstance(content, dict) else None
        return None


def _checkpoints_below(folders: JobFolders, node_count: int) -> list[DiskCheckpoint]:
    """Return the checkpoints on disk, oldest first."""
    files: dict[str, list[StoredFile]] = {}
    for rank in range(node_count):
        root = folders.node(rank, CHECKPOINTS)
        for path, status in walk(root):
            relative_path = path.relative_to(root)
            checkpoint = relative_path.parts[0] if len(relative_path.parts) > 1 else ROOT_CHECKPOINT
            is_hidden = checkpoint.startswith(".") and checkpoint != ROOT_CHECKPOINT
            if (
                stat.S_ISREG(status.st_mode) and not is_hidden
            ):  # a symlink could point anywhere on this machine
                modified = datetime.fromtimestamp(status.st_mtime, UTC).isoformat()
                file = StoredFile(relative_path.as_posix(), rank, status.st_size, modified, path)
                files.setdefault(checkpoint, []).append(file)
    checkpoints = [DiskCheckpoint(name, tuple(checkpoint_files)) for name, checkpoint_files in files.items()]
    return sorted(checkpoints, key=lambda checkpoint: (checkpoint.created_at, checkpoint.name))


def _is_whisper(config: dict[str, Any]) -> bool:
    architectures = config.get("architectures")
    names = architectures if isinstance(architectures, list) else []
    return config.get("model_type") == "whisper" or any("whisper" in str(name).lower() for name in names)


class CheckpointStore:
    """The checkpoints of all local jobs; jobs of the same team may load them. Safe from any thread."""

    def __init__(
        self, stores: Stores, folders: DataFolders, max_nodes: int, monotonic: Callable[[], float]
    ) -> None:
        self._stores = stores
        self._folders = folders
        self._max_nodes = max_nodes
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._scans: dict[str, tuple[float, list[DiskCheckpoint]]] = {}

    def of_job(self, stored_job: StoredJob) -> list[DiskCheckpoint]:
        """Return a job's checkpoints, oldest first; those of a running job may be a second old."""
        request = read_job_request(stored_job.spec)
        if not request.checkpointing or request.node_count > self._max_nodes:
            return []
        with self._lock:  # many readers share one disk scan
            now_s = self._monotonic()
            expires_s, checkpoints = self._scans.get(stored_job.job.id, (0.0, []))
            if now_s >= expires_s:
                checkpoints = _checkpoints_below(self._folders.job(stored_job.job.id), request.node_count)
                expires_s = math.inf if stored_job.job.is_finished else now_s + 1.0
                self._scans[stored_job.job.id] = expires_s, checkpoints
            return checkpoints

    def forget(self, job_id: str) -> None:
        """Drop a job's cached checkpoints, so that the next read scans the disk."""
        with self._lock:
            self._scans.pop(job_id, None)

    def load(self, job: TrainingJob, sources: Iterable[CheckpointSource]) -> None:
        """Copy checkpoints into the folder that a job loads them from; raise ``CannotStart`` on failure."""
        destination = self._folders.job(job.id).loaded_checkpoints
        try:
            destination.mkdir(parents=True, exist_ok=True)
            for source in sources:
                for file in self._find(source, job).files:
                    assert file.path is not None
                    target = destination / f"rank-{file.node_rank}" / file.relative_name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(file.path, target)
        except OSError as error:
            raise CannotStart(f"can't load a checkpoint: {error}") from error

    def _find(self, source: CheckpointSource, job: TrainingJob) -> DiskCheckpoint:
        """Return the newest matching checkpoint of the newest job that has a match."""
        for stored_job in reversed(self._stores.jobs.all()):
            if stored_job.job.id != job.id and self._is_candidate(stored_job.job, source, job):
                matches = [
                    checkpoint
                    for checkpoint in self.of_job(stored_job)
                    if source.name in (None, checkpoint.name)
                ]
                if matches:
                    return matches[-1]
        conditions = (
            f"job {source.job_id}" if source.job_id else "",
            f"project {source.project_name!r}" if source.project_name else "",
        )
        origin = " and ".join(filter(None, conditions)) or "the job's own project"
        checkpoint_name = f"checkpoint {source.name!r}" if source.name else "checkpoint"
        raise CannotStart(f"there is no {checkpoint_name} of {origin} on this machine")

    def _is_candidate(self, job: TrainingJob, source: CheckpointSource, loading_job: TrainingJob) -> bool:
        if source.job_id is not None and job.id != source.job_id:
            return False
        if source.project_name is None:
            return source.job_id is not None or job.project_id == loading_job.project_id
        team_of = self._stores.team_of
        is_same_team = team_of(job.project_id) == team_of(loading_job.project_id)
        return job.project_name == source.project_name and is_same_team
