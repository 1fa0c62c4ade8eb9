"""A check: everything about one kind of finding, in one object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic

from tui.analysis.health.rules import LimitsT, NoLimits, limit
from tui.analysis.health.watched import ASIDE_S, IDLE, LONGER, WORKING, Watched
from tui.analysis.run.finding import FindingKind, HealthFinding, Severity
from tui.text.units import HOUR_S, MINUTE_S

__all__ = [
    "ASIDE_S",
    "HOUR_S",
    "IDLE",
    "LONGER",
    "MINUTE_S",
    "WORKING",
    "Check",
    "Example",
    "FindingKind",
    "Findings",
    "HealthFinding",
    "NoLimits",
    "Severity",
    "Watched",
    "limit",
]

Findings = Iterator[HealthFinding]

Level = float | Callable[[float], float | None]
"""A constant, or a function of the second; None means no sample."""


@dataclass(frozen=True, slots=True)
class Example:
    """A small simulated run, and what is found at its end.

    Each node has two GPUs of 80 GiB, 64 cores and 400 GiB of memory. Its log has a step each
    ``step_s`` until ``stops_s``, its nodes a sample a minute. Levels are functions of the second, the loss
    of the step.
    """

    about: str
    finds: str = ""
    """How the short text begins; empty for a run in which this check finds nothing."""
    minutes: int = 120
    step_s: float | Callable[[float], float] = 10.0
    stops_s: float = float("inf")
    loss: Callable[[int], float] = lambda step: 2.0 + 4 / (1 + step / 100)
    line: str = "step {step}/90000 loss={loss:.5f}"
    others: Sequence[tuple[float, str]] = ()
    """Further log lines, by second."""
    gpu: Sequence[Level] = (0.95,)
    """One level per node."""
    gpu_memory_gib: Level = 60.0
    memory_gib: Level = 120.0
    cpu: Level = 12.0
    disk: Level = 0.25
    cache: Level | None = None
    saved_s: Sequence[float] | None = None
    restarts_s: Sequence[float] = ()
    waits: bool = False
    limits: tuple[tuple[str, float], ...] = ()
    """Thresholds that differ from their defaults."""


@dataclass(frozen=True, slots=True)
class Check(Generic[LimitsT]):
    """A kind of finding: how it is detected, documented and shown. Each is in a module of ``checks``."""

    kind: FindingKind
    title: str
    severity: str
    limits: type[LimitsT]
    find: Callable[[Watched, LimitsT], Iterable[HealthFinding]]
    needs: str
    excused: str = ""
    ends: str = ""
    costs: str = ""
    covered_by: frozenset[str] = frozenset()
    """Kinds that explain this one: a finding of one, of the same node or the whole job, leaves it out."""
    of_waiting: bool = False
    """True if it is about jobs that wait, rather than those that run."""
    examples: tuple[Example, ...] = ()

    def findings(self, run: Watched) -> list[HealthFinding]:
        """Return what is wrong, except what is disabled or explained by findings so far."""
        if str(self.kind) in run.rules.off:
            return []
        run.kind = self.kind
        return self.unexplained(self.find(run, run.rules.limits(self.limits)), run.found)

    def unexplained(
        self, candidates: Iterable[HealthFinding], found: Iterable[HealthFinding]
    ) -> list[HealthFinding]:
        """Return which findings of this check those that were found do not explain."""
        causes = {finding.node for finding in found if str(finding.kind) in self.covered_by}
        if None in causes:
            return []
        return [candidate for candidate in candidates if candidate.node not in causes]
