"""What can be found wrong with a run, and how a finding is told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from tui.text.names import middle, shortened

SHORT_CHARACTERS = 60
"""The most of a finding's short form."""

NODE_CHARACTERS = 18
"""The most of a node's name where there is little room."""


class FindingKind(StrEnum):
    """What was found."""

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
    RESTARTS = "restarts"
    ERRORS = "errors"
    QUEUED = "queued"


Severity = Literal["info", "warning", "critical"]
"""``info`` is worth knowing and nobody's fault (a queue); ``critical`` says that money burns for nothing."""

SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
"""The worst first."""

LOSS_KINDS = frozenset({FindingKind.LOSS_NOT_FINITE, FindingKind.LOSS_EXPLODING})

_SAYING_HOW_LONG = frozenset(
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
class Finding:
    """Something wrong: ``text`` says what and why, ``node`` who is to blame, ``since`` when it began (UTC).

    ``text`` is the long form, for a place with room for a sentence or two; ``short`` says the same in at most
    ``SHORT_CHARACTERS``, for tables, one line and notifications. Both hold whatever the server and the log
    said: make them inert before showing them. ``short`` is made of ``text`` where none is given.
    """

    kind: FindingKind
    severity: Severity
    text: str
    node: str | None = None
    since: datetime | None = None
    short: str = ""

    def __post_init__(self) -> None:
        short = self.short or self.text
        if self.node and len(short) > SHORT_CHARACTERS:  # a name gives way before what is wrong with its node
            short = short.replace(self.node, middle(self.node, NODE_CHARACTERS))
        object.__setattr__(self, "short", shortened(short, SHORT_CHARACTERS))

    @property
    def says_how_long(self) -> bool:
        """Whether ``text`` itself says for how long it has been so: ``since`` need not be told beside it."""
        return self.kind in _SAYING_HOW_LONG

    @property
    def key(self) -> str:
        """The same for the same trouble of the same job, however its text and figures change."""
        return f"{self.kind}:{self.node}" if self.node else str(self.kind)
