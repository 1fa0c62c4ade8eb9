"""Checkpoints on disk: listed for the API, and copied to where a later job loads them.

Each folder directly below a node's checkpoint folder is a checkpoint; files next to them form the checkpoint
``"."``. The content determines the type: an adapter config → lora, a Whisper architecture → whisper,
otherwise full. A loading job gets node N's files below ``rank-N/<checkpoint>/``.
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
        """Return True if no file has changed for two seconds: a running job's checkpoint is complete then."""
        return now - max(datetime.fromisoformat(file.modified) for file in self.files) >= timedelta(seconds=2)

    def describe(self, job_id: str, *, is_settled: bool) -> Checkpoint:
        """Return the checkpoint as the API does; ``is_settled`` means that it is completely written."""
        adapter = self._json("adapter_config.json")
        config = self._json("config.json") or {}
        kind = "lora" if adapter is not None else "whisper" if _is_whisper(config) else "full"
        base = (adapter or {}).get("base_model_name_or_path") or config.get("_name_or_path")
        return Checkpoint(
            checkpoint_id=self.name,
            created_at=self.created_at,
            checkpoint_type=kind,
            base_model=base if isinstance(base, str) else None,
            lora_adapter_config=adapter,
            size_bytes=sum(file.size_bytes for file in self.files),
            sync_status="COMPLETE" if is_settled else "SYNCING",
            training_job_id=job_id,
        )

    def _json(self, name: str) -> dict[str, Any] | None:
        """Return a JSON object; None if there is none, or it is still being written."""
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
            inside = path.relative_to(root)
            checkpoint = inside.parts[0] if len(inside.parts) > 1 else ROOT_CHECKPOINT
            is_hidden = checkpoint.startswith(".") and checkpoint != ROOT_CHECKPOINT
            if (
                stat.S_ISREG(status.st_mode) and not is_hidden
            ):  # a symlink could point anywhere on this machine
                modified = datetime.fromtimestamp(status.st_mtime, UTC).isoformat()
                file = StoredFile(inside.as_posix(), rank, status.st_size, modified, path)
                files.setdefault(checkpoint, []).append(file)
    checkpoints = [DiskCheckpoint(name, tuple(members)) for name, members in files.items()]
    return sorted(checkpoints, key=lambda checkpoint: (checkpoint.created_at, checkpoint.name))


def _is_whisper(config: dict[str, Any]) -> bool:
    architectures = config.get("architectures")
    names = architectures if isinstance(architectures, list) else []
    return config.get("model_type") == "whisper" or any("whisper" in str(name).lower() for name in names)


class CheckpointStore:
    """The checkpoints of all local jobs, which jobs of the same team may load. Safe from any thread."""

    def __init__(
        self, stores: Stores, folders: DataFolders, max_nodes: int, monotonic: Callable[[], float]
    ) -> None:
        self._stores = stores
        self._folders = folders
        self._max_nodes = max_nodes
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._scans: dict[str, tuple[float, list[DiskCheckpoint]]] = {}

    def of(self, row: StoredJob) -> list[DiskCheckpoint]:
        """Return a job's checkpoints, oldest first; for a running job, up to a second stale."""
        request = read_job_request(row.spec)
        if not request.checkpointing or request.node_count > self._max_nodes:
            return []
        with self._lock:  # many readers share one disk scan
            now_s = self._monotonic()
            expires_s, checkpoints = self._scans.get(row.job.id, (0.0, []))
            if now_s >= expires_s:
                checkpoints = _checkpoints_below(self._folders.job(row.job.id), request.node_count)
                expires_s = math.inf if row.job.is_finished else now_s + 1.0
                self._scans[row.job.id] = expires_s, checkpoints
            return checkpoints

    def forget(self, job_id: str) -> None:
        """Drop the cached result, so that the next read scans the disk."""
        with self._lock:
            self._scans.pop(job_id, None)

    def load(self, job: TrainingJob, sources: Iterable[CheckpointSource]) -> None:
        """Copy checkpoints to where a job loads them; raise ``CannotStart`` if that is impossible."""
        destination = self._folders.job(job.id).loaded_checkpoints
        try:
            destination.mkdir(parents=True, exist_ok=True)
            for source in sources:
                for file in self._choose(source, job).files:
                    assert file.path is not None
                    target = destination / f"rank-{file.node_rank}" / file.relative_name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(file.path, target)
        except OSError as error:
            raise CannotStart(f"can't load a checkpoint: {error}") from error

    def _choose(self, source: CheckpointSource, job: TrainingJob) -> DiskCheckpoint:
        """Find what a source refers to: the newest matching checkpoint of the newest job that has any."""
        for row in reversed(self._stores.jobs.all()):
            if row.job.id != job.id and self._is_candidate(row.job, source, job):
                matches = [
                    checkpoint for checkpoint in self.of(row) if source.name in (None, checkpoint.name)
                ]
                if matches:
                    return matches[-1]
        selectors = (
            f"job {source.job_id}" if source.job_id else "",
            f"project {source.project_name!r}" if source.project_name else "",
        )
        origin = " and ".join(filter(None, selectors)) or "the job's own project"
        name = f"checkpoint {source.name!r}" if source.name else "checkpoint"
        raise CannotStart(f"no {name} of {origin} on this machine to load")

    def _is_candidate(self, job: TrainingJob, source: CheckpointSource, loading: TrainingJob) -> bool:
        if source.job_id is not None and job.id != source.job_id:
            return False
        if source.project_name is None:
            return source.job_id is not None or job.project_id == loading.project_id
        team_of = self._stores.team_of
        is_same_team = team_of(job.project_id) == team_of(loading.project_id)
        return job.project_name == source.project_name and is_same_team
