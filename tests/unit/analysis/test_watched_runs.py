"""Runs watched from their beginning, as the job screen does it: stragglers and roles, leaks and saws."""

import math
import random
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

import pytest
from metrics_payloads import GIB, H100, START_S, payload, series

from api_client.models import TrainingJob
from support.watched_run import WatchedRun
from tui.analysis.health.registry import KINDS
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.finding import HealthFinding
from tui.analysis.series import Series
from tui.readers.health_metrics import HEALTH_STEP_S

HOUR_S = 3600.0
Level = Callable[[float], float]


def watched(
    nodes: Mapping[str, Mapping[str, Level]], hours: float, *, every_s: int = 300, **fields: Any
) -> Iterator[tuple[float, tuple[HealthFinding, ...]]]:
    """What is found every five minutes, by seconds from the beginning, of samples a minute apart."""
    job = TrainingJob(
        id="j",
        current_status="TRAINING_JOB_RUNNING",
        instance_type=H100,
        created_at=datetime.fromtimestamp(START_S, UTC),
        node_count=len(nodes),
    )
    run = WatchedRun(job)
    for at in range(0, int(hours * 3600) + 1, every_s):
        now = datetime.fromtimestamp(START_S + at, UTC)
        new = range(max(0, at - every_s + HEALTH_STEP_S), at + 1, HEALTH_STEP_S)
        answer = payload({name: series(new, **levels) for name, levels in nodes.items()})
        yield at, run.look(now, [], answer, **fields)


def steady(level: float) -> dict[str, Level]:
    return {"gpu": lambda at: level}


def phases(first: float, second: float, period_s: float = 1200.0, **levels: Level) -> dict[str, Level]:
    return {"gpu": lambda at: first if at % period_s < period_s / 2 else second, **levels}


def within_steps(first: float, second: float) -> dict[str, Level]:
    late_s = lambda at: random.Random(at * 3 + 1).uniform(-15, 15)  # noqa: E731
    return {"gpu": lambda at: first if (at + late_s(at)) % 151 < 95 else second}


def drifting(level: float, to: float, at_s: float) -> dict[str, Level]:
    return {"gpu": lambda at: level if at < at_s else to}


def joining(level: float, at_s: float) -> dict[str, Level]:
    return {"gpu": lambda at: math.nan if at < at_s else level}


def named(*nodes: Mapping[str, Level]) -> dict[str, Mapping[str, Level]]:
    return {f"node-{number}": node for number, node in enumerate(nodes)}


TRAINER, ROLLOUT = steady(0.95), steady(0.4)
DIP = {"gpu": lambda at: 0.6 if 5400 < at < 5560 else 0.95}
WAVES = {"gpu": lambda at: 0.95 if at % 300 < 150 else 0.88}
OFF = drifting(0.95, 0.6, 3600)
MEMORY = [{"gpu_memory": lambda at, gib=gib: gib * GIB} for gib in (70, 44, 22)]
ROLES: dict[str, tuple[dict[str, Mapping[str, Level]], set[str]]] = {
    "rollouts beside trainers": (named(*[TRAINER] * 2, *[steady(0.3)] * 2), set()),
    "three of eight serve": (named(*[steady(0.12)] * 3, *[steady(0.97)] * 5), set()),
    "a leader that schedules": (named(ROLLOUT, *[TRAINER] * 3), set()),
    "a leader that trains while two serve": (named(steady(0.37), TRAINER, WAVES), set()),
    "turns of two and two": (named(*[phases(0.95, 0.08)] * 2, *[phases(0.1, 0.97)] * 2), set()),
    "a light node beside one": (named(TRAINER, steady(0.35) | MEMORY[2]), set()),
    "turns of one": (named(phases(0.95, 0.08, **MEMORY[0]), phases(0.1, 0.97, **MEMORY[1])), set()),
    "slow for 3 minutes": (named(*[TRAINER] * 3, DIP), set()),
    "a little slower": (named(*[TRAINER] * 3, steady(0.9)), set()),
    "turns within a step": (named(within_steps(0.92, 0.0), within_steps(0.0, 0.92)), set()),
    "nobody works": (named(steady(0.02), steady(0.001)), set()),
    "one drifts off": (named(*[TRAINER] * 3, OFF), {"node-3"}),
    "the leader drifts off": (named(OFF, *[TRAINER] * 3), {"node-0"}),
    "two join the busier of two": (
        named(TRAINER, steady(0.5) | MEMORY[2], *[joining(0.95, 3600)] * 2),
        set(),
    ),
    "two change their work together": (named(*[TRAINER] * 2, *[OFF] * 2), set()),
    "two drift off, one after the other": (
        named(*[TRAINER] * 3, drifting(0.95, 0.6, 2700), OFF),
        {"node-3", "node-4"},
    ),
    "slow from the beginning": (named(*[TRAINER] * 3, steady(0.6)), {"node-3"}),
    "a trainer among trainers": (named(*[steady(0.3)] * 4, *[TRAINER] * 3, OFF), {"node-7"}),
    "a rollout among rollouts": (named(*[TRAINER] * 4, *[ROLLOUT] * 3, drifting(0.4, 0.2, 3600)), {"node-7"}),
    "beside a leader that schedules": (named(steady(0.2), *[TRAINER] * 3, OFF), {"node-4"}),
    "one of two": (named(TRAINER, drifting(0.95, 0.5, 3600)), {"node-1"}),
}


