"""The window that charts share: it keeps its length and its place, and never leaves the run."""

from __future__ import annotations

from hypothesis import example, given, strategies as st
from pytest import approx

from tui.analysis.series import Series
from tui.screens.charts.view import StepTimeMap
from tui.widgets.charts.ticks import MIN_WINDOW_SPAN, Window

FIRST, LAST = 1000.0, 5000.0
windows = st.one_of(
    st.just(Window()),
    st.builds(Window, st.floats(MIN_WINDOW_SPAN, 3900)),
    st.builds(Window, st.floats(MIN_WINDOW_SPAN, 3900), st.floats(FIRST, LAST)),
)


@given(windows, st.floats(0.2, 5), st.one_of(st.none(), st.floats(FIRST, LAST)))
def test_zooming_keeps_the_place_and_stays_within_the_run(
    window: Window, factor: float, around: float | None
) -> None:
    zoomed = window.zoomed(factor, around, FIRST, LAST)
    start, end = zoomed.bounds(FIRST, LAST)
    assert FIRST - 1e-6 <= start < end <= LAST + 1e-6
    before = window.bounds(FIRST, LAST)
    inside = around is not None and before[0] <= around <= before[1]
    if inside and zoomed.end is not None and factor < 1 and start > FIRST + 1:
        assert around is not None
        share = (around - before[0]) / (before[1] - before[0])
        assert (around - start) / (end - start) == approx(share, abs=0.02)


@given(windows, st.floats(-5000, 5000))
def test_panning_keeps_the_length_and_follows_again_at_the_newest(window: Window, by: float) -> None:
    before = window.bounds(FIRST, LAST)
    panned = window.panned(by, FIRST, LAST)
    start, end = panned.bounds(FIRST, LAST)
    assert end - start == approx(before[1] - before[0], rel=0.01)
    assert start >= FIRST - 1e-6 and end <= LAST + 1e-6
    assert panned.follows == (end == approx(LAST))


@given(windows, st.floats(FIRST, LAST))
@example(Window(2800.0), 2172.0)  # just left of it: so near to the newest that it might follow
def test_what_is_to_be_shown_is_shown(window: Window, x: float) -> None:
    start, end = window.showing(x, FIRST, LAST).bounds(FIRST, LAST)
    assert start - 1e-6 <= x <= end + 40  # at the newest a hundredth of the window counts as it


def test_steps_and_times_are_told_from_each_other() -> None:
    clock = StepTimeMap(Series("step", (0.0, 10.0, 20.0, 30.0), (0.0, 100.0, 50.0, 300.0)))
    assert clock.step(5) == 50
    assert clock.step(20) == 100  # going back keeps the highest step so far
    assert clock.step(99) == 300 and clock.step(-1) == 0
    assert clock.time(200) == 25
    assert (clock.last_step_at(-0.1), clock.last_step_at(0.0), clock.last_step_at(5.55)) == (None, 0, 55)
    assert StepTimeMap(Series("")).last_step_at(5) is None
