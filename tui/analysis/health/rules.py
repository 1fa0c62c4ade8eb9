"""What counts as sick: every threshold of the checks, in one place that a config file can fill."""

from __future__ import annotations

from dataclasses import dataclass

MINUTE_S = 60.0
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class HealthRules:
    """Thresholds of the checks. Shares are fractions 0–1, times are seconds.

    A finding that is held is let go only beyond ``release`` of the way back, so that a value that
    wavers around its threshold does not come and go.
    """

    off: frozenset[str] = frozenset()
    """Kinds of findings (``FindingKind`` values) that nobody wants to hear of."""

    release: float = 0.25
    """How far back, as a part of the distance to the healthy value, ends a finding."""

    stall_after_s: float = 3 * MINUTE_S
    """No run has stalled that was silent for less than that …"""
    stall_steps: float = 5.0
    """… nor for fewer of its own step intervals …"""
    stall_pause_factor: float = 1.25
    """… nor for less than this many times the longest pause that it has come back from."""
    stall_aside_s: float = 20 * MINUTE_S
    """The first evaluation or save that the log announces may be silent for that long."""
    stall_talking_s: float = 15 * MINUTE_S
    """The least time without a step for a run that still logs other lines."""
    stall_talking_steps: float = 20.0
    """Such a run may miss so many of its own step intervals."""
    stall_unread_s: float = 30 * MINUTE_S
    """The least silence of a run whose log tells no steps, after it had logged for as long."""

    loss_readings: int = 5
    """The median of so many newest losses (or gradient norms) is compared with those before."""
    loss_history: int = 30
    """Fewer losses than that before them tell nothing."""
    loss_spreads: float = 10.0
    """A loss explodes so many of its usual deviations above its usual level …"""
    loss_factor: float = 1.5
    """… and at this many times that level."""
    grad_norm_factor: float = 20.0
    """A gradient norm explodes at so many times its usual level."""

    idle_below: float = 0.05
    """GPUs below that utilisation do nothing."""
    idle_after_s: float = 5 * MINUTE_S
    """GPUs doing nothing for that long are idle."""
    idle_never_s: float = 25 * MINUTE_S
    """GPUs that did nothing in all that is seen are idle after that long, though nobody saw them work."""
    active_from: float = 0.2
    """GPUs that once reached that utilisation had begun their work."""

    straggler_share: float = 0.8
    """A node lags below that part of the other nodes' usual utilisation."""
    straggler_window_s: float = 5 * MINUTE_S
    """It must lag through all of that time."""
    straggler_busy: float = 0.2
    """Unless the others are at least that busy, nobody waits for anybody."""
    straggler_step_time: float = 1.25
    """A rank lags whose own step times are so many times those of the others."""

    missing_after_s: float = 3 * MINUTE_S
    """A node without samples for that long, while others have some, is missing."""
    missing_start_s: float = 5 * MINUTE_S
    """Nodes may appear so long after the first one."""

    metrics_after_s: float = 10 * MINUTE_S
    """Metrics of a whole job that are older than that are missing."""

    gpu_memory_share: float = 0.97
    """GPU memory is near its limit above that."""
    gpu_memory_after_s: float = 2 * MINUTE_S
    """It must be there for so long."""
    leak_window_s: float = 20 * MINUTE_S
    """Memory that grew steadily over that time leaks …"""
    leak_share: float = 0.015
    """… if it grew by that part of its limit …"""
    leak_full_within_s: float = 12 * HOUR_S
    """… and will be full within that time, before the run ends."""

    disk_share: float = 0.95
    """A disk or cache is nearly full above that."""
    disk_window_s: float = 15 * MINUTE_S
    """One that grew steadily over that time (or four times that) fills up …"""
    disk_growth: float = 0.01
    """… if it grew by that part of its size …"""
    disk_full_within_s: float = 6 * HOUR_S
    """… and will be full within that time, before the run ends."""

    checkpoint_factor: float = 1.5
    """A checkpoint is overdue after so many of the longest usual intervals …"""
    checkpoint_grace_s: float = 5 * MINUTE_S
    """… and at least that long after it was due."""
    checkpoint_intervals: int = 2
    """Fewer intervals than that make no rhythm."""

    restarts: int = 2
    """So many restarts are a trouble, one is luck."""
    restarts_within_s: float = 6 * HOUR_S
    """After so long without another one they are history."""

    errors_within_s: float = 30 * MINUTE_S
    """Error lines are a finding until so long after the newest."""

    queued_after_s: float = 1 * MINUTE_S
    """A job that waits for longer than that waits."""


DEFAULT_RULES = HealthRules()
