"""A finding about a job before it is submitted: a problem, or useful information."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A ``problem`` of a config's ``field``, such as ``runtime.start_commands``, and its ``remedy``.

    An error means that the job cannot do what is requested, so it prevents the submission. What a warning
    describes may cost time, money or results, so the user has to confirm it. An info is only shown.
    ``remedy`` may be empty.
    """

    severity: Severity
    field: str
    problem: str
    remedy: str = ""


def most_severe_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort errors before warnings before infos, otherwise in the given order; drop duplicates."""
    order: tuple[Severity, ...] = ("error", "warning", "info")
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: order.index(finding.severity)))
