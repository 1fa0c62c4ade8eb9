"""A run as somebody sees it who watches it from its beginning, as the job screen does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api_client.models import JobMetrics, TrainingJob
from api_client.models.logs import LogLine
from tui.analysis.health.judge import health
from tui.analysis.health.rules import DEFAULT_RULES, HealthRules
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.run.finding import HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.readers.health_metrics import HEALTH_STEP_S, health_metrics_fold


@dataclass
class WatchedRun:
    """``found`` are the findings of the last look, which the next one holds on to."""

    job: TrainingJob
    rules: HealthRules = DEFAULT_RULES
    found: tuple[HealthFinding, ...] = ()

    def __post_init__(self) -> None:
        self.progress, self.metrics = ProgressFold(), health_metrics_fold(self.job)

    def look(
        self, now: datetime, lines: Iterable[LogLine], answer: JobMetrics, **known: Any
    ) -> tuple[HealthFinding, ...]:
        """Return what is found once these lines and samples have come, and what else is known."""
        self.progress.add(lines)
        metrics = self.metrics.fold(answer, HEALTH_STEP_S)
        read = {"history_known": True, "log_read": True, "progress": self.progress.snapshot()}
        read |= {"health_metrics": metrics, "health_metrics_at": now}
        self.found = health(RunSnapshot(self.job, now, now, **read | known), self.rules, self.found)
        return self.found
