"""The findings of health checks: their kinds, severities, texts, and costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from tui.text.names import clip_middle, shortened
from tui.text.times import iso_time
from tui.text.units import HOUR_S

SHORT_CHARACTERS = 60
"""Maximum length of a finding's short form."""

NODE_CHARACTERS = 18
"""Maximum length of a node's name in a finding's short form."""


Lines = Literal["newest", "quiet", "onset"]
"""Which log lines explain a finding: the newest (``newest``), those since shortly before it, even if it began
long ago (``quiet``), or those around its start (``onset``)."""


@dataclass(frozen=True, slots=True)
class FindingKind:
    """A kind of problem: its name, and how its findings are displayed and explained."""

    name: str
    rank: int
    """Sort order among findings of the same severity, ascending."""
    brief: str
    """Two or three words for Home, with ``{since}`` and ``{node}``; empty if ``short`` is short enough."""
    brief_of_job: str = ""
    """``brief`` for a finding of the whole job, if that differs."""
    note: str = "! issue"
    """A sign and a word that mark the affected node."""
    states_duration: bool = False
    """True if the text of a finding contains its duration, which is then not displayed again."""
    halts: bool = False
    """True if the run makes no steps, so it has no ETA. Reported only once the whole log has been read."""
    may_never_save_again: bool = False
    """True if there may be no further checkpoint: the run makes no progress, or has stopped saving."""
    loss: Literal["", "not finite", "diverged"] = ""
    """How the loss is broken; empty if it is fine. Checkpoints written while it is broken are unusable."""
    wastes_all: bool = False
    """True if the problem wastes the whole cost of the run, unless the finding is of a single node."""
    quotes_log: bool = False
    """True if the text quotes a log line, so that cutting off its end loses the least."""
    lines: Lines = "newest"
    figures: tuple[str, ...] = ()
    """Titles of the charts that explain a finding."""

    def __str__(self) -> str:
        return self.name


Severity = Literal["info", "warning", "critical"]
"""``info`` is not a problem (such as waiting in the queue) and by default not an alert; ``critical`` means
that the run is ruined, or certainly wastes money."""

SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
"""Severities, worst first."""


def by_severity(signs: Iterable[str]) -> dict[Severity, int]:
    """Count the signs of each severity, worst first; severities without a sign are omitted."""
    counts = Counter(signs)
    return {severity: counts[SIGNS[severity]] for severity in SEVERITIES if counts[SIGNS[severity]]}


def need_attention(counts: Mapping[Severity, int]) -> str:
    return "needs attention" if sum(counts.values()) == 1 else "need attention"


def attention(counts: Mapping[Severity, int]) -> str:
    """Return ``✗ 1 ▲ 2 need attention`` for the number of jobs by severity; "" without any."""
    counts_text = " ".join(f"{SIGNS[severity]} {count}" for severity, count in counts.items())
    return counts_text and f"{counts_text} {need_attention(counts)}"


FindingId = tuple[str, str]
"""Identifies a finding across jobs: the job's id and the finding's key."""
SnoozedFindings = frozenset[FindingId]

SIGNS: Mapping[str, str] = {"critical": "✗", "warning": "▲", "info": "ℹ"}
"""The sign of each severity, on all screens and in all commands."""
TONES: Mapping[str, str] = {"critical": "bad", "warning": "caution", "info": "plain"}


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """A problem of a run, found by a health check.

    ``text`` describes it in a sentence or two; ``short``, for tables, single lines and notifications, has at
    most ``SHORT_CHARACTERS`` and is derived from ``text`` if not given. Both contain text from the server and
    the log: sanitize them before display. ``node`` is the affected node (None: the whole run), ``since`` the
    start of the problem (UTC).
    """

    kind: FindingKind
    severity: Severity
    text: str
    node: str | None = None
    since: datetime | None = None
    short: str = ""
    slowed_by: float = 0.0
    """The fraction of its speed that the run loses; 0 if unknown."""

    def __post_init__(self) -> None:
        short = self.short or self.text
        # Shorten the node's name rather than the description of the problem.
        if self.node and len(short) > SHORT_CHARACTERS:
            short = short.replace(self.node, clip_middle(self.node, NODE_CHARACTERS))
        object.__setattr__(self, "short", shortened(short, SHORT_CHARACTERS))

    @property
    def sentence(self) -> str:
        """``text``, preceded by the node's name unless ``text`` contains it."""
        return self._with_node(self.text)

    @property
    def headline(self) -> str:
        """``short``, preceded by the node's name unless ``short`` contains it."""
        return self._with_node(self.short)

    def _with_node(self, text: str) -> str:
        return f"{self.node}: {text}" if self.node and self.node not in text else text

    @property
    def wasted(self) -> float:
        """The fraction of the run's cost that is wasted while the problem lasts; 0 if unknown."""
        return 1.0 if self.kind.wastes_all and self.node is None else self.slowed_by

    @property
    def key(self) -> str:
        """The key of the problem within its job, which stays the same if the finding's text changes."""
        return f"{self.kind}:{self.node}" if self.node else str(self.kind)


def is_stuck(findings: Iterable[HealthFinding]) -> bool:
    """Return True if an ETA makes no sense: the run makes no steps, or its loss is not finite."""
    return any(finding.kind.halts or finding.kind.loss == "not finite" for finding in findings)


def costliest(findings: Iterable[HealthFinding]) -> HealthFinding | None:
    """Return the finding that wastes the largest fraction of the run's cost, ignoring ``info`` findings."""
    candidates = (finding for finding in findings if finding.severity != "info")
    return max(candidates, key=lambda finding: finding.wasted, default=None)


def lost_usd(finding: HealthFinding | None, usd_per_hour: float | None, now: datetime) -> float:
    """Estimate the US dollars that a problem has wasted since it began; 0 if unknown."""
    if finding is None or finding.since is None:
        return 0.0
    return finding.wasted * (usd_per_hour or 0.0) * max(0.0, (now - finding.since).total_seconds()) / HOUR_S


def _ruins(finding: HealthFinding) -> bool:
    """Return True if nothing that the run computes after this finding is useful."""
    wastes_all = finding.kind.wastes_all and finding.node is None
    if finding.severity == "warning":
        return wastes_all and finding.kind.may_never_save_again
    return finding.severity == "critical" and (finding.kind.halts or wastes_all)


def stop_advice(findings: Iterable[HealthFinding]) -> str:
    """Return the advice to stop a run with these findings, with the reason; empty if it may be useful."""
    ruining_findings = list(filter(_ruins, findings))
    if not ruining_findings:
        return ""
    loss_is_broken = any(finding.kind.loss for finding in ruining_findings)
    reason = "nothing since its loss broke can be used" if loss_is_broken else "what is not saved is lost"
    return f"stop it now: {reason}"


def finding_record(finding: HealthFinding) -> dict[str, Any]:
    """Return the JSON fields of a finding that all commands have in common."""
    return {
        "kind": str(finding.kind),
        "severity": finding.severity,
        "node": finding.node,
        "since": iso_time(finding.since) if finding.since else None,
    }
