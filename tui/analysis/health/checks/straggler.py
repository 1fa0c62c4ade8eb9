"""Nodes that have become slower than the others, by their GPUs or by the step times their ranks print.

In synchronous training all nodes wait for the slowest node. Ranks that wait inside an NCCL collective spin
and look busy, so the slow node looks less busy: the common case. Ranks that wait in another way (gloo, a
barrier, a data loader) are idle, and only the slow node is busy. A node with throttled clocks looks like the
other nodes; only step times show it.

A node's utilization is divided by the median of the other nodes, and this ratio is compared with its own
earlier values. So the roles of nodes need not be known: a trainer beside rollouts keeps its ratio, and nodes
that take turns have had as low a ratio before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from tui.analysis.health.check import IDLE, Check, Example, FindingKind, Findings, Watched, limit
from tui.analysis.health.windows import EARLIER, first_time, flipped
from tui.analysis.health.worse import worsened
from tui.analysis.series import mean_between, values_between
from tui.text.units import MINUTE_S, percent, step_time

_BINS = 2
"""Number of bins of the window: a node must be slow in each, otherwise it is a passing dip."""
_SIMILAR = 0.88
"""Nodes are similar if the least of their values is at least this fraction of the greatest."""
_WAITED_FOR = 0.5  # Minimum utilization of a slow node that the idle others wait for.
_KEEPS_PACE = 0.9  # A node below this fraction of the busiest node's utilization may be waiting for it.


@dataclass(frozen=True, slots=True)
class Limits:
    straggler_share: float = limit(
        0.8, "A node is slow if its utilization is below this share of its peers' median."
    )
    straggler_window_s: float = limit(600.0, "Time during which the node must be slow without interruption.")
    straggler_step_time: float = limit(
        1.1, "A rank is slow if its step time is this many times that of the others."
    )


@dataclass(frozen=True, slots=True)
class Lag:
    """A slow node: its GPU utilization, the median of the other nodes, and the start (epoch s)."""

    utilization: float
    others: float
    since: float
    others_wait: bool
    """True if the other nodes wait for it idle; False if they look busier than it."""


def find(run: Watched, limits: Limits) -> Findings:
    # In reinforcement learning, nodes vary by design.
    slow = {} if run.is_reinforcement else _lags(run, limits)
    for name, lag in slow.items():
        own, others = lag.utilization, lag.others
        utilizations = f"GPUs at {percent(own)}, others at {percent(others)}"
        how = "keeps the others waiting" if lag.others_wait else "lags behind the other nodes"
        short = f"{name} slow: GPU {percent(own)} vs {percent(others)}"
        slowed_by = 1 - min(own, others) / max(own, others)
        # Warn only if steps have slowed by most of the lag; if not, the lag costs little. If the lag is as
        # old as the samples, it may have slowed the steps before, so no usual speed is known.
        lost = run.lost_speed(lag.since) if lag.since >= run.samples_since + MINUTE_S else None
        costs = lost is None or lost >= slowed_by * 2 / 3
        yield run.finding(
            "warning" if costs else "info",
            f"{name} {how}: {utilizations}{'' if costs else '; steps have not slowed as much'}",
            short=short,
            node=name,
            since_s=lag.since,
            slowed_by=slowed_by if costs else 0.0,
        )
    yield from _slow_ranks(run, limits, slow)


def may_be_found(run: Watched) -> bool:
    """Return True if a node looks slow now, but its usual ratio to the others is not known yet."""
    limits = run.rules.limits(Limits)
    spans = _spans(run, limits)
    newest = [value for _, by_node in _utilizations(run, spans[-1:]) for value in by_node.values()]
    is_new = len(spans) < EARLIER + _BINS
    return is_new and len(newest) > 1 and IDLE <= min(newest) < limits.straggler_share * median(newest)


def _spans(run: Watched, limits: Limits) -> list[tuple[float, float]]:
    """Return the bins (begin, end) since training began, without those that a pause overlaps."""
    since = run.training_since if run.training_since is not None else run.works_since
    end = run.metrics.at or 0.0
    # In shorter bins, nodes that take turns within a step differ by chance.
    bin_s = max(limits.straggler_window_s / _BINS, 2 * (run.progress.step_interval_s or 0.0))
    count = min(96, int(max(0.0, end - since) // bin_s))
    spans = ((end - number * bin_s, end - (number - 1) * bin_s) for number in range(count, 0, -1))
    # A sample covers up to a minute before its timestamp.
    return [(begin, end) for begin, end in spans if run.steps_throughout(begin - MINUTE_S, end)]


def _utilizations(run: Watched, spans: Iterable[tuple[float, float]]) -> list[tuple[float, dict[str, float]]]:
    """Return the GPU utilization by node in each bin, with the bin's start.

    Nodes that have never worked are omitted: they are still loading.
    """
    nodes = [node for node in run.metrics.nodes if first_time(node.mean_utilization, IDLE) < math.inf]
    return [
        (
            begin,
            {node.name: mean for node in nodes if (mean := mean_between(node.mean_utilization, begin, end))},
        )
        for begin, end in spans
    ]


def _lags(run: Watched, limits: Limits) -> dict[str, Lag]:
    spans = _spans(run, limits)
    newest = [value for _, by_node in _utilizations(run, spans[-_BINS:]) for value in by_node.values()]
    if not newest or (min(newest) >= _KEEPS_PACE * max(newest) and not run.held_nodes):
        return {}  # by far the most common case
    rows = _utilizations(run, spans)
    lags = {name: lag for name in rows[-1][1] if (lag := _lag(run, rows, name, limits)) is not None}
    # If half of the nodes or more changed together, they do other work now: report no new one.
    if len(lags) > 1 and 2 * len(lags) >= len(rows[-1][1]):
        return {name: lag for name, lag in lags.items() if run.is_held(name)}
    return lags


def _lag(
    run: Watched, rows: Sequence[tuple[float, Mapping[str, float]]], name: str, limits: Limits
) -> Lag | None:
    """Return how node ``name`` lags, from the utilizations in ``rows``; None if it does not."""
    # Skip bins in which the node or the others are idle, and bins without one of the present nodes: the ratio
    # of a node also changes if others join.
    names = rows[-1][1].keys()
    bins = [
        (begin, by_node[name], sorted(by_node[other] for other in names - {name}))
        for begin, by_node in rows
        if len(names) > 1 and names <= by_node.keys() and by_node[name] >= IDLE
    ]
    bins = [(begin, own, others) for begin, own, others in bins if median(others) >= IDLE]
    if len(bins) < _BINS or bins[-1][0] < rows[-1][0]:
        return None
    is_held = run.is_held(name)
    share = run.eased(limits.straggler_share, 1.0, held=is_held)
    own, others_median = (
        fmean(values)
        for values in zip(*((own, median(others)) for _, own, others in bins[-_BINS:]), strict=True)
    )
    begins = [begin for begin, _, _ in bins]
    ratios = flipped(begins, (own / median(others) for _, own, others in bins))
    fall = worsened(ratios, 1 - share, newest=_BINS, earlier=EARLIER, descends=False, held=is_held)
    curve = next(node.mean_utilization for node in run.metrics.nodes if node.name == name)
    if fall is not None:
        return Lag(own, others_median, fall.since, others_wait=False)
    if _was_always_slow(run, bins, share, name):
        return Lag(own, others_median, curve.times[0], others_wait=False)
    max_ratio = max(share, _KEEPS_PACE)
    # All others must wait, in each bin: that one node is the busiest of several is no problem.
    all_wait = all(len(others) > 2 and others[-1] < max_ratio * own for _, own, others in bins[-_BINS:])
    if not all_wait or own < _WAITED_FOR:
        return None
    others_medians = flipped(begins, (median(others) for _, _, others in bins))
    wait = worsened(
        others_medians, 1 - max_ratio, newest=_BINS, earlier=EARLIER, descends=False, held=is_held
    )
    return None if wait is None else Lag(own, others_median, wait.since, others_wait=True)


def _was_always_slow(
    run: Watched, bins: Sequence[tuple[float, float, Sequence[float]]], share: float, name: str
) -> bool:
    """Return True if a node has been slow from the beginning, while two or more others are alike.

    False for the first node, the leader, and if nodes use different amounts of GPU memory: then they may do
    different work by design.
    """
    levels = [max(values_between(node.mean_memory), default=0.0) for node in run.metrics.nodes]
    is_leader = name == run.metrics.nodes[0].name
    if is_leader or min(levels) < _SIMILAR * max(levels):
        return False
    return all(
        len(others) > 1 and others[0] >= _SIMILAR * others[-1] and _WAITED_FOR <= own / others[-1] < share
        for _, own, others in bins
    )


def _slow_ranks(run: Watched, limits: Limits, slow: Mapping[str, Lag]) -> Findings:
    """Report ranks whose logged step times exceed the others', in both halves of the newest steps."""
    times_by_rank = {
        view.replica: view.step_times_s
        for view in run.progress.streams
        if view.replica is not None and view.step_times_s
    }
    for replica, halves in times_by_rank.items() if len(times_by_rank) > 2 else ():
        others = [max(times) for name, times in times_by_rank.items() if name != replica]
        usual = median(others)
        spread = sum(abs(other - usual) for other in others) / len(others) / usual
        # A slow rank is more than four mean deviations above the others.
        min_ratio = max(limits.straggler_step_time, 1 + 4.0 * spread)
        min_ratio = run.eased(min_ratio, 1.0, held=run.is_held(replica))
        # A rank whose steps take three times as long counts another kind of steps.
        if replica not in slow and min_ratio * usual < min(halves) and max(halves) < 3.0 * usual:
            text = f"{replica} slow: {step_time(sum(halves) / 2)} vs {step_time(usual)}"
            yield run.finding("warning", text, node=replica)


