"""Judge a recorded run as a dashboard that looks every 30 seconds would have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from api_client.recordings.reading import Recording
from api_client.recordings.stamps import ns_of
from tui.analysis.health.judge import judged
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.run.finding import SEVERITIES, HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.readers.health_metrics import HEALTH_STEP_S, health_metrics_fold
from tui.settings.runs import RunSettings


@dataclass(frozen=True, slots=True)
class FindingPeriod:
    """A finding and the time in which it was shown; ``finding`` is its worst and then newest form."""

    finding: HealthFinding
    first_seen: datetime
    last_seen: datetime


class Timeline:
    """The findings of a recorded run; ``look`` goes on to the next moment until ``is_done``."""

    def __init__(self, recording: Recording, settings: RunSettings) -> None:
        self._recording = recording
        self._rules = settings.rules
        self._progress = ProgressFold(patterns=settings.patterns)
        self._metrics = health_metrics_fold(recording.job)
        self._position = (0, 0)
        self._metrics_until_ns = ns_of(recording.begin) - 1
        self._found: tuple[HealthFinding, ...] = ()
        self._open: dict[str, FindingPeriod] = {}
        self._closed: list[FindingPeriod] = []
        # runs of more than two weeks are judged at longer intervals
        self._interval = max(timedelta(seconds=30), (recording.until - recording.begin) / 40_000)
        self.at = recording.begin
        self.is_done = False

    @property
    def findings(self) -> list[FindingPeriod]:
        """All findings so far, in the order in which they were first seen."""
        return sorted([*self._closed, *self._open.values()], key=lambda one: one.first_seen)

    def look(self) -> None:
        recording, at = self._recording, self.at
        job = recording.job_at(at)
        lines, self._position = recording.log.arriving(self._position, recording.now_ns(at))
        self._progress.add(line.entry for line in lines)
        now_ns = ns_of(at)
        new_samples = recording.metrics.select(self._metrics_until_ns + 1, now_ns, step_s=HEALTH_STEP_S)
        self._metrics_until_ns = now_ns
        self._metrics.fold(new_samples, HEALTH_STEP_S)
        checkpoints = recording.checkpoints_at(at)
        samples = self._metrics.snapshot
        run = RunSnapshot(
            job,
            at,
            at,
            progress=self._progress.snapshot(),
            metrics=samples,
            metrics_at=at,
            health_metrics=samples,
            health_metrics_at=at,
            checkpoints=None if checkpoints is None else tuple(checkpoints),
            queue=recording.queue_at(at),
            history_known=True,
            log_read=True,
        )
        self._found = judged(run, self._rules, previous=self._found).findings
        self._note(at)
        self.is_done = at >= recording.until
        self.at = min(at + self._interval, recording.until)

    def _note(self, at: datetime) -> None:
        current = {finding.key: finding for finding in self._found}
        for key in self._open.keys() - current.keys():
            self._closed.append(self._open.pop(key))
        for key, finding in current.items():
            period = self._open.get(key)
            if period is None:
                self._open[key] = FindingPeriod(finding, at, at)
            elif SEVERITIES.index(finding.severity) <= SEVERITIES.index(period.finding.severity):
                self._open[key] = FindingPeriod(finding, period.first_seen, at)
            else:
                self._open[key] = replace(period, last_seen=at)
