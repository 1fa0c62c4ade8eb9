"""The data of a run that health checks share: the kind of run, its start-up and pauses, earlier findings."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice, pairwise

from api_client.models import JobStatus
from api_client.models.logs import NS_PER_S
from tui.analysis.health.rules import HealthRules
from tui.analysis.health.windows import first_time, mean_speed, paced, since_start
from tui.analysis.logs.error_tally import ErrorLine
from tui.analysis.node_metrics import MetricsSnapshot
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.progress.steps import numbered
from tui.analysis.run.finding import SEVERITIES, FindingKind, HealthFinding, Severity
from tui.analysis.run.snapshot import RunSnapshot, seconds_left_range
from tui.analysis.series import Series, values_between
from tui.text.units import HOUR_S, MINUTE_S

IDLE, WORKING = 0.05, 0.2
"""GPU utilization (0 to 1) below which a GPU is idle, and from which it works."""

ASIDE_S = 30 * MINUTE_S
"""Seconds that an activity other than steps may take the first time: how long is usual isn't known yet."""

LONGER = 1.25
"""A pause may be this many times as long as the longest one after which the run continued."""

_WARM_UP_S = 15 * MINUTE_S  # Allocators and caches fill during the first steps.
_ROUND_STEPS = (50, 100, 250, 500, 1000, 2500, 5000, 10_000)
_REINFORCEMENT = re.compile(r"(?i)reward|advantage|rollout|\bkl\b|approx_kl|episod|\bpolicy\b")
"""Metric names that only reinforcement learning logs."""
REWARD = re.compile(r"(?i)^(?!.*(?:std|var))(?:.*[^a-z])?(?:rew|reward|score|return)s?(?![a-z])")
"""Metric names of rewards, but not of their standard deviation or variance."""
_TOKEN_COUNT = re.compile(r"(?i)(?:^|[/_])tokens(?:_seen|_consumed|_total)?$")
"""Metric names of token counts: ``num_tokens``, ``total_tokens``, ``tokens_seen``."""
_FLOPS = re.compile(r"(?i)tflop|(?<![a-z])mfu(?![a-z])|^throughput per gpu$")
"""Metric names of FLOP/s per GPU, or of the fraction of the peak FLOP/s (MFU)."""
_STEP_SIZE = re.compile(r"(?i)^(?!.*time).*(?:seq|len(?:gth)?(?![a-z])|batch|resolution|frames|size)")
"""Metric names of the size of a step: sequence length, batch size."""


