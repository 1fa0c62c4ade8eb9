"""What to know of a job's checkpoints: step, kind, the newest, the best by the loss that the log tells."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from api_client.models import Checkpoint
from tui.insight.progress.snapshot import over_steps
from tui.insight.run.finding import FindingKind
from tui.insight.run.saved import Fault, KeptLosses, SavedKey, StepValues, saved_key, step_of
from tui.insight.run.snapshot import RunSnapshot
from tui.insight.units import count, number

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
