"""Nodes that are slower than their peers, by their GPUs or by the step times their ranks print.

In synchronous training everybody waits for the slowest node. Ranks that wait inside an NCCL collective spin
and look busy, so the slow node looks less busy: the common case. Ranks that wait otherwise (gloo, a barrier,
a data loader) are idle, and the slow node is the only busy one. A node with throttled clocks looks like the
others; only step times show it.

A node is judged against those that have worked like it over the whole run so far. In reinforcement learning
some nodes train while others generate, and a leader may only serve: such nodes differ from the beginning,
take turns, or change together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median

from tui.analysis.health.check import IDLE, WORKING, Check, Example, FindingKind, Findings, Watched, limit
from tui.analysis.health.windows import first_time, means_of_parts, values_between
from tui.analysis.node_metrics import NodeSnapshot
from tui.analysis.series import Series
from tui.text.units import MINUTE_S, duration, percent

_HALVES = 2  # The lag must show in each half of the window, otherwise it is a passing dip.
_CLOSE, _CLOSE_SHARE = 0.05, 0.9
"""Others that close to each other wait for a node below this share of its use."""
_WAITED_FOR = 0.5  # Minimum utilization of a slow node that the idle others wait for.


@dataclass(frozen=True, slots=True)
class Limits:
    straggler_share: float = limit(
        0.8, "A node is slow if its utilization is below this share of its peers' median."
    )
    straggler_window_s: float = limit(300.0, "Time during which the node must be slow without interruption.")
    straggler_step_time: float = limit(
        1.1, "A rank is slow if its step time is this many times that of the others."
    )


@dataclass(frozen=True, slots=True)
class Lag:
    """A slow node's use, its peers' median, and since when it lags; ``busier``: they wait for it."""

    own: float
    others: float
    busier: bool
    since: float


_BIN_S = 150.0
"""Length of the bins in which nodes are compared; within it, samples and phases of a step average out."""

_ALIKE = 0.88
"""Two nodes are alike in a bin if the less busy one has this share of the other's use …"""

_MOSTLY = 0.75
"""… and work alike if they are so in this share of the bins."""


def bins_of(series: Series) -> Mapping[int, float]:
    """Return the means by bin number."""
    sums: dict[int, tuple[float, int]] = {}
    for time, value in zip(series.times, series.values, strict=True):
        if value == value:
            total, count = sums.get(number := math.floor(time / _BIN_S), (0.0, 0))
            sums[number] = (total + value, count + 1)
    return {number: total / count for number, (total, count) in sums.items()}


@dataclass(frozen=True, slots=True)
class Likeness:
    """Comparison of two nodes: whether they worked alike, and since when (epoch s) they no longer do."""

    worked_alike: bool
    apart_since: float | None = None


class Groups:
    """Compares nodes with each other, by their GPU use."""

    def __init__(self, nodes: Sequence[NodeSnapshot]) -> None:
        self.nodes = {node.name: node for node in nodes}
        self._bins = {name: bins_of(node.mean_utilization) for name, node in self.nodes.items()}
        self._memory = {name: bins_of(node.mean_memory) for name, node in self.nodes.items()}
        self.likeness = cache(self._likeness)

    def peers(self, name: str) -> list[str]:
        """Return the nodes that have worked like this one, at least until lately."""
        return [
            other
            for other in self.nodes
            if other != name and self.likeness(*sorted((name, other))).worked_alike
        ]

    def is_near(self, name: str, others: Sequence[str], share: float) -> bool:
        """Return True if a node was nearly always this share as busy as the busiest of the others."""
        pairs = [
            (own, max(self._bins[other].get(at, 0.0) for other in others))
            for at, own in self._bins[name].items()
        ]
        worked = [own >= share * most for own, most in pairs if most >= WORKING]
        return sum(worked) >= 0.9 * len(worked)

    def hold_alike(self, names: Iterable[str]) -> bool:
        """Return True if these nodes have as much in their GPUs' memory, as far as that is known."""
        levels = [max(self._memory[name].values()) for name in names if self._memory[name]]
        return not levels or min(levels) >= _ALIKE * max(levels)

    def _likeness(self, one: str, other: str) -> Likeness:
        own, others = self._bins[one], self._bins[other]
        common = [at for at in sorted(own.keys() & others.keys()) if max(own[at], others[at]) >= WORKING]
        alike = [min(own[at], others[at]) >= _ALIKE * max(own[at], others[at]) for at in common]
        apart = _apart_from(alike)
        before = alike[:apart]
        since = common[apart] * _BIN_S if apart < len(common) else None
        worked_alike = len(before) >= 4 and sum(before) >= _MOSTLY * len(before)
        return Likeness(worked_alike, since)


