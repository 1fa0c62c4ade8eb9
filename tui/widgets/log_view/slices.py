"""Long work in short pieces, so that keys and lines are never kept waiting by it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

SLICE_S = 0.008
"""Longest stretch of filtering, folding or searching between two turns of the event loop."""


class Slice:
    """Says while there is time left; ``renew`` lets others have a turn."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._deadline_s = monotonic_s() + SLICE_S

    def __call__(self) -> bool:
        """Whether there is time left."""
        return self._monotonic_s() < self._deadline_s

    async def renew(self) -> None:
        """Give way once."""
        await asyncio.sleep(0)
        self._deadline_s = self._monotonic_s() + SLICE_S
