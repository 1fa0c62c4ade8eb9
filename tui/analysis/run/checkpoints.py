"""The checkpoints of a run: their keys, steps and faults, and the losses that the trainer saved with them."""

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
"""Name and creation time of a checkpoint; the time, because a later checkpoint may have the same name."""

# Names of checkpoints as trainers write them. ``step_of`` tries the platform's pattern first.
STEP_IN_NAME = re.compile(
    r"(?:global_?step|step|iter(?:ation)?|checkpoint|ckpt)[-_=]?([0-9]{1,18})", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class KeptLosses:
    """The losses by step that the trainer saved with its newest checkpoint; empty if there are none."""

    training: StepValues = ()
    evaluation: StepValues = ()


@dataclass(frozen=True, slots=True)
class CheckpointFault:
    """The reason why a checkpoint is unusable: its loss became NaN or diverged before it was written.

    ``event`` is the event as a text, ``the loss became NaN``, and ``since`` its time (UTC).
    """

    kind: FindingKind
    event: str
    since: datetime | None = None

    @property
    def mark(self) -> str:
        """The fault for tables: ``after NaN`` or ``diverged``."""
        return "after NaN" if self.kind.loss == "not finite" else "diverged"

    def words(self, created_at: datetime | None) -> str:
        """Return a phrase such as ``written 24m after the loss became NaN (11:50 UTC)``."""
        if self.since is None:
            return f"written after {self.event}"
        later_s = (created_at - self.since).total_seconds() if created_at is not None else 0.0
        later = f"{duration(later_s)} " if later_s >= 1 else ""
        return f"written {later}after {self.event} ({self.since:%Y-%m-%d %H:%M} UTC)"


def saved_key(checkpoint: Checkpoint) -> SavedKey:
    return checkpoint.checkpoint_id, checkpoint.created_at


@lru_cache(maxsize=8192)
def step_of(name: str) -> int | None:
    """Return the step in a checkpoint's name; None if the name has no step."""
    name = name[-MAX_SHOWN_LENGTH:]
    # one of the two numbers is the step, the other an epoch or an attempt, which is smaller
    platform_name = re.fullmatch(r".*checkpoint-([0-9]{1,18})(?:-([0-9]{1,18}))?", name, re.ASCII | re.DOTALL)
    if platform_name is not None:
        return max(int(digits) for digits in platform_name.groups() if digits)
    step_texts = STEP_IN_NAME.findall(name)
    return int(step_texts[-1]) if step_texts else None
