"""Facts about a job's checkpoints: step, type, logged losses, faults, and which are the newest and the best.

Also the entries of checkpoint and cache files for ``FileTree``, and ``resume_snippet``, the Python source of
a config that resumes from a checkpoint.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from types import MappingProxyType
from typing import Literal

from api_client.models import CachedFile, Checkpoint, CheckpointFile
from api_client.models.base import moment_of_text
from api_client.models.cache import ListedPath
from api_client.models.checkpoints import name_inside
from api_client.words import listed
from tui.analysis.file_tree.tree import FileEntry
from tui.analysis.progress.holes import StepRange, is_read_between, unread_steps
from tui.analysis.progress.metrics import headline_series
from tui.analysis.progress.snapshot import ProgressSnapshot, over_steps
from tui.analysis.run.checkpoints import (
    STEP_IN_NAME,
    CheckpointFault,
    KeptLosses,
    SavedKey,
    StepValues,
    saved_key,
    step_of,
)
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.series import Series
from tui.text.names import clip_middle
from tui.text.sanitize import cell_width
from tui.text.times import time_key
from tui.text.units import number

NO_KEPT_LOSSES = KeptLosses()
NO_FAULTS: Mapping[SavedKey, CheckpointFault | None] = MappingProxyType({})

SyncState = Literal["uploading", "stored", "unknown"]

_SYNC_STATES: dict[str, SyncState] = {"SYNCING": "uploading", "COMPLETE": "stored", "COMPLETED": "stored"}


def lora_rank(checkpoint: Checkpoint) -> int | None:
    """Return the rank of a LoRA adapter from its configuration; None if missing or invalid."""
    rank = (checkpoint.lora_adapter_config or {}).get("r")
    is_rank = isinstance(rank, int) and not isinstance(rank, bool) and 0 < rank < 10**9
    return rank if is_rank else None


def kind_label(checkpoint: Checkpoint) -> str:
    """Return ``full``, ``LoRA r=16``, ``whisper``, the server's own type (not sanitized), or ``other``."""
    kind = (checkpoint.checkpoint_type or "").strip()
    if kind.lower() == "lora":
        rank = lora_rank(checkpoint)
        return f"LoRA r={rank}" if rank is not None else "LoRA"
    return {"full": "full", "whisper": "whisper"}.get(kind.lower(), kind or "other")


def sync_state(checkpoint: Checkpoint) -> SyncState:
    """Return the state of the upload. The API has two names for ``stored``."""
    return _SYNC_STATES.get((checkpoint.sync_status or "").upper(), "unknown")


@dataclass(frozen=True, slots=True)
class Score:
    """A logged value by which checkpoints are compared, such as ``eval loss``, and its step."""

    name: str
    value: float
    at_step: int

    @property
    def words(self) -> str:
        return f"{self.name} {number(self.value)} at step {self.at_step:,}"


@dataclass(frozen=True, slots=True)
class CheckpointFacts:
    """A checkpoint and the facts known about it."""

    checkpoint: Checkpoint
    step: int | None
    kind: str
    sync: SyncState
    loss: Score | None = None
    """The training loss; None if no loss is known for the checkpoint."""
    evaluation: Score | None = None
    """The evaluation loss."""
    reward: Score | None = None
    """The reward of reinforcement learning."""
    score: Score | None = None
    """The loss that ranks checkpoints: ``evaluation`` or ``loss``."""
    is_newest: bool = False
    is_best: bool = False
    fault: CheckpointFault | None = None
    is_checked: bool = False
    """True once it is known whether the checkpoint has a ``fault``."""

    @property
    def name(self) -> str:
        """The name that the server lists, not sanitized."""
        return self.checkpoint.checkpoint_id

    @property
    def marks(self) -> str:
        """Text such as ``newest, best: loss 0.812 at step 400``; empty for most checkpoints."""
        best_text = f"best: {self.score.words}" if self.is_best and self.score else ""
        fault_text = self.fault.words(self.checkpoint.created_at) if self.fault else ""
        return ", ".join(mark for mark in ("newest" if self.is_newest else "", best_text, fault_text) if mark)


