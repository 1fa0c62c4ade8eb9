"""What to know of a job's checkpoints: step, kind, the newest, the best by the loss that the log tells."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal

from api_client.models import CachedFile, Checkpoint, CheckpointFile
from api_client.models.checkpoints import name_inside
from tui.analysis.file_tree import FileEntry
from tui.analysis.progress.snapshot import NANOSECONDS, over_steps
from tui.analysis.run.finding import FindingKind
from tui.analysis.run.saved import Fault, KeptLosses, SavedKey, StepValues, saved_key, step_of
from tui.analysis.run.snapshot import RunSnapshot
from tui.text.names import middle
from tui.text.sanitize import cell_width
from tui.text.units import count, number

__all__ = ["CheckpointFacts", "Score", "checkpoint_facts", "facts_of_run", "step_of", "sync_state"]

NAMED_AT_MOST = 6
NO_FAULTS: Mapping[SavedKey, Fault | None] = MappingProxyType({})

SyncState = Literal["uploading", "stored", "unknown"]

ROOT_CHECKPOINT = "."
"""The checkpoint that is the checkpoint folder itself (API facts, 2.1)."""

_SYNC: dict[str, SyncState] = {"SYNCING": "uploading", "COMPLETE": "stored", "COMPLETED": "stored"}
_KINDS = {"full": "full", "whisper": "whisper"}
_MOST_RANK_DIGITS = 9


def lora_rank(checkpoint: Checkpoint) -> int | None:
    """The rank of an adapter, as its own configuration tells it."""
    rank = (checkpoint.lora_adapter_config or {}).get("r")
    is_rank = isinstance(rank, int) and not isinstance(rank, bool) and 0 < rank < 10**_MOST_RANK_DIGITS
    return rank if is_rank else None


def kind_words(checkpoint: Checkpoint) -> str:
    """``full``, ``LoRA r=16``, ``whisper``; another type's own word (not inert), ``other`` without one."""
    kind = (checkpoint.checkpoint_type or "").strip()
    if kind.lower() == "lora":
        rank = lora_rank(checkpoint)
        return f"LoRA r={rank}" if rank is not None else "LoRA"
    return _KINDS.get(kind.lower(), kind or "other")


def sync_state(checkpoint: Checkpoint) -> SyncState:
    """Whether it is still being uploaded. The job's spelling counts too (API facts, 1)."""
    return _SYNC.get((checkpoint.sync_status or "").upper(), "unknown")


@dataclass(frozen=True, slots=True)
class Score:
    """How good a checkpoint is by the log: ``name`` of the value, the value, the step it was told at."""

    name: str
    value: float
    at_step: int

    @property
    def words(self) -> str:
        """``eval loss 0.812 at step 400``."""
        return f"{self.name} {number(self.value)} at step {self.at_step:,}"


@dataclass(frozen=True, slots=True)
class CheckpointFacts:
    """A checkpoint and what is known of it. ``score`` is None where the log tells nothing of its step.

    ``is_judged`` says that it is known whether it has a ``fault``.
    """

    checkpoint: Checkpoint
    step: int | None
    kind: str
    sync: SyncState
    score: Score | None = None
    is_newest: bool = False
    is_best: bool = False
    fault: Fault | None = None
    is_judged: bool = False

    @property
    def name(self) -> str:
        """The checkpoint's own name, not inert."""
        return self.checkpoint.checkpoint_id

    @property
    def marks(self) -> str:
        """``newest, best: loss 0.812 at step 400``, in words; empty for most."""
        best = f"best: {self.score.words}" if self.is_best and self.score else ""
        fault = self.fault.words(self.checkpoint.created_at) if self.fault else ""
        return ", ".join(word for word in ("newest" if self.is_newest else "", best, fault) if word)


def facts_of_run(run: RunSnapshot) -> list[CheckpointFacts]:
    """The facts of a run's checkpoints: what screens, commands and the wizard say of them.

    The losses are those of evaluations before those of training, and what the trainer itself kept (its
    ``trainer_state.json``) before what its log tells. The best is named once all of both is known.
    """
    told, kept = run.progress, run.kept_losses or KeptLosses()
    training: StepValues = told.loss_by_step if told is not None else ()
    evaluation: StepValues = ()
    if told is not None and len(told.eval_loss_series):
        over = over_steps(told.eval_loss_series, told)
        evaluation = [(round(step), value) for step, value in zip(over.times, over.values, strict=True)]
    is_known = run.log_read and run.kept_losses is not None
    return checkpoint_facts(
        run.checkpoints or (),
        loss_by_step=training or kept.training,
        eval_loss_by_step=kept.evaluation or evaluation,
        faults=run.faults if is_known else None,
    )


