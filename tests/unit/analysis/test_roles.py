"""Nodes that do something else are no stragglers; one that falls behind its own kind is."""

import random
from collections.abc import Mapping

import pytest
from watching import Level, watched

from tui.analysis.health.checks import nodes_found
from tui.analysis.run.finding import FindingKind


def steady(level: float) -> dict[str, Level]:
    return {"gpu": lambda at: level}


def phases(first: float, second: float, period_s: float = 1200.0, **levels: Level) -> dict[str, Level]:
    """One level for half of each period, another for the other half."""
    return {"gpu": lambda at: first if at % period_s < period_s / 2 else second, **levels}


def within_steps(first: float, second: float) -> dict[str, Level]:
    """One level for most of each step, another for the rest: samples a minute apart see either by chance."""
    late_s = lambda at: random.Random(at * 3 + 1).uniform(-15, 15)  # noqa: E731
    return {"gpu": lambda at: first if (at + late_s(at)) % 151 < 95 else second}


def drifting(level: float, to: float, at_s: float) -> dict[str, Level]:
    return {"gpu": lambda at: level if at < at_s else to}


def named(*nodes: Mapping[str, Level]) -> dict[str, Mapping[str, Level]]:
    return {f"node-{number}": node for number, node in enumerate(nodes)}


TRAINER, ROLLOUT = steady(0.95), steady(0.4)
OFF = drifting(0.95, 0.6, 3600)
MEMORY = {"gpu_memory": lambda at: 70.0}, {"gpu_memory": lambda at: 44.0}, {"gpu_memory": lambda at: 22.0}
ROLES: dict[str, tuple[dict[str, Mapping[str, Level]], set[str]]] = {
    "rollouts beside trainers": (named(*[TRAINER] * 2, *[steady(0.3)] * 2), set()),
    "three of eight serve": (named(*[steady(0.12)] * 3, *[steady(0.97)] * 5), set()),
    "a leader that schedules": (named(ROLLOUT, *[TRAINER] * 3), set()),
    "turns of two and two": (named(*[phases(0.95, 0.08)] * 2, *[phases(0.1, 0.97)] * 2), set()),
    "a light node beside one": (named(TRAINER, steady(0.35) | MEMORY[2]), set()),
    "turns of one": (named(phases(0.95, 0.08, **MEMORY[0]), phases(0.1, 0.97, **MEMORY[1])), set()),
    "slow for 3 minutes": (
        named(*[TRAINER] * 3, {"gpu": lambda at: 0.6 if 5400 < at < 5560 else 0.95}),
        set(),
    ),
    "a little slower": (named(*[TRAINER] * 3, steady(0.9)), set()),
    "turns within a step": (named(within_steps(0.92, 0.0), within_steps(0.0, 0.92)), set()),
    "nobody works": (named(steady(0.02), steady(0.001)), set()),
    "one drifts off": (named(*[TRAINER] * 3, OFF), {"node-3"}),
    "the leader drifts off": (named(OFF, *[TRAINER] * 3), {"node-0"}),
    "two drift off": (named(*[TRAINER] * 2, *[OFF] * 2), {"node-2", "node-3"}),
    "slow from the beginning": (named(*[TRAINER] * 3, steady(0.6)), {"node-3"}),
    "a trainer among trainers": (named(*[steady(0.3)] * 4, *[TRAINER] * 3, OFF), {"node-7"}),
    "a rollout among rollouts": (named(*[TRAINER] * 4, *[ROLLOUT] * 3, drifting(0.4, 0.2, 3600)), {"node-7"}),
    "beside a leader that schedules": (named(steady(0.2), *[TRAINER] * 3, OFF), {"node-4"}),
    "one of two": (named(TRAINER, drifting(0.95, 0.5, 3600)), {"node-1"}),
}


@pytest.mark.parametrize("name", ROLES)
def test_only_whoever_falls_behind_its_own_kind_is_slow(name: str) -> None:
    nodes, slow = ROLES[name]
    looks = watched(nodes, hours=2)
    assert {node for _, found in looks for node in nodes_found(found, FindingKind.STRAGGLER)} == slow


def test_who_fell_behind_stays_slow_when_what_was_before_is_forgotten():
    """The samples of a job that is watched for long reach back some hours: then it was always so."""
    off = drifting(0.95, 0.6, 1800)
    *_, (_, found) = watched(named(TRAINER, TRAINER, off, off), 8, every_s=1200)
    assert nodes_found(found, FindingKind.STRAGGLER) == {"node-2", "node-3"}


def test_a_node_that_waits_in_turn_is_not_idle_for_that():
    nodes = named(*[phases(0.95, 0.01)] * 2, *[phases(0.0, 0.97)] * 2)
    told = [at for at, found in watched(nodes, 3) if found]
    assert all(at <= 2400 for at in told), "the first wait alone is news"
    hung = {
        name: {"gpu": lambda at, use=use: use["gpu"](at) if at < 9000 else 0.0} for name, use in nodes.items()
    }
    found = dict(watched(hung, 3))[3 * 3600]
    assert [one.kind for one in found] == [FindingKind.GPU_IDLE]
