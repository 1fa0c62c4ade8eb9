"""What grows and falls back again and again is no leak; what grows beyond all that is one."""

import math
import random

import pytest
from metrics_payloads import START_S
from watching import watched

from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.finding import FindingKind

HOUR_S = 3600.0


def saw(period_s: float, low: float, high: float):
    """Teeth whose tops differ a little, as real ones do."""

    def level(at):
        tooth, within = divmod(at, period_s)
        return low + (high - low) * (1 - 0.05 * (int(tooth) * 7 % 5)) * within / period_s

    return level


@pytest.mark.parametrize(
    ("level", "kind"),
    [
        ({"disk": saw(HOUR_S, 0.3, 0.6)}, FindingKind.DISK_FILLING),
        ({"disk": saw(2400, 0.1, 0.8)}, FindingKind.DISK_FILLING),
        ({"gpu_memory": saw(2 * HOUR_S, 40, 65)}, FindingKind.MEMORY_LEAK),
        ({"memory": saw(5400, 100, 300)}, FindingKind.MEMORY_LEAK),
    ],
    ids=["checkpoints pruned", "cache emptied", "allocator", "host memory collected"],
)
def test_a_saw_is_told_of_in_its_first_tooth_at_most(level, kind):
    told = [(at, found) for at, found in watched({"node-0": level}, 8) if found]
    assert {one.kind for _, found in told for one in found} <= {kind}, "nobody can know of the first tooth"
    assert all(at <= 2 * HOUR_S for at, _ in told), told[-1]


def test_growth_beyond_where_it_ever_fell_back_from_is_told():
    tooth = saw(HOUR_S, 0.3, 0.5)
    level = lambda at: tooth(at) if at < 4 * HOUR_S else 0.3 + (at - 4 * HOUR_S) / HOUR_S * 0.1  # noqa: E731
    looks = [(at, found) for at, found in watched({"node-0": {"disk": level}}, 8) if at > HOUR_S * 1.1]
    first = next(at for at, found in looks if found)
    assert 0.5 < level(first) < 0.85, "beyond its tops, and long before it is full"
    assert all(found[0].kind == FindingKind.DISK_FILLING for at, found in looks if at >= first)


def test_of_two_equal_tops_the_noise_makes_one_higher():
    level = lambda at: 75.6 + math.sin(at / 300) + random.Random(at * 7 + 1).gauss(0, 0.15)  # noqa: E731
    assert not any(found for _, found in watched({"node-0": {"gpu_memory": level}}, 2, every_s=60))


def test_only_a_disk_that_is_nearly_full_is_critical():
    level = lambda at: 0.4 + 0.15 * at / HOUR_S  # noqa: E731
    looks = [(at, one.severity) for at, found in watched({"node-0": {"disk": level}}, 4) for one in found]
    assert looks[0][1] == "warning"
    assert 0.95 <= level(next(at for at, severity in looks if severity == "critical")) < 0.97


def test_a_saw_whose_teeth_grow_is_told_of_at_their_tops():
    tooth = saw(2400, 0.1, 0.3)
    level = lambda at: tooth(at) + 0.05 * at / HOUR_S  # noqa: E731
    told = [at for at, found in watched({"node-0": {"disk": level}}, 13) if found and at > HOUR_S]
    assert told
    assert level(told[0]) < 0.9, "while there is time to do something"


@pytest.mark.parametrize(("restarts", "expected"), [((), False), ((START_S + 6 * HOUR_S,), True)])
def test_a_crash_is_no_falling_back(restarts, expected):
    """Memory that leaked until the run was killed leaks again: what was before the restart is no comfort."""
    level = {"gpu_memory": lambda at: 20 + at % (6 * HOUR_S) / (6 * HOUR_S) * 57}
    *_, (_, found) = watched({"node-0": level}, 11, progress=ProgressSnapshot(restarts=restarts))
    assert (FindingKind.MEMORY_LEAK in [one.kind for one in found]) == expected
