"""The checkpoints of a run: their identity, their steps, their faults, and the losses saved with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from api_client.models import Checkpoint
from tui.analysis.run.finding import FindingKind
from tui.text.sanitize import MAX_SHOWN_LENGTH
from tui.text.units import duration

StepValues = Sequence[tuple[int, float]]
"""A curve as (step, value), sorted by step."""

SavedKey = tuple[str, datetime | None]
"""Name and creation time. A checkpoint that is written again under the same name is a different one."""

# How trainers name directories. ``step_of`` tries the platform's own pattern first: one of its two numbers is
# the step and the other an epoch or an attempt, so the larger one is used.
STEP_IN_NAME = re.compile(
    r"(?:global_?step|step|iter(?:ation)?|checkpoint|ckpt)[-_=]?([0-9]{1,18})", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class KeptLosses:
    """The losses by step that the trainer saved with its newest checkpoint; empty if it saved none."""

    training: StepValues = ()
    evaluation: StepValues = ()


@dataclass(frozen=True, slots=True)
class CheckpointFault:
    """The reason a checkpoint is unusable: the loss broke at ``since`` (UTC), before it was written.

    ``what`` describes how: ``the loss became NaN``.
    """

    kind: FindingKind
    what: str
    since: datetime | None = None

    @property
    def mark(self) -> str:
        """The fault in two words at most, for tables: ``after NaN``."""
        return "after NaN" if self.kind.loss == "not finite" else "diverged"

    def words(self, created_at: datetime | None) -> str:
        """Return a phrase such as ``written 24m after the loss became NaN (11:50 UTC)``."""
        if self.since is None:
            return f"written after {self.what}"
        later_s = (created_at - self.since).total_seconds() if created_at is not None else 0.0
        later = f"{duration(later_s)} " if later_s >= 1 else ""
        return f"written {later}after {self.what} ({self.since:%Y-%m-%d %H:%M} UTC)"


def saved_key(checkpoint: Checkpoint) -> SavedKey:
    return checkpoint.checkpoint_id, checkpoint.created_at


@lru_cache(maxsize=8192)
def step_of(name: str) -> int | None:
    """Return the step in a checkpoint's name; None if it has none."""
    name = name[-MAX_SHOWN_LENGTH:]
    platform = re.fullmatch(r".*checkpoint-([0-9]{1,18})(?:-([0-9]{1,18}))?", name, re.ASCII | re.DOTALL)
    if platform is not None:
        return max(int(digits) for digits in platform.groups() if digits)
    others = STEP_IN_NAME.findall(name)
    return int(others[-1]) if others else None
