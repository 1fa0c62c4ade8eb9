"""Checkpoints on disk: found for the API, and copied to where a later job loads them.

Each directory directly below a node's checkpoint directory is a checkpoint; files at its root form the
checkpoint ``"."``. The content determines the type: an adapter config → lora, a Whisper architecture →
whisper, otherwise full (API facts, 5). A loading job gets node N's files below ``rank-N/<checkpoint>/``;
weights sharded over several nodes cannot be loaded.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from api_client.definitions.job_request import CheckpointSource, read_job_request
from api_client.emulator.backend import StoredFile
from api_client.emulator.runner.folders import CacheFolders, CannotStart, JobFolders
from api_client.emulator.store.jobs import StoredJob
from api_client.models import Checkpoint, TrainingJob
from api_client.models.checkpoints import ROOT_CHECKPOINT

SETTLED_S = 2.0
"""A running job's checkpoint counts as complete once its newest file is this old."""
FRESH_S = 1.0
"""Time after which a running job's folders are scanned again."""
MAXIMUM_CONFIG_BYTES = 1024 * 1024

_ADAPTER_CONFIG = "adapter_config.json"
_MODEL_CONFIG = "config.json"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of a checkpoint; ``name`` is its path in the checkpoint, ``modified_s`` is in epoch seconds."""

    checkpoint: str
    name: str
    rank: int
    path: Path
    size_bytes: int
    modified_s: float

    @property
    def relative_name(self) -> str:
        """Name in the API: it starts with the checkpoint's name."""
        return self.name if self.checkpoint == ROOT_CHECKPOINT else f"{self.checkpoint}/{self.name}"


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """A checkpoint and its files on all nodes."""

    name: str
    files: tuple[FoundFile, ...]

    @property
    def created_s(self) -> float:
        """Modification time of the oldest file in epoch seconds."""
        return min(file.modified_s for file in self.files)

    @property
    def modified_s(self) -> float:
        return max(file.modified_s for file in self.files)

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    def is_settled(self, now_s: float) -> bool:
        return now_s - self.modified_s >= SETTLED_S

    def describe(self, job_id: str, *, settled: bool) -> Checkpoint:
        """Return the checkpoint in the form of the API; ``settled`` means that it is completely written."""
        adapter = self._json(_ADAPTER_CONFIG)
        config = self._json(_MODEL_CONFIG) or {}
        kind = "lora" if adapter is not None else "whisper" if _is_whisper(config) else "full"
        base = (adapter or {}).get("base_model_name_or_path") or config.get("_name_or_path")
        return Checkpoint(
            checkpoint_id=self.name,
            created_at=datetime.fromtimestamp(self.created_s, UTC),
            checkpoint_type=kind,
            base_model=base if isinstance(base, str) else None,
            lora_adapter_config=adapter,
            size_bytes=self.size_bytes,
            sync_status="COMPLETE" if settled else "SYNCING",
            training_job_id=job_id,
        )

    def _json(self, name: str) -> dict[str, Any] | None:
        for file in self.files:
            if file.name == name and file.size_bytes <= MAXIMUM_CONFIG_BYTES:
                try:
                    content = json.loads(file.path.read_bytes())
                except (OSError, ValueError, RecursionError):
                    return None  # still being written, or not a JSON file
                return content if isinstance(content, dict) else None
        return None


def find_checkpoints(folders: JobFolders, node_count: int) -> list[FoundCheckpoint]:
    """Find the checkpoints on disk, oldest first."""
    files: dict[str, list[FoundFile]] = {}
    for rank in range(node_count):
        for file in _node_files(folders.node(rank).checkpoints, rank):
            files.setdefault(file.checkpoint, []).append(file)
    found = [FoundCheckpoint(name, tuple(members)) for name, members in files.items()]
    return sorted(found, key=lambda checkpoint: (checkpoint.created_s, checkpoint.name))


def stored_files(checkpoints: list[FoundCheckpoint]) -> list[StoredFile]:
    return [
        StoredFile(
            relative_name=file.relative_name,
            node_rank=file.rank,
            size_bytes=file.size_bytes,
            modified=datetime.fromtimestamp(file.modified_s, UTC).isoformat(),
            path=file.path,
        )
        for checkpoint in checkpoints
        for file in checkpoint.files
    ]


