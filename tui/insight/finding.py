"""What can be found wrong with a run, and how a finding is told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal


class FindingKind(StrEnum):
    """What was found."""

    STALLED = "stalled"
    LOSS_NOT_FINITE = "loss-not-finite"
    LOSS_EXPLODING = "loss-exploding"
    GPU_IDLE = "gpu-idle"
    STRAGGLER = "straggler"
    NODE_MISSING = "node-missing"
    GPU_MEMORY = "gpu-memory"
    MEMORY_LEAK = "memory-leak"
    DISK_FILLING = "disk-filling"
    CACHE_FILLING = "cache-filling"
    CHECKPOINT_OVERDUE = "checkpoint-overdue"
    RESTARTS = "restarts"
    ERRORS = "errors"
    QUEUED = "queued"


Severity = Literal["info", "warning", "critical"]
"""``info`` is worth knowing and nobody's fault (a queue); ``critical`` says that money burns for nothing."""

SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
"""The worst first."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong: ``text`` says what and why, ``node`` who is to blame, ``since`` when it began (UTC).

    ``text`` holds whatever the server and the log said: make it inert before showing it.
    """

    kind: FindingKind
    severity: Severity
    text: str
    node: str | None = None
    since: datetime | None = None

    @property
    def key(self) -> str:
        """The same for the same trouble of the same job, however its text and figures change."""
        return f"{self.kind}:{self.node}" if self.node else str(self.kind)