def fault_lines(facts: Iterable[CheckpointFacts]) -> list[str]:
    """Each fault with the checkpoints that have it, the first few of many by name (not inert)."""
    names: dict[str, list[str]] = {}
    for one in facts:
        if one.fault is not None:
            names.setdefault(one.fault.words(None), []).append(one.name)
    return [
        f"{words}: {', '.join(those[:NAMED_AT_MOST])}"
        + (f" and {count(len(those) - NAMED_AT_MOST)} more" if len(those) > NAMED_AT_MOST else "")
        for words, those in names.items()
    ]


def checkpoint_facts(
    checkpoints: Sequence[Checkpoint],
    *,
    loss_by_step: StepValues = (),
    eval_loss_by_step: StepValues = (),
    faults: Mapping[SavedKey, Fault | None] | None = NO_FAULTS,
) -> list[CheckpointFacts]:
    """The facts of each, in the order given, the newest and the best marked.

    Best is the lowest loss of an evaluation if the log tells any for two checkpoints or more, else the lowest
    loss of training; it takes two to have a best one. A loss counts for a checkpoint if it was told at its
    step or before, but after the checkpoint before it. One that has a fault or is still uploaded is never the
    best; without ``faults`` none is.
    """
    steps = [step_of(checkpoint.checkpoint_id) for checkpoint in checkpoints]
    by_evaluation = _scores("eval loss", steps, eval_loss_by_step)
    scores = by_evaluation if _told(by_evaluation) > 1 else _scores("loss", steps, loss_by_step)
    newest = _newest(checkpoints, steps)
    found = [(faults or NO_FAULTS).get(saved_key(checkpoint)) for checkpoint in checkpoints]
    syncs = [sync_state(checkpoint) for checkpoint in checkpoints]
    eligible = [fault is None and sync != "uploading" for fault, sync in zip(found, syncs, strict=True)]
    best = (
        None if faults is None else _best(scores, eligible, rivals=sum(fault is not None for fault in found))
    )
    return [
        CheckpointFacts(
            checkpoint=checkpoint,
            step=steps[place],
            kind=kind_words(checkpoint),
            sync=syncs[place],
            score=None if _is_not_finite(found[place]) else scores[place],
            is_newest=place == newest,
            is_best=place == best,
            fault=found[place],
            is_judged=faults is not None and saved_key(checkpoint) in faults,
        )
        for place, checkpoint in enumerate(checkpoints)
    ]


def _is_not_finite(fault: Fault | None) -> bool:
    return fault is not None and fault.kind is FindingKind.LOSS_NOT_FINITE


def _scores(name: str, steps: Sequence[int | None], values: StepValues) -> list[Score | None]:
    known = sorted({step for step in steps if step is not None})
    before = dict(zip(known, [-1, *known], strict=False))
    ordered = sorted((point for point in values if math.isfinite(point[1])), key=lambda point: point[0])
    at = [point[0] for point in ordered]
    scores: list[Score | None] = []
    for step in steps:
        place = bisect_right(at, step) - 1 if step is not None else -1
        fits = step is not None and place >= 0 and at[place] > before[step]
        scores.append(Score(name, ordered[place][1], at[place]) if fits else None)
    return scores


def _told(scores: Sequence[Score | None]) -> int:
    return sum(score is not None for score in scores)


def _best(scores: Sequence[Score | None], eligible: Sequence[bool], *, rivals: int) -> int | None:
    """The place of the lowest score, of equals the one furthest on; ``rivals`` are known to be no good."""
    told = [(score.value, -score.at_step, place) for place, score in enumerate(scores) if score is not None]
    good = [one for one in told if eligible[one[2]]]
    return min(good)[2] if good and max(len(told), len(good) + rivals) > 1 else None