def facts_of_run(run: RunSnapshot) -> list[CheckpointFacts]:
    """Return facts about a run's checkpoints; all screens and commands use these.

    Evaluation losses take precedence over training losses, and the trainer's record (``trainer_state.json``)
    over the log. The best checkpoint is marked only once the whole log and the record have been read.
    """
    progress, losses = run.progress, run.kept_losses or NO_KEPT_LOSSES
    evaluation: StepValues = ()
    reward: StepValues = ()
    if progress is not None:
        evaluation = _by_step(progress.eval_loss_series, progress, whole=run.log_read)
        name, headline_curve = headline_series(progress)
        reward = _by_step(headline_curve, progress, whole=run.log_read) if name == "reward" else ()
    sources_are_read = run.log_read and run.kept_losses is not None
    return checkpoint_facts(
        run.checkpoints or (),
        loss_by_step=progress.loss_by_step if progress is not None else (),
        eval_loss_by_step=evaluation,
        reward_by_step=reward,
        unread=unread_steps(progress, whole=run.log_read) if progress is not None else (),
        kept=losses,
        faults=run.faults if sources_are_read else None,
        is_ranked=(progress is None or progress.has_ranking_loss)
        and all(value >= 0 for _, value in losses.training if math.isfinite(value)),
    )


def _by_step(series: Series, progress: ProgressSnapshot, *, whole: bool) -> StepValues:
    by_step = over_steps(series, progress, whole=whole)
    return [(round(step), value) for step, value in zip(by_step.times, by_step.values, strict=True)]


def newest_of(checkpoints: Iterable[Checkpoint]) -> Checkpoint | None:
    """Return the newest checkpoint; of several with the same time and step, the last in ``checkpoints``."""
    return max(reversed([*checkpoints]), key=_time_and_step, default=None)


def newest_sound(facts: Iterable[CheckpointFacts]) -> CheckpointFacts | None:
    """Return the newest checkpoint that has no known fault and is not being uploaded."""
    sound = (
        checkpoint for checkpoint in facts if checkpoint.fault is None and checkpoint.sync != "uploading"
    )
    return max(sound, key=lambda checkpoint: _time_and_step(checkpoint.checkpoint), default=None)


def fault_lines(facts: Iterable[CheckpointFacts]) -> list[str]:
    """Return a line for each kind of fault, with the first few checkpoints that have it (not sanitized)."""
    names_by_fault: dict[str, list[str]] = {}
    for checkpoint in facts:
        if checkpoint.fault is not None:
            names_by_fault.setdefault(checkpoint.fault.words(None), []).append(checkpoint.name)
    return [
        f"{description}: {listed(checkpoint_names, 6)}"
        for description, checkpoint_names in names_by_fault.items()
    ]