def _apart_from(alike: Sequence[bool]) -> int:
    """Return the position from which two nodes are mostly not alike any more; their number if they are."""
    position, differing = len(alike), 0
    for count, is_alike in enumerate(reversed(alike), 1):
        differing += not is_alike
        if not is_alike and differing >= _MOSTLY * count:
            position = len(alike) - count
    return position


def find(run: Watched, limits: Limits) -> Findings:
    comparable = _is_comparable(run, limits, run.now_s)
    at = run.metrics.at
    if not (comparable or run.held_nodes):
        # What was so before a pause is so in it: saves and evaluations slow all nodes. The sample at its
        # beginning has a part of it.
        paused_at = run.paused_at(run.now_s - limits.straggler_window_s, run.now_s)
        at = paused_at - MINUTE_S if paused_at and _is_comparable(run, limits, paused_at) else None
    slow = _lags(run, limits, at)
    for name, lag in slow.items():
        uses = f"GPUs at {percent(lag.own)}, others at {percent(lag.others)}"
        how = "keeps the others waiting" if lag.busier else "lags behind the other nodes"
        short = f"{name} slow: GPU {percent(lag.own)} vs {percent(lag.others)}"
        slowed_by = 1 - min(lag.own, lag.others) / max(lag.own, lag.others)
        # What costs nothing is an oddity: most of the time that the others wait must show in the steps.
        costs = not run.keeps_speed(lag.since, slowed_by * 2 / 3)
        yield run.finding(
            "warning" if costs else "info",
            f"{name} {how}: {uses}{'' if costs else '; steps have not slowed as much'}",
            short=short,
            node=name,
            since_s=lag.since,
            slowed_by=slowed_by if costs else 0.0,
        )
    if not comparable:  # A pause ends no finding.
        yield from (
            finding for finding in run.held.values() if finding.kind == run.kind and finding.node not in slow
        )
    yield from _by_step_time(run, limits, slow)


def may_be_found(run: Watched) -> bool:
    """Return True if a node looks slow, but nodes can't be compared yet."""
    run.kind, limits = CHECK.kind, run.rules.limits(Limits)
    is_judged = bool(run.held_nodes) or _is_comparable(run, limits, run.now_s)
    return not is_judged and bool(_lags(run, limits, run.metrics.at))


def _is_comparable(run: Watched, limits: Limits, at: float) -> bool:
    """Return True if the nodes had worked for long enough to know their roles, and had not paused."""
    # Roles show after so many windows.
    since = run.training_since if run.training_since is not None else run.works_since
    if min(at, run.metrics.at or 0.0) - since < 3 * limits.straggler_window_s:
        return False
    if at == run.now_s and run.progress.run_phase is not None:
        return False
    return run.paused_at(at - limits.straggler_window_s, at) is None


def _lags(run: Watched, limits: Limits, at: float | None) -> dict[str, Lag]:
    held_nodes = run.held_nodes
    # Nodes that have not worked yet are still loading.
    nodes = [node for node in run.metrics.nodes if first_time(node.mean_utilization, IDLE) < math.inf]
    if at is None or len(nodes) < 2:
        return {}
    step_s = run.progress.step_interval_s or 0.0
    # In less, nodes that take turns within a step look different by chance.
    part_s = max(limits.straggler_window_s / _HALVES, (6 if run.is_reinforcement else 2) * step_s)
    halves = {node.name: means_of_parts([node.mean_utilization], at, part_s, _HALVES) for node in nodes}
    halves = {name: means for name, means in halves.items() if len(means) == _HALVES}
    busiest = max(map(max, halves.values()), default=0.0)
    if all(min(means) >= _CLOSE_SHARE * busiest for means in halves.values()):
        return {}  # by far the most common case
    groups = Groups(nodes)
    lags: dict[str, Lag] = {}
    for name in halves:
        peers = [peer for peer in _peers(run, groups, name) if peer in halves]
        share = run.eased(limits.straggler_share, 1.0, held=name in held_nodes)
        earlier, newest = (
            _compare(halves[name][half], [halves[peer][half] for peer in peers], share)
            for half in range(_HALVES)
        )
        if earlier is None or newest is None or earlier[2] != newest[2]:
            continue
        use = groups.nodes[name].mean_utilization
        # A few low samples prove nothing; a node that has been found may wait in bursts.
        if (
            name not in held_nodes
            and not newest[2]
            and not _is_lasting(use, at - 2 * part_s, share * newest[1])
        ):
            continue
        starts = [groups.likeness(*sorted((name, peer))).apart_since for peer in peers]
        since = median([start for start in starts if start is not None] or [at])
        lags[name] = Lag(*newest, max(use.times[0], min(since, at - 2 * part_s)))
    return {
        name: lag for name, lag in lags.items() if name in held_nodes or not _is_role(run, groups, name, lags)
    }


def _is_lasting(use: Series, start: float, below: float) -> bool:
    """Return True if four of five samples since a time, and both of the newest, are below a level."""
    values = values_between(use, start)
    return sum(value < below for value in values) >= 0.8 * len(values) and max(values[-2:]) < below