def _newest(checkpoints: Sequence[Checkpoint], steps: Sequence[int | None]) -> int | None:
    """The place of the one made last: by time, then by step, then by its place."""
    if not checkpoints:
        return None

    def age(place: int) -> tuple[float, int, int]:
        created, step = checkpoints[place].created_at, steps[place]
        return (created.timestamp() if created else -math.inf, -1 if step is None else step, place)

    return max(range(len(checkpoints)), key=age)


_COUNTED = re.compile(r"(?:global_?step|step|iter(?:ation)?|checkpoint|ckpt)[-_=]?\d{1,12}", re.IGNORECASE)
_OLDEST = datetime.min.replace(tzinfo=UTC)

Whereabouts = Literal["stored", "uploading", "log"]


@dataclass(frozen=True, slots=True)
class LastCheckpoint:
    """A checkpoint by name (not inert) and time (UTC; None where it is not told).

    ``where`` is ``log`` where only the log tells of it: it may never have been written below
    ``$BT_CHECKPOINT_DIR``, and cannot be downloaded or deployed.
    """

    name: str
    at: datetime | None
    where: Whereabouts

    @property
    def remark(self) -> str:
        """How it is not simply there: empty for one that is stored, or of which that is not known."""
        return {"log": "by its log only", "uploading": "uploading"}.get(self.where, "")


def last_checkpoint(run: RunSnapshot) -> LastCheckpoint | None:
    """The newest that the API lists, else the newest that the log tells; None where neither tells of one."""
    if run.checkpoints:
        newest = max(run.checkpoints, key=lambda one: one.created_at or _OLDEST)
        where: Whereabouts = "uploading" if sync_state(newest) == "uploading" else "stored"
        return LastCheckpoint(newest.checkpoint_id, newest.created_at, where)
    if run.progress is None or run.progress.last_checkpoint is None:
        return None
    name, stamp_ns = run.progress.last_checkpoint
    return LastCheckpoint(name, datetime.fromtimestamp(stamp_ns / NANOSECONDS, UTC), "log")


def name_within(name: str, cells: int) -> str:
    """A checkpoint's inert name in at most so many cells: the step in it is kept, whatever else is cut."""
    if cell_width(name) <= cells:
        return name
    counted = [f"…{match[0]}…" for match in _COUNTED.finditer(name)]
    return next((one for one in reversed(counted) if cell_width(one) <= cells), middle(name, cells))


def epoch_s(text: str) -> float | None:
    """Epoch seconds of a server's time in text; UTC where it names no zone, None where it is no time."""
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def cache_entries(files: Iterable[CachedFile]) -> list[FileEntry]:
    """The files and directories of a cache."""
    return [
        FileEntry(file.path, file.size_bytes or 0, epoch_s(file.modified), file.file_type, file.permissions)
        for file in files
    ]


def rank_folder(node_rank: int) -> str:
    """What the directory of a node's files is called, as on the platform's own storage."""
    return f"rank-{node_rank}"


def checkpoint_entries(
    files: Iterable[CheckpointFile], checkpoint_id: str, *, by_rank: bool
) -> list[FileEntry]:
    """The files of a checkpoint by their names in it; below a directory for each node where several wrote."""
    return [
        FileEntry(
            (f"{rank_folder(file.node_rank)}/" if by_rank else "")
            + name_inside(file.relative_file_name, checkpoint_id),
            file.size_bytes or 0,
            epoch_s(file.last_modified),
        )
        for file in files
    ]


_PLAIN = re.compile(r"[A-Za-z0-9 ._=/+@:,-]*", re.ASCII)


def resume_snippet(job_id: str, checkpoint_name: str) -> str:
    """Python for a config.py, with the official SDK's names; names of any kind end as harmless literals."""
    return f"""\
from truss_train import BasetenCheckpoint, LoadCheckpointConfig

# for Runtime(load_checkpoint_config=load_checkpoint_config); the job finds it in $BT_LOAD_CHECKPOINT_DIR
load_checkpoint_config = LoadCheckpointConfig(
    enabled=True,
    checkpoints=[
        BasetenCheckpoint.from_named_checkpoint(
            checkpoint_name={_literal(checkpoint_name)},
            job_id={_literal(job_id)},
        ),
    ],
)
"""


def _literal(text: str) -> str:
    return f'"{text}"' if _PLAIN.fullmatch(text) else ascii(text)
