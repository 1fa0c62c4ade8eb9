"""A curve that got worse, and what only looks like it."""

from __future__ import annotations

from tui.analysis.health.worse import worsened
from tui.analysis.series import Series


def test_a_speed_that_falls_back_to_where_each_epoch_begins_has_not_got_worse() -> None:
    first_epoch = (30.7, 32.8, 35.5, 38.6, 42.5, 46.7)  # thousands of tokens a second, each 400 s
    assert fall_of(*first_epoch, 29.5, 27.0) is None
    assert fall_of(*first_epoch, 16.0, 15.0) is not None


def fall_of(*speeds: float) -> object:
    curve = Series("speed", tuple(400.0 * n for n in range(len(speeds))), tuple(-speed for speed in speeds))
    return worsened(curve, 0.36, newest=2, earlier=4, descends=False)
