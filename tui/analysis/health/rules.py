"""Thresholds of the health checks. They are settings: each description ends up in docs/configuration.md."""

from __future__ import annotations

from dataclasses import dataclass

MINUTE_S = 60.0
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class HealthRules:
    """Thresholds of the health checks. Shares are fractions from 0 to 1, times are seconds.

    ``release`` adds hysteresis: a finding clears only when the value has moved that far back, so a value
    that hovers around its threshold does not make the finding flicker.
    """

    off: frozenset[str] = frozenset()
    """Kinds of findings to disable, as in `["queued"]`."""

    release: float = 0.25
    """How far a value must move back toward its healthy level to clear a finding, as a share of the way."""

    stall_after_s: float = 10 * MINUTE_S
    """Minimum time without a step or a log line before a run is reported as stalled."""
    stall_steps: float = 5.0
    """Minimum number of the run's usual step intervals without a step or a log line."""
    stall_pause_factor: float = 1.25
    """Minimum silence, as a multiple of the longest pause the run has recovered from."""
    stall_aside_s: float = 20 * MINUTE_S
    """Silence allowed during the first evaluation or save, if the log announces it."""
    stall_talking_s: float = 15 * MINUTE_S
    """Minimum time without a step for a run that still logs other lines."""
    stall_talking_steps: float = 20.0
    """Minimum number of usual step intervals without a step for a run that still logs other lines."""
    stall_unread_s: float = 30 * MINUTE_S
    """Minimum silence of a run whose log shows no steps, once it has logged for at least that long."""

    loss_readings: int = 5
    """Number of newest losses (or gradient norms) whose median is compared with earlier ones."""
    loss_history: int = 30
    """Minimum number of earlier losses to compare with."""
    loss_spreads: float = 10.0
    """A loss is diverging at this many deviations above its usual level, if `loss_factor` is met, too."""
    loss_factor: float = 1.5
    """A loss is diverging at this many times its usual level, if `loss_spreads` is met, too."""
    grad_norm_factor: float = 20.0
    """A gradient norm is diverging at this many times its usual level."""

    idle_below: float = 0.05
    """Utilization below which a GPU counts as idle."""
    idle_after_s: float = 10 * MINUTE_S
    """Minimum idle time before GPUs that have worked are reported as idle."""
    idle_never_s: float = 25 * MINUTE_S
    """Minimum idle time before GPUs that have never been seen working are reported as idle."""
    active_from: float = 0.2
    """Utilization from which a GPU counts as working."""

    straggler_share: float = 0.8
    """A node is slow if its utilization is below this share of the other nodes' median."""
    straggler_window_s: float = 5 * MINUTE_S
    """Time during which the node must be slow without interruption."""
    straggler_busy: float = 0.2
    """Minimum utilization of the other nodes; below it, no node is reported as slow."""
    straggler_step_time: float = 1.1
    """A rank is slow if its step time is this many times that of the others."""

    missing_after_s: float = 3 * MINUTE_S
    """Minimum time without samples, while other nodes send some, before a node is reported as missing."""
    missing_start_s: float = 5 * MINUTE_S
    """Time that nodes have to appear after the first one."""

    metrics_after_s: float = 10 * MINUTE_S
    """Maximum age of a job's newest metrics before they are reported as missing."""

    gpu_memory_share: float = 0.97
    """Share of GPU memory in use above which it is near its limit."""
    gpu_memory_after_s: float = 2 * MINUTE_S
    """Time that GPU memory must stay above `gpu_memory_share`."""
    leak_window_s: float = 20 * MINUTE_S
    """Time window over which memory must grow steadily to be reported as a leak."""
    leak_share: float = 0.015
    """Minimum growth in `leak_window_s`, as a share of the memory limit."""
    leak_full_within_s: float = 12 * HOUR_S
    """A leak is reported only if memory will be full within this time, and before the run ends."""

    disk_share: float = 0.95
    """Share of a disk or cache in use above which it is nearly full."""
    disk_window_s: float = 15 * MINUTE_S
    """Time window over which usage must grow steadily to be reported (or four times that window)."""
    disk_growth: float = 0.01
    """Minimum growth in the time window, as a share of the size."""
    disk_full_within_s: float = 6 * HOUR_S
    """Growth is reported only if the disk or cache will be full within this time, and before the run ends."""

    checkpoint_factor: float = 1.5
    """A checkpoint is overdue after this many times the longest usual interval."""
    checkpoint_grace_s: float = 5 * MINUTE_S
    """Minimum delay before a checkpoint is overdue, in addition to the longest usual interval."""
    checkpoint_intervals: int = 2
    """Minimum number of intervals from which a usual interval can be learned."""

    restarts: int = 2
    """Number of restarts from which they are reported."""
    restarts_within_s: float = 6 * HOUR_S
    """Forget restarts when the newest is older than this."""

    slowdown_share: float = 0.8
    """A run is slow if its speed is below this share of its usual speed."""
    slowdown_window_s: float = 30 * MINUTE_S
    """Time during which the run must be slow without interruption."""

    plateau_after_s: float = 3 * HOUR_S
    """Time without any change of the loss before it is remarked upon."""

    overfit_evaluations: int = 4
    """Number of worse evaluations since the best one from which overfitting is remarked upon."""
    overfit_share: float = 0.05
    """Minimum rise of the evaluation loss, as a share of its lowest level."""

    underused_below: float = 0.5
    """Utilization below which GPUs are underused, if the CPUs of their nodes are at their limit."""
    underused_after_s: float = 30 * MINUTE_S
    """Time during which GPUs must be underused; four times that below `active_from`, whatever the CPUs do."""

    errors_within_s: float = 30 * MINUTE_S
    """How long errors are reported after the newest one."""

    queued_after_s: float = 1 * MINUTE_S
    """Minimum queue time before a job is reported as waiting."""


DEFAULT_RULES = HealthRules()