class CheckpointIndex:
    """A cache of found checkpoints, so that many readers share one disk scan. Safe from any thread."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._found: dict[str, tuple[float, list[FoundCheckpoint]]] = {}

    def of(
        self, job_id: str, folders: JobFolders, node_count: int, *, finished: bool
    ) -> list[FoundCheckpoint]:
        """Return a job's checkpoints; a finished job's folders are scanned only once."""
        with self._lock:
            now_s = self._monotonic()
            known = self._found.get(job_id)
            if known is not None and now_s < known[0]:
                return known[1]
            found = find_checkpoints(folders, node_count)
            self._found[job_id] = (float("inf") if finished else now_s + FRESH_S, found)
            return found

    def forget(self, job_id: str) -> None:
        """Drop the cached result, so that the next read scans the disk."""
        with self._lock:
            self._found.pop(job_id, None)


def _node_files(root: Path, rank: int) -> Iterator[FoundFile]:
    for parent, folders, names in os.walk(root):
        inside = Path(parent).relative_to(root)
        if not inside.parts:
            folders[:] = [name for name in folders if not name.startswith(".")]
        folders.sort()
        checkpoint = inside.parts[0] if inside.parts else ROOT_CHECKPOINT
        for name in sorted(names):
            path = Path(parent) / name
            try:
                status = path.lstat()
            except OSError:
                continue  # deleted in the meantime
            if stat.S_ISREG(status.st_mode):  # a symlink could point anywhere on this machine
                yield FoundFile(
                    checkpoint,
                    Path(*inside.parts[1:], name).as_posix(),
                    rank,
                    path,
                    status.st_size,
                    status.st_mtime,
                )


def _is_whisper(config: dict[str, Any]) -> bool:
    architectures = config.get("architectures")
    names = architectures if isinstance(architectures, list) else []
    return config.get("model_type") == "whisper" or any("whisper" in str(name).lower() for name in names)


UNKNOWN_TEAM = "unknown"
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def is_safe_id(name: str) -> bool:
    """Return True if an id is safe to use as a directory name."""
    return _SAFE_ID.fullmatch(name) is not None


class RunnerPaths:
    """The data folder of the runner. Safe from any thread."""

    def __init__(
        self,
        data_dir: Path,
        *,
        max_nodes: int,
        monotonic: Callable[[], float],
        team_of: Callable[[str], str],
    ) -> None:
        self._data_dir = data_dir.absolute()
        self.team_of = team_of
        self._max_nodes = max_nodes
        self._index = CheckpointIndex(monotonic)

    def job(self, row: StoredJob) -> JobFolders:
        return JobFolders(self._data_dir / "jobs" / row.job.id)

    def caches(self, project_id: str) -> CacheFolders | None:
        """Return the cache of a project, or None if its id is not safe as a directory name."""
        if not is_safe_id(project_id):
            return None
        team_id = self.team_of(project_id)
        shared = team_id if is_safe_id(team_id) else UNKNOWN_TEAM
        return CacheFolders(self._data_dir / "caches" / project_id, self._data_dir / "team_caches" / shared)

    @property
    def mirror(self) -> Path:
        """Folder that keeps delivered weights for later jobs."""
        return self._data_dir / "weights"

    def checkpoints(self, row: StoredJob) -> list[FoundCheckpoint]:
        """Return a job's checkpoints, oldest first; for a running job up to ``FRESH_S`` old."""
        spec = read_job_request(row.spec)
        if not spec.checkpointing or spec.node_count > self._max_nodes:
            return []
        return self._index.of(row.job.id, self.job(row), spec.node_count, finished=row.job.is_finished)

    def forget(self, job_id: str) -> None:
        self._index.forget(job_id)


BOOKKEEPING_PREFIXES = ("rng_state", "random_states", "trainer_state", "training_args")
"""Files that transformers and accelerate write on every node."""

CheckpointsOf = Callable[[TrainingJob], list[FoundCheckpoint]]


@dataclass(frozen=True, slots=True)
class LoadingProject:
    """The project of the loading job.

    A source without a selector searches this project; one with a project name searches projects of the
    same team.
    """

    id: str
    team_of: Callable[[str], str]

    def may_load_from(self, job: TrainingJob, source: CheckpointSource) -> bool:
        if source.job_id is not None and job.id != source.job_id:
            return False
        if source.project_name is not None:
            name = job.training_project.name if job.training_project else ""
            return name == source.project_name and self.team_of(job.project_id) == self.team_of(self.id)
        return source.job_id is not None or job.project_id == self.id


def choose_checkpoint(
    source: CheckpointSource,
    jobs: Sequence[TrainingJob],
    *,
    project: LoadingProject,
    checkpoints_of: CheckpointsOf,
) -> FoundCheckpoint:
    """Find the checkpoint that a source refers to; raise ``CannotStart`` if none can be loaded.

    ``jobs`` are the candidates, newest first. The latest checkpoint is the newest one of the newest job
    that has any.
    """
    for job in jobs:
        if not project.may_load_from(job, source):
            continue
        found = checkpoints_of(job)
        if source.name is not None:
            found = [checkpoint for checkpoint in found if checkpoint.name == source.name]
        if found:
            _refuse_shards(found[-1], job)
            return found[-1]
    named = [
        f"job {source.job_id}" if source.job_id else "",
        f"project {source.project_name!r}" if source.project_name else "",
    ]
    where = " and ".join(filter(None, named)) or "the job's own project"
    what = f"checkpoint {source.name!r}" if source.name else "checkpoint"
    raise CannotStart(f"no {what} of {where} on this machine to load")


def _refuse_shards(checkpoint: FoundCheckpoint, job: TrainingJob) -> None:
    ranks = {file.rank for file in checkpoint.files if not _is_bookkeeping(file.name)}
    if len(ranks) > 1:
        raise CannotStart(
            f"checkpoint {checkpoint.name!r} of job {job.id} is sharded over {len(ranks)} nodes; only "
            f"checkpoints of one node can be loaded"
        )


def _is_bookkeeping(name: str) -> bool:
    """Return True for files that trainers write on every node; only one node writes the weights."""
    return PurePosixPath(name).name.startswith(BOOKKEEPING_PREFIXES)


def copy_checkpoint(checkpoint: FoundCheckpoint, destination: Path) -> None:
    """Copy all files; raise ``CannotStart`` on a disk error."""
    try:
        for file in checkpoint.files:
            target = destination / f"rank-{file.rank}" / checkpoint.name / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file.path, target)
    except OSError as error:
        raise CannotStart(f"checkpoint {checkpoint.name!r} cannot be loaded: {error}") from error
