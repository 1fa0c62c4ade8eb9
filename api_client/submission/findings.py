"""A finding: a problem, or a fact to know, before a job is submitted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A ``problem`` with a ``field`` of the config, such as ``runtime.start_commands``, and its ``remedy``.

    An error means that the job cannot do what is requested, so it prevents the submission. A warning may cost
    time, money or results, so it asks for confirmation. An info is only shown. ``remedy`` may be empty.
    """

    severity: Severity
    field: str
    problem: str
    remedy: str = ""


def most_severe_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort errors before warnings before infos, otherwise in the given order; drop duplicates."""
    order: tuple[Severity, ...] = ("error", "warning", "info")
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: order.index(finding.severity)))