def checkpoint_facts(
    checkpoints: Sequence[Checkpoint],
    *,
    loss_by_step: StepValues = (),
    eval_loss_by_step: StepValues = (),
    reward_by_step: StepValues = (),
    unread: Sequence[StepRange] = (),
    kept: KeptLosses = NO_KEPT_LOSSES,
    faults: Mapping[SavedKey, CheckpointFault | None] | None = NO_FAULTS,
    is_ranked: bool = True,
) -> list[CheckpointFacts]:
    """Return facts about each checkpoint in the given order, with the newest and the best marked.

    The best checkpoint has the lowest evaluation loss if at least two checkpoints have one, otherwise the
    lowest training loss. A checkpoint's loss is the last loss logged up to its step, but after the previous
    checkpoint; it is known only if no step in between is ``unread``, or if the trainer saved it (``kept``).
    A checkpoint that has a fault, is still being uploaded, or is the only candidate is never the best. No
    checkpoint is marked as best if ``faults`` is None (not checked yet), while the loss of a candidate is
    unknown, or if ``is_ranked`` is False, as in reinforcement learning, whose loss does not rank checkpoints.
    """
    steps = [step_of(checkpoint.checkpoint_id) for checkpoint in checkpoints]
    evaluations = kept.evaluation or eval_loss_by_step
    evaluation_scores, unknown_indexes = _scores(
        "eval loss", steps, evaluations, () if kept.evaluation else unread
    )
    compares_evaluations = sum(score is not None for score in evaluation_scores) > 1
    training_scores, unknown_training_indexes = _scores("loss", steps, loss_by_step, unread)
    rewards, _ = _scores("reward", steps, reward_by_step, unread)
    saved_scores, _ = _scores("loss", steps, kept.training, ())
    for index in unknown_training_indexes if loss_by_step else range(len(steps)):
        training_scores[index] = saved_scores[index]
    scores = evaluation_scores if compares_evaluations else training_scores
    if not evaluations:
        unknown_indexes = {index for index in unknown_training_indexes if training_scores[index] is None}
    newest = newest_of(checkpoints)
    fault_by_index = [(faults or NO_FAULTS).get(saved_key(checkpoint)) for checkpoint in checkpoints]
    for index, fault in enumerate(fault_by_index):
        if fault is not None and fault.kind.loss == "not finite":
            training_scores[index] = evaluation_scores[index] = None
    sync_states = [sync_state(checkpoint) for checkpoint in checkpoints]
    eligible = [
        fault is None and sync != "uploading" for fault, sync in zip(fault_by_index, sync_states, strict=True)
    ]
    noise = 0.0 if compares_evaluations else _noise([value for _, value in loss_by_step])
    best_index = (
        _best_index(
            scores, eligible, fault_count=sum(fault is not None for fault in fault_by_index), noise=noise
        )
        if faults is not None and is_ranked and not any(eligible[index] for index in unknown_indexes)
        else None
    )
    return [
        CheckpointFacts(
            checkpoint=checkpoint,
            step=steps[index],
            kind=kind_label(checkpoint),
            sync=sync_states[index],
            loss=training_scores[index],
            evaluation=evaluation_scores[index],
            reward=rewards[index],
            score=scores[index],
            is_newest=checkpoint is newest,
            is_best=index == best_index,
            fault=fault_by_index[index],
            is_checked=faults is not None and saved_key(checkpoint) in faults,
        )
        for index, checkpoint in enumerate(checkpoints)
    ]


def _scores(
    name: str, steps: Sequence[int | None], values: StepValues, unread: Sequence[StepRange]
) -> tuple[list[Score | None], set[int]]:
    """Return the score of each checkpoint, and the indexes of checkpoints whose score may not be read yet."""
    sorted_steps = sorted({step for step in steps if step is not None})
    previous_step = dict(zip(sorted_steps, [-1, *sorted_steps], strict=False))
    sorted_points = sorted((point for point in values if math.isfinite(point[1])), key=lambda point: point[0])
    logged_steps = [point[0] for point in sorted_points]
    scores: list[Score | None] = []
    unknown_indexes: set[int] = set()
    for index, step in enumerate(steps):
        score = None
        if step is not None:
            point_index = bisect_right(logged_steps, step) - 1
            has_score = point_index >= 0 and logged_steps[point_index] > previous_step[step]
            if not is_read_between(
                logged_steps[point_index] if has_score else previous_step[step], step, unread
            ):
                unknown_indexes.add(index)
            elif has_score:
                score = Score(name, sorted_points[point_index][1], logged_steps[point_index])
        scores.append(score)
    return scores, unknown_indexes


def _noise(values: Sequence[float]) -> float:
    """Estimate the standard deviation of a loss at a step; 0 for fewer than 20 values (perhaps averages)."""
    finite_values = [value for value in values if math.isfinite(value)]
    if len(finite_values) < 20:
        return 0.0
    return math.sqrt(
        sum((later - earlier) ** 2 for earlier, later in pairwise(finite_values)) / len(finite_values) / 2
    )


