"""A finding: something to know before a job is submitted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Finding:
    """``problem`` at ``field`` (as in the config, ``runtime.start_commands``), and the fix: ``remedy``.

    An error means that the job cannot do what is requested, so it stops a submission. A warning may cost
    time, money or results, so it asks for confirmation. An info is only shown. ``remedy`` may be empty.
    """

    severity: Severity
    field: str
    problem: str
    remedy: str = ""


def most_severe_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort errors, then warnings, then infos, each in the given order, without duplicates."""
    order: tuple[Severity, ...] = ("error", "warning", "info")
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: order.index(finding.severity)))
