"""Long work on the event loop, a few milliseconds at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from tui.insight.file_tree import Steps

Result = TypeVar("Result")

SLICE_S = 0.008
"""A slice of work; between two of them keys are read and lines painted."""


class Sliced:
    """Steps that are run a slice at a time; ``result`` once ``is_done``."""

    def __init__(self, steps: Steps[Result], monotonic_s: Callable[[], float] = time.perf_counter) -> None:
        self._steps = steps
        self._monotonic_s = monotonic_s
        self.is_done = False
        self.fraction = 0.0

    def run_slice(self) -> bool:
        """Work for one slice; whether all is done."""
        until = self._monotonic_s() + SLICE_S
        while not self.is_done and self._monotonic_s() < until:
            try:
                self.fraction = next(self._steps)
            except StopIteration as end:
                self.result = end.value
                self.is_done = True
        return self.is_done

    async def run(self, on_progress: Callable[[float], object], goes_on: Callable[[], bool]) -> bool:
        """Work until done, or until ``goes_on`` says no; whether all is done."""
        while not self.run_slice():
            on_progress(self.fraction)
            await asyncio.sleep(0)
            if not goes_on():
                self._steps.close()
                return False
        return True