class Watched:
    """A run at one time, and the state of its evaluation, which runs one check after another.

    ``held`` has the findings of the previous evaluation by key, ``found`` the findings so far.
    """

    def __init__(self, run: RunSnapshot, rules: HealthRules, previous: Iterable[HealthFinding] = ()) -> None:
        self.run = run
        self.kind = FindingKind("", 0, "")
        """The kind of finding of the check that is being run."""
        self.rules = rules
        self.held = {finding.key: finding for finding in previous}
        self.found: list[HealthFinding] = []
        self.progress = run.progress or ProgressSnapshot()
        self.metrics = run.health_metrics or run.metrics or MetricsSnapshot()
        """The samples to check: always of the same time range, whatever range the charts show."""
        self.now_s = run.server_now.timestamp()

    # Findings

    def has(self, kind: str) -> bool:
        """Return True if this evaluation has found this kind so far."""
        return any(str(finding.kind) == kind for finding in self.found)

    @property
    def has_stalled(self) -> bool:
        """True if a stall is reported, which needs the whole log; other checks then omit what it explains."""
        return self.run.log_read and self.has("stalled")

    def is_held(self, node: str | None = None) -> bool:
        """Return True if the previous evaluation had this check's finding, for ``node`` or the whole job."""
        return HealthFinding(self.kind, "info", "", node).key in self.held

    def lasting(self, severity: Severity, node: str | None = None) -> Severity:
        """Return the worse of this and the previous evaluation's severity, so that it does not flicker."""
        held = self.held.get(HealthFinding(self.kind, severity, "", node).key)
        return severity if held is None else min(severity, held.severity, key=SEVERITIES.index)

    @property
    def held_nodes(self) -> frozenset[str | None]:
        """Nodes for which the previous evaluation had this check's finding; None stands for the whole job."""
        return frozenset(finding.node for finding in self.held.values() if finding.kind == self.kind)

    def finding(
        self,
        severity: Severity,
        text: str,
        *,
        short: str = "",
        node: str | None = None,
        since_s: float | None = None,
        slowed_by: float = 0.0,
    ) -> HealthFinding:
        since = None if since_s is None else datetime.fromtimestamp(since_s, UTC)
        return HealthFinding(self.kind, severity, text, node, since, short, slowed_by)

    def eased(self, threshold: float, healthy: float, *, held: bool) -> float:
        """Return the threshold, moved toward the healthy value (hysteresis) if the finding is ``held``."""
        return threshold + (healthy - threshold) * self.rules.release if held else threshold

    # Start and end

    @cached_property
    def left_s(self) -> float:
        """Upper estimate of the seconds until the last step; infinite if unknown."""
        remaining = seconds_left_range(self.progress, self.run.server_now)
        return math.inf if remaining is None else remaining[1]

    @cached_property
    def platform_starts(self) -> list[float]:
        """Times (epoch s) at which the job began to run, by its status history."""
        return [
            event.created.timestamp()
            for event in self.run.status_history
            if event.created is not None and event.status == JobStatus.RUNNING
        ]

    @cached_property
    def attempt_since(self) -> float:
        """Start of the current attempt (epoch s), from the status history or the log; -inf if unknown."""
        times = [*self.platform_starts]
        if not self.progress.step_series.times:  # each run of a sweep begins with the first epoch
            epochs = self.progress.epoch_series
            changes = pairwise(zip(epochs.times, epochs.values, strict=True))
            times += [time for (_, before), (time, epoch) in changes if epoch < before / 2]
        return max([*times, *self.progress.restarts], default=-math.inf)

    def of_attempt(self, series: Series) -> Series:
        """Return the points of a series since the start of the current attempt."""
        return since_start(series, self.attempt_since)

    @cached_property
    def training_since(self) -> float | None:
        """Time of the current attempt's first step (epoch s); None during start-up, or without steps.

        The first step count is no step, since a progress bar shows it at once: 0, or where a resumed run
        begins. The count has to change.
        """
        losses, steps = map(self.of_attempt, (self.progress.loss_series, self.progress.step_series))
        pairs = zip(steps.times, steps.values, strict=True)
        changed = (time for time, step in pairs if step != steps.values[0])
        return min((*losses.times[:1], *islice(changed, 1)), default=None)

    @cached_property
    def count_since(self) -> float:
        """Time at which the step count last started over (epoch s), as in each epoch or sweep run."""
        steps, start = self.of_attempt(self.progress.step_series), self.progress.count_starts[-1]
        pairs = zip(steps.times, steps.values, strict=True)
        return next((time for time, step in pairs if step > start), math.inf)

    @cached_property
    def works_since(self) -> float:
        """Time at which a node's GPUs first worked in this attempt (epoch s); infinite if none did."""
        return self._first_sample_s(WORKING, self.attempt_since)

    @cached_property
    def samples_since(self) -> float:
        """Time of the first sample (epoch s); infinite if there is none."""
        return self._first_sample_s(0.0, -math.inf)

    def _first_sample_s(self, level: float, since: float) -> float:
        nodes = self.metrics.nodes
        return min((first_time(node.mean_utilization, level, since) for node in nodes), default=math.inf)

    @property
    def is_loading(self) -> bool:
        """True if the log reports loading after the last step, as if the run had restarted.

        False in reinforcement learning, which loads weights in every step.
        """
        return not self.is_reinforcement and (self.progress.loading_at or 0.0) > (self.last_step_s or 0.0)

    @cached_property
    def growth_since(self) -> float:
        """Time from which growing memory is meaningful (epoch s): 15 minutes after the first step.

        Without steps in the log, working GPUs show that training has started. Infinite until it has.
        """
        if self.training_since is not None:
            return self.training_since + _WARM_UP_S
        if self.progress.loss is not None or self.progress.step is not None:
            return math.inf
        has_seen_start = self.works_since > self.samples_since
        return self.works_since + _WARM_UP_S if has_seen_start else self.attempt_since

    # Kind of run

    @cached_property
    def is_reinforcement(self) -> bool:
        """True if the log names rewards or an adversary: the work per step and the losses vary by design."""
        return self.progress.moving_target or any(map(_REINFORCEMENT.search, self.progress.metrics))

    @cached_property
    def work_per_step(self) -> list[Series]:
        """Logged measures of the size of a step: the lengths of its sequences, its batch size."""
        named = [series for name, series in self.progress.metrics.items() if _STEP_SIZE.search(name)]
        return [self.progress.input_length_series, *named]

    # Steps and pauses

    @cached_property
    def steps(self) -> Series:
        """The step count over time; the number of logged losses if the log does not count steps."""
        steps = self.progress.step_series
        return steps if steps.times else numbered(self.progress.loss_series)

    @cached_property
    def speed(self) -> tuple[Series, str]:
        """The speed over time, without pauses, with its unit: FLOP/s, tokens, samples, steps, or lines/s."""
        for name, series in self.progress.metrics.items():
            # Prefer FLOP/s to tokens/s, since long documents cost more per token. A constant is the peak of
            # the device, and a series that only rises is a total: neither is a speed.
            is_speed = _FLOPS.search(name) and list(series.values) != sorted(series.values)
            if is_speed and series.times[-1] - series.times[0] < 5 * MINUTE_S * len(series):
                return series, "MFU" if "mfu" in name.lower() else "TFLOP/s"
        series, unit = self.progress.throughput_series
        if unit != "it/s":
            return series, unit
        for name, tokens in self.progress.metrics.items():
            if _TOKEN_COUNT.search(name) and all(
                earlier < later for earlier, later in pairwise(tokens.values)
            ):
                return paced(tokens), "tok/s"
        return paced(self.steps), self.step_unit

    @property
    def step_unit(self) -> str:
        return "it/s" if self.progress.step_series.times else "lines/s"

    def steps_between(self, start: float, end: float = math.inf) -> float:
        """Return the number of steps made from ``start`` to ``end`` (epoch s); 0 if unknown."""
        steps = values_between(self.steps, start, end)
        return max(0.0, steps[-1] - steps[0]) if steps else 0.0

    def follows(self, at: float, times: Iterable[float]) -> bool:
        """Return True if one of ``times`` is between the last step before the restart ``at`` and it."""
        marks = self.progress.step_series.times
        # The last step of the old attempt may be logged after the error.
        usual_s = self.progress.step_interval_s or 0.0
        start = next(iter(marks[max(0, bisect_left(marks, at) - 1) :]), at) - usual_s
        return any(start <= time <= at for time in times)

    def follows_error(self, at: float) -> bool:
        """Return True if an error came before the restart ``at``: then it is not planned."""
        return self.follows(at, (error.at_s for error in self.progress.errors.kept))

    def steps_take_longer(self, since: float) -> bool:
        """Return True if steps are slower than at ``since``: larger inputs may explain grown memory."""
        speeds = paced(self.steps)
        newest = self.now_s - _WARM_UP_S
        then, now = (mean_speed(values_between(speeds, time, time + _WARM_UP_S)) for time in (since, newest))
        return now < 0.95 * then

    def lost_speed(self, since: float) -> float | None:
        """Return the fraction of its speed the run has lost since ``since``, against the hour before.

        None if either speed is unknown.
        """
        series, _ = self.speed
        usual = mean_speed(values_between(series, since - HOUR_S, since))
        after = values_between(series, since)
        return 1 - mean_speed(after) / usual if usual and after else None

    @property
    def makes_progress(self) -> bool:
        """True if something is logged and the run has not stalled."""
        return self.last_line_s > 0 and not self.has("stalled")

    @property
    def survived_s(self) -> float:
        """Time (epoch s) until which the run has survived its errors: it made a step afterward."""
        return (self.last_step_s or 0.0) - max(10.0, self.progress.step_interval_s or 0.0)

    @property
    def unsurvived_error(self) -> ErrorLine | None:
        """The first error after which the run has made no step."""
        errors = self.progress.errors.kept
        return next((error for error in errors if error.at_s > self.survived_s), None)

    @property
    def last_line_s(self) -> float:
        """Time of the newest log line (epoch s), 0 without any."""
        return (self.progress.last_line_at_ns or 0) / NS_PER_S

    @property
    def last_step_s(self) -> float | None:
        step_ns = self.progress.last_step_at_ns
        return None if step_ns is None else step_ns / NS_PER_S

    @cached_property
    def pauses(self) -> list[tuple[float, float]]:
        """Time ranges without steps; the last may be an evaluation or a save that the log has announced."""
        usual_s, phase = self.progress.step_interval_s, self.progress.run_phase
        if usual_s is None:
            return []
        min_s = max(MINUTE_S, 4 * usual_s)  # shorter pauses may lie between two samples
        times = [*self.progress.step_series.times, self.now_s]
        pauses = [(start, end) for start, end in pairwise(times) if end - start > min_s]
        return pauses if phase is None else [*pauses, (phase.since, self.now_s)]

    def steps_throughout(self, start: float, end: float) -> bool:
        """Return True if no pause overlaps this time range, so that nodes can be compared: all make steps."""
        index = bisect_left(self.pauses, (end, 0.0))
        return not any(until > start for _, until in self.pauses[max(0, index - 2) : index])

    @property
    def pause_allowed_s(self) -> float:
        """Seconds that the run may pause: a bit longer than before, or ``ASIDE_S`` for a new activity."""
        return max(self.survived_pause_s, ASIDE_S if self.is_aside else 0.0)

    @property
    def survived_pause_s(self) -> float:
        """Seconds of the longest pause after which the run continued, times ``LONGER``."""
        # An announced activity may take as long as the previous one, even if lines were logged meanwhile.
        step_pause_s = self.progress.step_pause_s if self.progress.run_phase is not None else None
        return LONGER * max(self.progress.line_pause_s or 0.0, step_pause_s or 0.0)

    @cached_property
    def is_aside(self) -> bool:
        """True if the run may be busy with an activity, other than steps, that it has not done before.

        Signs of it are: the run starts, loads, has done all steps, or has logged words since the last step
        that it never logged before. A first evaluation or save may begin without a log line: then a round
        step number is a sign. After an error, loading is the only sign.
        """
        progress, last_step_s = self.progress, self.last_step_s
        if last_step_s is None:
            return False
        if progress.step_interval_s is None or self.training_since is None or progress.is_done:
            return True
        has_paused = (progress.step_pause_s or 0.0) > 2 * progress.step_interval_s
        # The timestamp of a listed checkpoint may precede the log line of its step by a minute.
        saves_first = min(self.stored, default=(0.0, ""))[0] >= last_step_s - 60.0
        error = progress.errors.newest
        if self.is_loading or (error is not None and error.at_s > last_step_s):
            return self.is_loading
        phase = progress.run_phase
        # New words right after the announcement of a known activity belong to that activity.
        known_s = phase.newest + MINUTE_S if phase is not None and not phase.first else last_step_s
        return (
            max(progress.new_words, default=0.0) > known_s
            or (phase is not None and phase.first)
            or (saves_first and bool(self.stored))
            or (not has_paused and self.is_round_step(last_step_s))
        )

    def is_round_step(self, at: float) -> bool:
        """Return True if the newest step at this time (epoch s) is one at which trainers evaluate or save."""
        times, steps = self.progress.step_series.times, self.progress.step_series.values
        index = bisect_right(times, at) - 1
        if index < 1:
            return False
        # Smaller units divide every few logged step numbers by chance.
        min_unit = 25 * max(1.0, steps[index] - steps[index - 1])
        return any(steps[index] % unit == 0 and unit >= min_unit for unit in _ROUND_STEPS)

    @cached_property
    def stored(self) -> list[tuple[float, str]]:
        """The checkpoints that the API lists, oldest first: their creation times (epoch s) and names."""
        return sorted(
            (checkpoint.created_at.timestamp(), checkpoint.checkpoint_id)
            for checkpoint in self.run.checkpoints or ()
            if checkpoint.created_at is not None
        )