def _best_index(
    scores: Sequence[Score | None], eligible: Sequence[bool], *, fault_count: int, noise: float
) -> int | None:
    """Return the index of the lowest score; of equal scores, the index of the highest step.

    At least two candidates are needed, including the ``fault_count`` faulty checkpoints. Return None if the
    difference between the lowest score and that of the last step may be due to ``noise``.
    """
    candidates = [
        (score.value, -score.at_step, index) for index, score in enumerate(scores) if score is not None
    ]
    eligible_candidates = [candidate for candidate in candidates if eligible[candidate[2]]]
    if not eligible_candidates or max(len(candidates), len(eligible_candidates) + fault_count) < 2:
        return None
    best, latest = min(eligible_candidates), max(eligible_candidates, key=lambda candidate: -candidate[1])
    return best[2] if best is latest or latest[0] - best[0] > 4 * noise else None


def _time_and_step(checkpoint: Checkpoint) -> tuple[float, int]:
    """Return a sort key: by time, then by step."""
    step = step_of(checkpoint.checkpoint_id)
    return (time_key(checkpoint.created_at), -1 if step is None else step)


CheckpointLocation = Literal["stored", "uploading", "log"]


@dataclass(frozen=True, slots=True)
class LastCheckpoint:
    """The name (not sanitized) and time (UTC; None if unknown) of a run's last checkpoint.

    ``where`` is ``log`` if only the log mentions the checkpoint: it may have been written outside of
    ``$BT_CHECKPOINT_DIR``, so it cannot be downloaded or deployed.
    """

    name: str
    at: datetime | None
    where: CheckpointLocation

    @property
    def remark(self) -> str:
        """A note if the checkpoint is being uploaded, or is only in the log; empty otherwise."""
        return {"log": "log only, not uploaded", "uploading": "uploading"}.get(self.where, "")


def last_checkpoint(run: RunSnapshot) -> LastCheckpoint | None:
    """Return the newest checkpoint that the API lists, else the newest that the log mentions, else None."""
    if (newest := newest_of(run.checkpoints or ())) is not None:
        location: CheckpointLocation = "uploading" if sync_state(newest) == "uploading" else "stored"
        return LastCheckpoint(newest.checkpoint_id, newest.created_at, location)
    if run.progress is None or run.progress.last_checkpoint is None:
        return None
    name, saved_s = run.progress.last_checkpoint
    return LastCheckpoint(name, datetime.fromtimestamp(saved_s, UTC), "log")


def name_within(name: str, cells: int) -> str:
    """Shorten a checkpoint's sanitized name to ``cells`` terminal cells; if possible to ``…step-400…``."""
    if cell_width(name) <= cells:
        return name
    steps_only = [f"…{match[0]}…" for match in STEP_IN_NAME.finditer(name)]
    return next(
        (short_name for short_name in reversed(steps_only) if cell_width(short_name) <= cells),
        clip_middle(name, cells),
    )


def epoch_s(text: str) -> float | None:
    """Parse a server's timestamp to epoch seconds; UTC if it has no time zone, None if invalid."""
    moment = moment_of_text(text)
    return None if moment is None else moment.timestamp()


def cache_entries(files: Iterable[CachedFile] | Iterable[ListedPath]) -> list[FileEntry]:
    return [
        FileEntry(file.path, file.size_bytes or 0, epoch_s(file.modified), file.file_type, file.permissions)
        for file in files
    ]


def checkpoint_entries(
    files: Iterable[CheckpointFile], checkpoint_id: str, *, by_rank: bool
) -> list[FileEntry]:
    """Return the entries of a checkpoint's files, with paths relative to the checkpoint.

    If ``by_rank``, the files of each node are in a directory such as ``rank-0``, as in the platform's
    storage.
    """
    return [
        FileEntry(
            (f"rank-{file.node_rank}/" if by_rank else "")
            + name_inside(file.relative_file_name, checkpoint_id),
            file.size_bytes or 0,
            epoch_s(file.last_modified),
        )
        for file in files
    ]


def resume_snippet(job_id: str, checkpoint_name: str) -> str:
    """Return Python source for a config.py that uses the official SDK; names are quoted as literals."""
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
    return f'"{text}"' if re.fullmatch(r"[A-Za-z0-9 ._=/+@:,-]*", text, re.ASCII) else ascii(text)