CHECK = Check(
    FindingKind(
        "straggler",
        50,
        "{node} slow",
        note="▲ slow",
        figures=("GPU use", "cores", "GPU memory", "memory", "disk"),
    ),
    "Slow node",
    "warning",
    Limits,
    find,
    needs="a node whose utilization, as a share of the others' median, is clearly below its own usual share"
    " throughout the window, or throughout four steps if these take longer; or one that works on while"
    " three or more others come to wait at the same lower level; or ranks that print slower step times,"
    " beyond the noise of the others, in both halves of their newest 40 steps. A node that was slow from"
    " the beginning is judged if the others are alike and hold as much in memory.",
    excused="nodes that keep their share or have been as low before (roles, turns), half of the nodes or more"
    " that change together, a leader, reinforcement learning, idle nodes,"
    " evaluations and saves, and the first half an hour. Reported as info: a node that"
    " lags while steps have not slowed by most of its lag.",
    costs="what the others wait: a node at 70% of their speed costs 30% of all nodes",
    covered_by=frozenset({"node-missing", "gpu-idle"}),
    examples=(
        Example(
            "one of four slows down",
            "node-3 slow: GPU 60% vs 95%",
            gpu=(0.95, 0.95, 0.95, lambda at: 0.95 if at < 3600 else 0.6),
        ),
        Example(
            "one works on while all others wait",
            "node-3 slow: GPU 95% vs 60%",
            gpu=(*[lambda at: 0.95 if at < 3600 else 0.6] * 3, 0.95),
        ),
        Example("two trainers beside two rollouts", gpu=(0.95, 0.95, 0.4, 0.4)),
        Example(
            "half of the nodes change their work",
            gpu=(0.95, 0.95, *[lambda at: 0.95 if at < 3600 else 0.5] * 2),
        ),
    ),
)
