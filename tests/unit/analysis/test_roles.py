"""Nodes that do something else are no stragglers; one that falls behind its own kind is."""

from collections.abc import Mapping

import pytest
from watching import Level, watched

from tui.analysis.health.checks import nodes_found
from tui.analysis.run.finding import FindingKind

MINUTE_S = 60.0


def steady(level: float) -> dict[str, Level]:
    return {"gpu": lambda at: level}


def phases(first: float, second: float, period_s: float = 1200.0, **levels: Level) -> dict[str, Level]:
    """One level for half of each period, another for the other half."""
    return {"gpu": lambda at: first if at % period_s < period_s / 2 else second, **levels}


def drifting(level: float, to: float, at_s: float) -> dict[str, Level]:
    return {"gpu": lambda at: level if at < at_s else to}


def named(*nodes: Mapping[str, Level]) -> dict[str, Mapping[str, Level]]:
    return {f"node-{number}": node for number, node in enumerate(nodes)}


def slow_in(nodes: Mapping[str, Mapping[str, Level]], hours: float = 2.0) -> set[str]:
    return {name for _, found in watched(nodes, hours) for name in nodes_found(found, FindingKind.STRAGGLER)}


@pytest.mark.parametrize(
    "nodes",
    [
        named(*[steady(0.95)] * 2, *[steady(0.3)] * 2),
        named(*[steady(0.12)] * 3, *[steady(0.97)] * 5),
        named(steady(0.4), *[steady(0.95)] * 3),
        named(*[phases(0.95, 0.08)] * 2, *[phases(0.1, 0.97)] * 2),
        named(*[phases(0.95, 0.08)] * 4, *[phases(0.1, 0.97)] * 2),
        named(steady(0.95), steady(0.35) | {"gpu_memory": lambda at: 22.0}),
        named(phases(0.95, 0.08, gpu_memory=lambda at: 70.0), phases(0.1, 0.97, gpu_memory=lambda at: 44.0)),
        named(*[steady(0.95)] * 3, {"gpu": lambda at: 0.6 if 5400 < at < 5560 else 0.95}),
        named(*[steady(0.95)] * 3, steady(0.9)),
        named(steady(0.02), steady(0.001)),
        named(steady(0.5)),
    ],
    ids=[
        "rollouts beside trainers",
        "three of eight serve",
        "a leader that schedules",
        "turns of two and two",
        "turns of four and two",
        "a light node beside one",
        "turns of one and one",
        "slow for three minutes",
        "a little slower",
        "nobody works",
        "alone",
    ],
)
def test_other_roles_are_no_stragglers(nodes):
    assert slow_in(nodes) == set()


@pytest.mark.parametrize(
    ("nodes", "slow"),
    [
        (named(*[steady(0.95)] * 3, drifting(0.95, 0.6, 3600)), {"node-3"}),
        (named(drifting(0.95, 0.6, 3600), *[steady(0.95)] * 3), {"node-0"}),
        (named(*[steady(0.95)] * 2, *[drifting(0.95, 0.6, 3600)] * 2), {"node-2", "node-3"}),
        (named(*[steady(0.95)] * 3, steady(0.6)), {"node-3"}),
        (named(*[steady(0.3)] * 4, *[steady(0.95)] * 3, drifting(0.95, 0.6, 3600)), {"node-7"}),
        (named(*[steady(0.95)] * 4, *[steady(0.4)] * 3, drifting(0.4, 0.2, 3600)), {"node-7"}),
        (named(steady(0.2), *[steady(0.95)] * 3, drifting(0.95, 0.6, 3600)), {"node-4"}),
        (named(steady(0.95), drifting(0.95, 0.5, 3600)), {"node-1"}),
    ],
    ids=[
        "one drifts off",
        "the leader drifts off",
        "two drift off",
        "one is slow from the beginning",
        "a trainer among trainers",
        "a rollout among rollouts",
        "beside a leader that schedules",
        "one of two",
    ],
)
def test_whoever_falls_behind_its_own_kind_is_slow(nodes, slow):
    assert slow_in(nodes) == slow


@pytest.mark.parametrize("slow", [{"node-0"}, {"node-2", "node-3"}], ids=["the leader", "two at once"])
def test_who_fell_behind_stays_slow_when_what_was_before_is_forgotten(slow):
    """The samples of a job that is watched for long reach back some hours: then it was always so."""
    nodes = {
        name: drifting(0.95, 0.6, 1800) if name in slow else steady(0.95)
        for name in ("node-0", "node-1", "node-2", "node-3")
    }
    *_, (_, found) = watched(nodes, 8, every_s=1200)
    assert nodes_found(found, FindingKind.STRAGGLER) == slow


def test_a_node_that_waits_in_turn_is_not_idle_for_that():
    nodes = named(*[phases(0.95, 0.01)] * 2, *[phases(0.0, 0.97)] * 2)
    told = [at for at, found in watched(nodes, 3) if found]
    assert all(at <= 40 * MINUTE_S for at in told), "the first wait alone is news"
    hung = {
        name: {"gpu": lambda at, use=use: use["gpu"](at) if at < 9000 else 0.0} for name, use in nodes.items()
    }
    found = dict(watched(hung, 3))[3 * 3600]
    assert [one.kind for one in found] == [FindingKind.GPU_IDLE]