def slow_in(findings: tuple[HealthFinding, ...]) -> set[str | None]:
    return {each.node for each in findings if each.kind == KINDS["straggler"]}


@pytest.mark.parametrize("name", ROLES)
@pytest.mark.proves("docs/health.md", "Health and cost")
def test_only_whoever_falls_behind_its_own_kind_is_slow(name: str) -> None:
    nodes, slow = ROLES[name]
    looks = watched(nodes, hours=2)
    assert {node for _, found in looks for node in slow_in(found)} == slow


def test_who_fell_behind_stays_slow_when_what_was_before_is_forgotten():
    """The samples of a job that is watched for long reach back some hours: then it was always so."""
    off = drifting(0.95, 0.6, 1800)
    *_, (_, found) = watched(named(TRAINER, TRAINER, TRAINER, off), 8, every_s=1200)
    assert slow_in(found) == {"node-3"}


def test_a_node_that_waits_in_turn_is_not_idle_for_that():
    nodes = named(*[phases(0.95, 0.01)] * 2, *[phases(0.0, 0.97)] * 2)
    told = [at for at, found in watched(nodes, 3) if found]
    assert all(at <= 2400 for at in told), "the first wait alone is news"
    hung = {
        name: {"gpu": lambda at, use=use: use["gpu"](at) if at < 9000 else 0.0} for name, use in nodes.items()
    }
    found = dict(watched(hung, 3))[3 * 3600]
    assert [one.kind for one in found] == [KINDS["gpu-idle"]]


def saw(period_s: float, low: float, high: float):
    def level(at):
        tooth, within = divmod(at, period_s)
        return low + (high - low) * (1 - 0.05 * (int(tooth) * 7 % 5)) * within / period_s

    return level


