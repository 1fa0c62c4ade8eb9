"""The demo world's time: exact, monotone, and kept over restarts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from fleet_worlds import EPOCH, NS_PER_S
from hypothesis import given
from hypothesis import strategies as st

from api_client.emulator.fleet import SimClock, open_sim_clock
from api_client.emulator.formats import epoch_ns as ns
from api_client.emulator.store.database import Database

SPEEDS = st.sampled_from([0.25, 0.333, 1.0, 1.5, 7.0, 60.0, 1000.0])


def check_edges(sim_clock: SimClock, moment_ns: int) -> None:
    """``to_wall(script) <= wall`` exactly if ``script <= to_script(wall)``, tried at its edges."""
    script_ns = sim_clock.to_script(moment_ns)
    assert sim_clock.to_wall(script_ns) <= moment_ns < sim_clock.to_wall(script_ns + 1)
    wall_ns = sim_clock.to_wall(moment_ns)
    assert sim_clock.to_script(wall_ns - 1) < moment_ns <= sim_clock.to_script(wall_ns)


@given(SPEEDS, SPEEDS, st.integers(1, 10**12), st.integers(-5_000, 5_000))
def test_that_holds_where_the_speed_was_changed(
    speed: float, later_speed: float, after_us: int, beside_ns: int
) -> None:
    changed_at = EPOCH + timedelta(microseconds=after_us)
    sim_clock = SimClock.starting(EPOCH, speed).changed(changed_at, later_speed)
    check_edges(sim_clock, ns(changed_at) + beside_ns)
    check_edges(sim_clock, sim_clock.to_script(ns(changed_at)) + beside_ns)
    check_edges(sim_clock, sim_clock.to_script(ns(changed_at)))


def test_a_reopened_world_keeps_its_epoch_and_its_past(tmp_path: Path) -> None:
    database = Database(tmp_path / "state.db")
    open_sim_clock(database, now=EPOCH, speed=10)
    later = EPOCH + timedelta(hours=1)
    sim_clock = open_sim_clock(database, now=later, speed=1)
    again = open_sim_clock(database, now=later + timedelta(hours=1), speed=1)
    database.close()
    assert sim_clock.epoch_ns == again.epoch_ns == ns(EPOCH)
    assert sim_clock.to_script(ns(later)) == ns(EPOCH) + 36_000 * NS_PER_S
    assert again.to_script(ns(later) + NS_PER_S) == ns(EPOCH) + 36_001 * NS_PER_S
