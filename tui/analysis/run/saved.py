"""What the losses say of the checkpoints of a run, kept with its snapshot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from api_client.models import Checkpoint
from tui.analysis.run.finding import FindingKind
from tui.text.units import duration

StepValues = Sequence[tuple[int, float]]
"""A curve as (step, value), in the order of the steps."""

SavedKey = tuple[str, datetime | None]
"""A checkpoint that is written again under its name is another one."""

# The platform's own pattern first (API facts, 5); of its two numbers one is a step and the other an epoch or
# a try, so the larger one is taken. The others are how trainers call their folders.
_PLATFORM = re.compile(r".*checkpoint-([0-9]{1,18})(?:-([0-9]{1,18}))?", re.ASCII | re.DOTALL)
_OTHERS = re.compile(
    r"(?:global_?step|step|iter(?:ation)?|checkpoint|ckpt)[-_=]?([0-9]{1,18})", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class KeptLosses:
    """The losses by step that the trainer itself kept beside its newest checkpoint; empty without any."""

    training: StepValues = ()
    evaluation: StepValues = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a checkpoint is no good: the loss had broken when it was written, at ``since`` (UTC)."""

    kind: FindingKind
    what: str
    since: datetime | None = None

    @property
    def mark(self) -> str:
        """``after NaN``: the shortest form, for tables."""
        return "after NaN" if self.kind is FindingKind.LOSS_NOT_FINITE else "diverged"

    def words(self, created_at: datetime | None) -> str:
        """``written 24m after the loss became NaN (11:50 UTC)``."""
        if self.since is None:
            return f"written after {self.what}"
        later_s = (created_at - self.since).total_seconds() if created_at is not None else 0.0
        later = f"{duration(later_s)} " if later_s >= 1 else ""
        return f"written {later}after {self.what} ({self.since:%Y-%m-%d %H:%M} UTC)"


def saved_key(checkpoint: Checkpoint) -> SavedKey:
    """What tells a checkpoint from all others of its job."""
    return checkpoint.checkpoint_id, checkpoint.created_at


def step_of(name: str) -> int | None:
    """The step in a checkpoint's name; None where it names none."""
    platform = _PLATFORM.fullmatch(name)
    if platform is not None:
        return max(int(digits) for digits in platform.groups() if digits)
    others = _OTHERS.findall(name)
    return int(others[-1]) if others else None
