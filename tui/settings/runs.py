"""The settings for judging runs and reading their logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tui.analysis.health.rules import DEFAULT_RULES, HealthRules

if TYPE_CHECKING:
    from tui.analysis.progress.lines.custom import ProgressPattern


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Settings that apply to all runs, see ``docs/configuration.md``."""

    rules: HealthRules = DEFAULT_RULES
    """The thresholds of the health checks."""

    patterns: tuple[ProgressPattern, ...] = ()
    """Users' patterns, which read progress from the log lines of their own trainers."""

    prices: Mapping[str, float] = field(default_factory=dict)
    """US dollars per minute and node, by instance id or name; these override list prices."""


DEFAULT = RunSettings()
