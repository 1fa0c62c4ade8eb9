"""How far our clock is from the server's, as the stamps of its newest samples tell."""

from __future__ import annotations

import math

LATE_S = 60.0
"""A newest sample that old is no sign of a clock that is ahead: samples take a while …"""

LATE_STEPS = 2.0
"""… as they do when so many of their distances old."""


class ClockOffset:
    """Learns from answers: the least age that a newest sample ever had is our clock's lead, if it is long.

    Samples that stop coming do not shift it: their age only grows.
    """

    def __init__(self) -> None:
        self._least_age_s = math.inf

    def saw(self, newest_s: float, now_s: float, step_s: float = 0.0) -> None:
        """An answer that came at ``now_s`` (our epoch seconds) and whose newest stamp is ``newest_s``."""
        age_s = now_s - newest_s
        if 0 <= age_s <= max(LATE_S, LATE_STEPS * step_s):
            age_s = 0.0
        self._least_age_s = min(self._least_age_s, age_s)

    @property
    def ahead_s(self) -> float:
        """Seconds that our clock is ahead of the server's; negative if it is behind."""
        return self._least_age_s if math.isfinite(self._least_age_s) else 0.0
