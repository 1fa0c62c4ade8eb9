"""One thing worth knowing before a job is submitted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]

_ORDER: dict[Severity, int] = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """``problem`` at ``field`` (as in the config, ``runtime.start_commands``), and what helps: ``remedy``.

    An error keeps the job from ever doing what is asked, so it stops a submission; a warning may cost
    time, money or results, so it asks; an info is worth a line. ``remedy`` may be empty.
    """

    severity: Severity
    field: str
    problem: str
    remedy: str = ""


def gravest_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors, then warnings, then infos; each in the order given, none twice."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: _ORDER[finding.severity]))
