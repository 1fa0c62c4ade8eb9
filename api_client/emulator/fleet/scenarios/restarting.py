"""A run that dies and is begun again from its last checkpoint, over and over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from api_client.emulator.fleet.course import Course
from api_client.emulator.fleet.lines import Clipped, LineSource
from api_client.emulator.fleet.narration import node_name, told
from api_client.emulator.fleet.plans import Narrator, RunFacts
from api_client.emulator.fleet.tempo import NS_PER_S

MOST_ATTEMPTS = 12
_LAST_WORDS = (
    "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error"
)


@dataclass(frozen=True, slots=True)
class Restarting:
    """Another narrator's log, cut off every ``attempt_s`` seconds and resumed ``break_s`` later."""

    narrator: Narrator
    attempt_s: float
    break_s: float
    save_every: int

    def lines(self, run: RunFacts, run_ns: int, course: Course) -> Sequence[LineSource]:
        """See ``Narrator``."""
        return list(self._lines(run, run_ns, course))

    def _lines(self, run: RunFacts, run_ns: int, course: Course) -> Iterator[LineSource]:
        first_step = 0
        for attempt in range(MOST_ATTEMPTS):
            start_ns = run_ns + int(attempt * self.attempt_s * NS_PER_S)
            until_ns = start_ns + int((self.attempt_s - self.break_s) * NS_PER_S)
            pace = replace(course.pace, first_step=first_step)
            for source in self.narrator.lines(run, start_ns, replace(course, pace=pace)):
                yield Clipped(source, until_ns)
            yield told(node_name(0), "ERROR", until_ns, [(0.1, _LAST_WORDS)])
            again = f"torchrun: worker group restarting, restart_count={attempt + 1}"
            yield told(node_name(0), "WARNING", until_ns, [(self.break_s / 2, again)])
            reached = pace.steps_done(until_ns - start_ns)
            if reached >= course.pace.total_steps:
                return
            first_step = reached // self.save_every * self.save_every