@pytest.mark.parametrize(
    ("level", "kind"),
    [
        ({"disk": saw(HOUR_S, 0.3, 0.6)}, KINDS["disk-filling"]),
        ({"disk": saw(2400, 0.1, 0.8)}, KINDS["disk-filling"]),
        ({"gpu_memory": saw(2 * HOUR_S, 40 * GIB, 65 * GIB)}, KINDS["memory-leak"]),
        ({"memory": saw(5400, 100 * GIB, 300 * GIB)}, KINDS["memory-leak"]),
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
    looks = [(at, found) for at, found in watched({"node-0": {"disk": level}}, 9) if at > HOUR_S * 1.1]
    first = next(at for at, found in looks if found)
    assert 0.5 < level(first) < 0.85, "beyond its tops, and long before it is full"
    assert all(found[0].kind == KINDS["disk-filling"] for at, found in looks if at >= first)


def test_of_two_equal_tops_the_noise_makes_one_higher():
    level = lambda at: (75.6 + math.sin(at / 300) + random.Random(at * 7 + 1).gauss(0, 0.15)) * GIB  # noqa: E731
    assert not any(found for _, found in watched({"node-0": {"gpu_memory": level}}, 2, every_s=60))


def test_only_a_disk_that_is_nearly_full_is_critical():
    level = lambda at: 0.4 + 0.15 * at / HOUR_S  # noqa: E731
    looks = [(at, one.severity) for at, found in watched({"node-0": {"disk": level}}, 4) for one in found]
    assert [looks[0][1], looks[-1][1]] == ["info", "critical"]
    assert 0.95 <= level(next(at for at, severity in looks if severity == "critical")) < 0.97


def test_a_saw_whose_teeth_grow_is_told_of_at_their_tops():
    tooth = saw(2400, 0.1, 0.3)
    level = lambda at: tooth(at) + 0.05 * at / HOUR_S  # noqa: E731
    looks = watched({"node-0": {"disk": level}}, 14, every_s=60)
    told = [at for at, found in looks if found and at > HOUR_S]
    assert told
    assert level(told[0]) < 0.96, "while there is time to do something"


@pytest.mark.parametrize(("restarts", "expected"), [((), False), ((START_S + 6 * HOUR_S,), True)])
def test_a_crash_is_no_falling_back(restarts, expected):
    """Memory that leaked until the run was killed leaks again: what was before the restart is no comfort."""
    level = {"gpu_memory": lambda at: (20 + at % (6 * HOUR_S) / (6 * HOUR_S) * 57) * GIB}
    *_, (_, found) = watched({"node-0": level}, 11, progress=ProgressSnapshot(restarts=restarts))
    assert (KINDS["memory-leak"] in [one.kind for one in found]) == expected


def test_noise_does_not_make_growth_a_remark_again():
    noise = random.Random(4)
    level = lambda at: 400 * GIB * (0.5 + 0.09 * at / HOUR_S + noise.gauss(0, 0.01))  # noqa: E731
    looks = [(at, one.severity) for at, found in watched({"node-0": {"memory": level}}, 4.8) for one in found]
    sure = [at for at, severity in looks if severity == "warning"]
    assert sure[0] == pytest.approx(3.0 * HOUR_S, abs=900)
    assert all(severity == "warning" for at, severity in looks if at >= sure[0])


GROWS: Mapping[str, Level] = {"memory": lambda at: (200 + at / HOUR_S * 40) * GIB}


@pytest.mark.parametrize(
    ("nodes", "severity"),
    [(named(GROWS, GROWS), "info"), (named(GROWS, {}), "warning")],
    ids=["cache", "leak"],
)
@pytest.mark.proves("docs/health.md", "Health and cost")
def test_memory_that_grows_on_all_nodes_alike_may_be_a_cache(nodes, severity):
    *_, (_, found) = watched(nodes, 2.5)
    assert [(str(one.kind), one.severity) for one in found] == [("memory-leak", severity)]


@pytest.mark.parametrize(("step_s", "severity"), [(10.0, "warning"), (15.0, "info")])
@pytest.mark.proves("docs/health.md", "Health and cost")
def test_memory_of_steps_that_take_longer_is_no_leak(step_s, severity):
    level = lambda at: (58 + at / HOUR_S * 9) * GIB  # noqa: E731
    times = [START_S + at for at in accumulate(10.0 if n < 180 else step_s for n in range(400))]
    marks = Series("step", tuple(times), tuple(map(float, range(400))))
    progress = ProgressSnapshot(step=399, step_series=marks)
    *_, (_, found) = watched(
        {"node-0": {"gpu_memory": level}}, times[-1] / HOUR_S - START_S / HOUR_S, progress=progress
    )
    leaks = [one.severity for one in found if str(one.kind) == "memory-leak"]
    assert leaks == [severity]
