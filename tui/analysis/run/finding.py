"""The problems that health checks can find, and how they are presented."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from tui.text.names import clip_middle, shortened

SHORT_CHARACTERS = 60
"""Maximum length of a finding's short form."""

NODE_CHARACTERS = 18
"""Maximum length of a node name in tight places."""


class FindingKind(StrEnum):
    STALLED = "stalled"
    LOSS_NOT_FINITE = "loss-not-finite"
    LOSS_EXPLODING = "loss-exploding"
    GPU_IDLE = "gpu-idle"
    STRAGGLER = "straggler"
    NODE_MISSING = "node-missing"
    METRICS_MISSING = "metrics-missing"
    GPU_MEMORY = "gpu-memory"
    MEMORY_LEAK = "memory-leak"
    DISK_FILLING = "disk-filling"
    CACHE_FILLING = "cache-filling"
    CHECKPOINT_OVERDUE = "checkpoint-overdue"
    SLOWDOWN = "slowdown"
    RESTARTS = "restarts"
    ERRORS = "errors"
    PLATEAU = "plateau"
    OVERFITTING = "overfitting"
    GPU_UNDERUSED = "gpu-underused"
    QUEUED = "queued"


Severity = Literal["info", "warning", "critical"]
"""``info`` is a remark (a queue), by default no alert; ``critical`` means that the run is ruined or surely
wastes money."""

SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
"""Severities, worst first."""

FindingId = tuple[str, str]
"""A finding of any job: the job's id and the finding's key."""
SnoozedFindings = frozenset[FindingId]

SIGNS: Mapping[str, str] = {"critical": "✗", "warning": "▲", "info": "ℹ"}
"""The sign of each severity, on all screens and in all commands."""
TONES: Mapping[str, str] = {"critical": "bad", "warning": "caution", "info": "plain"}

LOSS_KINDS = frozenset({FindingKind.LOSS_NOT_FINITE, FindingKind.LOSS_EXPLODING})
NO_ETA_KINDS = frozenset({FindingKind.STALLED, FindingKind.LOSS_NOT_FINITE})

_KINDS_WITH_DURATION = frozenset(
    {
        FindingKind.STALLED,
        FindingKind.GPU_IDLE,
        FindingKind.NODE_MISSING,
        FindingKind.METRICS_MISSING,
        FindingKind.ERRORS,
        FindingKind.QUEUED,
    }
)


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """A problem: ``text`` is the description, ``node`` the affected node, ``since`` its start (UTC).

    ``text`` is the long form, for places with room for a sentence or two; ``short`` has at most
    ``SHORT_CHARACTERS``, for tables, single lines and notifications, and is derived from ``text`` if not
    given. Both contain text from the server and the log: sanitize them before display.
    """

    kind: FindingKind
    severity: Severity
    text: str
    node: str | None = None
    since: datetime | None = None
    short: str = ""

    def __post_init__(self) -> None:
        short = self.short or self.text
        # Shorten the name rather than the description of the problem.
        if self.node and len(short) > SHORT_CHARACTERS:
            short = short.replace(self.node, clip_middle(self.node, NODE_CHARACTERS))
        object.__setattr__(self, "short", shortened(short, SHORT_CHARACTERS))

    @property
    def has_duration_in_text(self) -> bool:
        """True if ``text`` states the duration itself, so that ``since`` need not be shown next to it."""
        return self.kind in _KINDS_WITH_DURATION

    @property
    def key(self) -> str:
        """Identifies the same problem of the same job, even if its text and numbers change."""
        return f"{self.kind}:{self.node}" if self.node else str(self.kind)
