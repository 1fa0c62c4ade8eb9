"""A health check: the thresholds, detection, documentation and examples of one kind of finding."""

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
"""A constant, or a function of the time in seconds since the start; None means that there is no sample."""


@dataclass(frozen=True, slots=True)
class Example:
    """A small simulated run, and the finding that the check must report at its end.

    Each node has two GPUs of 80 GiB, 64 cores and 400 GiB of memory, and sends one sample a minute. The log
    has one line every ``step_s`` seconds until ``stops_s``. Times are in seconds since the start.
    """

    about: str
    finds: str = ""
    """The beginning of the finding's short text; empty if the check must find nothing in this run."""
    minutes: int = 120
    step_s: float | Callable[[float], float] = 10.0
    stops_s: float = float("inf")
    loss: Callable[[int], float] = lambda step: 2.0 + 4 / (1 + step / 100)
    line: str = "step {step}/90000 loss={loss:.5f}"
    others: Sequence[tuple[float, str]] = ()
    """Further log lines, each with its time."""
    gpu: Sequence[Level] = (0.95,)
    """The utilization of the GPUs, one level per node."""
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
    """A kind of finding: how it is detected, documented and displayed. Checks are defined in ``checks``."""

    kind: FindingKind
    title: str
    severity: str
    """Documentation: the severities that a finding may have, and when."""
    limits: type[LimitsT]
    """The class of the check's thresholds."""
    find: Callable[[Watched, LimitsT], Iterable[HealthFinding]]
    needs: str
    """Documentation: the condition that is reported, and the data that shows it."""
    excused: str = ""
    """Documentation: what resembles a problem, but is not reported, or only as ``info``."""
    ends: str = ""
    """Documentation: when the finding is cleared; empty if that is clear from ``needs``."""
    costs: str = ""
    """Documentation: what the problem wastes while it lasts."""
    covered_by: frozenset[str] = frozenset()
    """Kinds that explain this kind: a finding is dropped if one of these kinds was found for the same node,
    or for the whole job."""
    of_waiting: bool = False
    """True if the check is for jobs that wait in the queue; other checks are for running jobs."""
    examples: tuple[Example, ...] = ()

    def findings(self, run: Watched) -> list[HealthFinding]:
        """Return the findings that ``run.found`` does not explain; none if this check is disabled."""
        if str(self.kind) in run.rules.off:
            return []
        run.kind = self.kind
        return self.unexplained(self.find(run, run.rules.limits(self.limits)), run.found)

    def unexplained(
        self, candidates: Iterable[HealthFinding], found: Iterable[HealthFinding]
    ) -> list[HealthFinding]:
        """Return the candidates, findings of this check, that no finding in ``found`` explains."""
        causes = {finding.node for finding in found if str(finding.kind) in self.covered_by}
        if None in causes:
            return []
        return [candidate for candidate in candidates if candidate.node not in causes]
