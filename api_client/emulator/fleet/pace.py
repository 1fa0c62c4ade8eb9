"""When a scripted run takes its steps: the one clock that logs, metrics and checkpoints of a run share."""

from __future__ import annotations

from dataclasses import dataclass

from api_client.emulator.fleet.noise import mix
from api_client.emulator.fleet.tempo import NS_PER_S

JITTER_SHARE = 0.2
"""A step may take up to this share of ``step_s`` longer; the next one makes up for it."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Steps of about ``step_s``, with a pause (save, evaluation) after every ``pause_every`` of them.

    Times are nanoseconds since the run started. ``halts_after_s`` is when a hanging run takes no further
    step, counted from the run's start. A run that was begun again has ``first_step`` steps behind it.
    """

    total_steps: int
    step_s: float
    warmup_s: float = 90.0
    pause_every: int = 0
    pause_s: float = 0.0
    halts_after_s: float | None = None
    seed: int = 0
    first_step: int = 0

    def finished_ns(self, step: int) -> int:
        """When step ``step`` (1-based) is done. Ascending in ``step``."""
        step -= self.first_step
        step_ns = int(self.step_s * NS_PER_S)
        pauses = (step - 1) // self.pause_every if self.pause_every and step > 0 else 0
        jitter_ns = mix(self.seed, step) % max(1, int(step_ns * JITTER_SHARE))
        return (
            int(self.warmup_s * NS_PER_S) + step * step_ns + pauses * int(self.pause_s * NS_PER_S) + jitter_ns
        )

    def steps_done(self, since_start_ns: int) -> int:
        """How many steps are done by then."""
        if self.halts_after_s is not None:
            since_start_ns = min(since_start_ns, int(self.halts_after_s * NS_PER_S))
        step = max(self.first_step, min(self.total_steps, self.first_step + self._about(since_start_ns)))
        while step < self.total_steps and self.finished_ns(step + 1) <= since_start_ns:
            step += 1
        while step > self.first_step and self.finished_ns(step) > since_start_ns:
            step -= 1
        return step

    def _about(self, since_start_ns: int) -> int:
        past_warmup_ns = since_start_ns - int(self.warmup_s * NS_PER_S)
        step_ns = int(self.step_s * NS_PER_S)
        if not self.pause_every:
            return past_warmup_ns // step_ns
        block_ns = self.pause_every * step_ns + int(self.pause_s * NS_PER_S)
        blocks, rest_ns = divmod(past_warmup_ns, block_ns)
        return blocks * self.pause_every + min(self.pause_every, rest_ns // step_ns)

    def is_pausing(self, since_start_s: float) -> bool:
        """Whether the run saves or evaluates at that moment."""
        past_warmup_s = since_start_s - self.warmup_s
        if not self.pause_every or past_warmup_s < 0 or self.has_halted(since_start_s):
            return False
        steps_s = self.pause_every * self.step_s
        return past_warmup_s % (steps_s + self.pause_s) > steps_s

    def has_halted(self, since_start_s: float) -> bool:
        """Whether the run hangs at that moment."""
        return self.halts_after_s is not None and since_start_s >= self.halts_after_s

    @property
    def duration_s(self) -> float:
        """How long the whole run takes, were it never to hang."""
        pauses = self.total_steps // self.pause_every if self.pause_every else 0
        return self.warmup_s + self.total_steps * self.step_s + pauses * self.pause_s