def _peers(run: Watched, groups: Groups, name: str) -> list[str]:
    """Return the nodes that a node is judged against: those that have worked like it.

    Of three or more, a single one that was never like the others is slow, too, if all but its speed is
    alike. A held one was like them before the samples begin.
    """
    peers = groups.peers(name)
    others = [other for other in groups.nodes if other != name]
    if peers:
        return peers
    if name in run.held_nodes:
        return [other for other in others if other not in run.held_nodes]
    is_single = len(others) > 1 and all(len(groups.peers(other)) >= len(others) - 1 for other in others)
    leads = name == run.metrics.nodes[0].name
    if not is_single or leads or run.is_reinforcement or not groups.hold_alike(groups.nodes):
        return []
    return others if groups.is_near(name, others, _WAITED_FOR) else []


def _compare(own: float, others: Sequence[float], share: float) -> tuple[float, float, bool] | None:
    """Return a node's use, its peers' and if it is the busier one; None if it is not slow."""
    if not others or min(own, median(others)) < IDLE:  # what does nothing is no slow node
        return None
    usual, apart = median(others), max(others) - min(others)
    if usual >= WORKING and own < share * usual:
        return own, usual, False
    waits_below = max(share, _CLOSE_SHARE) if apart <= _CLOSE else share
    if len(others) > 2 and apart <= 3 * _CLOSE and own >= _WAITED_FOR and usual < waits_below * own:
        return own, usual, True
    return None


def _is_role(run: Watched, groups: Groups, name: str, lags: Mapping[str, Lag]) -> bool:
    """Return True if a node does other work: it always did, or another one changed together with it."""
    lag = lags[name]
    if lag.busier and (run.is_reinforcement or not groups.peers(name)):
        return True
    return any(
        other != name
        and abs(other_lag.since - lag.since) <= 2 * _BIN_S
        and abs(other_lag.own - lag.own) <= 2 * _CLOSE
        for other, other_lag in lags.items()
    )


def _by_step_time(run: Watched, limits: Limits, slow: Mapping[str, Lag]) -> Findings:
    """Report ranks whose printed step times were longer throughout: in each half of the newest ones."""
    own = {
        view.replica: view.step_times_s
        for view in run.progress.streams
        if view.replica is not None and view.step_times_s
    }
    for replica, halves in own.items() if len(own) > 2 else ():
        others = [max(times) for name, times in own.items() if name != replica]
        usual = median(others)
        spread = sum(abs(other - usual) for other in others) / len(others) / usual
        # A slow rank is outside of this many mean deviations of the others.
        least = max(limits.straggler_step_time, 1 + 4.0 * spread)
        least = run.eased(least, 1.0, held=run.is_held(replica))
        # Ranks whose steps take this many times as long count other steps.
        if replica not in slow and least * usual < min(halves) and max(halves) < 3.0 * usual:
            text = f"{replica} slow: {_seconds(sum(halves) / 2)}/step vs {_seconds(usual)}"
            yield run.finding("warning", text, node=replica)


def _seconds(value: float) -> str:
    return f"{value:.2f}s" if value < 10 else duration(value)


CHECK = Check(
    FindingKind(
        "straggler",
        50,
        "{node} slow",
        note="▲ slow",
        figures=("GPU use", "CPU", "GPU memory", "memory", "disk"),
    ),
    "Slow node",
    "warning",
    Limits,
    find,
    needs="a node whose utilization is clearly below the median of its peers throughout the window, or"
    " throughout four steps if these take longer; or one that is busy while three or more peers wait at the"
    " same lower level; or ranks that print slower step times, beyond the noise of the others, in both"
    " halves of their newest 40 steps. Peers are nodes that have worked alike over the run so far; a single"
    " node that never did is judged if the others are alike and hold as much in memory. A node with"
    " throttled clocks has normal utilization: only step times show it.",
    excused="nodes that differ from the beginning, take turns or change together with others (roles), a"
    " leader, a busier trainer in reinforcement learning, idle nodes, evaluations and saves, and the first 15"
    " minutes. To a remark (info): a node that lags while steps have not slowed by most of its lag.",
    costs="what the others wait: a node at 70% of their speed costs 30% of all nodes",
    covered_by=frozenset({"node-missing", "gpu-idle"}),
    examples=(
        Example(
            "one of four slows down",
            "node-3 slow: GPU 60% vs 95%",
            gpu=(0.95, 0.95, 0.95, lambda at: 0.95 if at < 3600 else 0.6),
        ),
        Example("two trainers beside two rollouts", gpu=(0.95, 0.95, 0.4, 0.4)),
        Example(
            "half of the nodes change their work",
            gpu=(0.95, 0.95, *[lambda at: 0.95 if at < 3600 else 0.5] * 2),
        ),
    ),
)
