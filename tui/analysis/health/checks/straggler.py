"""Nodes that have become slower than the others, by their GPUs or by the step times their ranks print.

In synchronous training everybody waits for the slowest node. Ranks that wait inside an NCCL collective spin
and look busy, so the slow node looks less busy: the common case. Ranks that wait otherwise (gloo, a barrier,
a data loader) are idle, and the slow node is the only busy one. A node with throttled clocks looks like the
others; only step times show it.

Each node is compared with its own usual place among the others, so that roles need no knowledge: a trainer
beside rollouts keeps its place, and nodes that take turns have been as low before.
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
"""The window consists of so many bins: a lag must show in each, otherwise it is a passing dip."""
_ALIKE = 0.88
"""Two nodes are alike if the less busy one has this share of the other's use."""
_WAITED_FOR = 0.5  # Minimum utilization of a slow node that the idle others wait for.
_CLOSE = 0.9  # Nodes with this share of the use of the busiest keep pace; others wait for it.


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
    """A slow node's use, the others' median, and since when it lags; ``busier``: they wait for it."""

    own: float
    others: float
    since: float
    busier: bool


def find(run: Watched, limits: Limits) -> Findings:
    # In reinforcement learning, nodes vary by design.
    slow = {} if run.is_reinforcement else _lags(run, limits)
    for name, lag in slow.items():
        uses = f"GPUs at {percent(lag.own)}, others at {percent(lag.others)}"
        how = "keeps the others waiting" if lag.busier else "lags behind the other nodes"
        short = f"{name} slow: GPU {percent(lag.own)} vs {percent(lag.others)}"
        slowed_by = 1 - min(lag.own, lag.others) / max(lag.own, lag.others)
        # What costs nothing is an oddity: most of the time that the others wait must show in the steps.
        # What was so when the samples begin may have cost as much before.
        lost = run.lost_speed(lag.since) if lag.since >= run.samples_since + MINUTE_S else None
        costs = lost is None or lost >= slowed_by * 2 / 3
        yield run.finding(
            "warning" if costs else "info",
            f"{name} {how}: {uses}{'' if costs else '; steps have not slowed as much'}",
            short=short,
            node=name,
            since_s=lag.since,
            slowed_by=slowed_by if costs else 0.0,
        )
    yield from _by_step_time(run, limits, slow)


def may_be_found(run: Watched) -> bool:
    """Return True if a node looks slow, but the usual places of the nodes are not known yet."""
    limits = run.rules.limits(Limits)
    spans = _spans(run, limits)
    newest = [use for _, uses in _uses(run, spans[-1:]) for use in uses.values()]
    is_new = len(spans) < EARLIER + _BINS
    return is_new and len(newest) > 1 and IDLE <= min(newest) < limits.straggler_share * median(newest)


def _spans(run: Watched, limits: Limits) -> list[tuple[float, float]]:
    """Return the bins (begin, end) since training began in which the run made steps: pauses do not count."""
    since = run.training_since if run.training_since is not None else run.works_since
    end = run.metrics.at or 0.0
    # In less, nodes that take turns within a step look different by chance.
    bin_s = max(limits.straggler_window_s / _BINS, 2 * (run.progress.step_interval_s or 0.0))
    count = min(96, int(max(0.0, end - since) // bin_s))
    spans = ((end - number * bin_s, end - (number - 1) * bin_s) for number in range(count, 0, -1))
    # A sample has a part of the minute before it.
    return [(begin, end) for begin, end in spans if run.steps_throughout(begin - MINUTE_S, end)]


def _uses(run: Watched, spans: Iterable[tuple[float, float]]) -> list[tuple[float, dict[str, float]]]:
    """Return the use of each node in each bin; nodes that have not worked yet are still loading."""
    nodes = [node for node in run.metrics.nodes if first_time(node.mean_utilization, IDLE) < math.inf]
    return [
        (
            begin,
            {node.name: use for node in nodes if (use := mean_between(node.mean_utilization, begin, end))},
        )
        for begin, end in spans
    ]


def _lags(run: Watched, limits: Limits) -> dict[str, Lag]:
    spans = _spans(run, limits)
    newest = [use for _, uses in _uses(run, spans[-_BINS:]) for use in uses.values()]
    if not newest or (min(newest) >= _CLOSE * max(newest) and not run.held_nodes):
        return {}  # by far the most common case
    rows = _uses(run, spans)
    lags = {name: lag for name in rows[-1][1] if (lag := _lag(run, rows, name, limits)) is not None}
    # Of nodes that change together, half or more have got other work.
    if len(lags) > 1 and 2 * len(lags) >= len(rows[-1][1]):
        return {name: lag for name, lag in lags.items() if run.is_held(name)}
    return lags


def _lag(
    run: Watched, rows: Sequence[tuple[float, Mapping[str, float]]], name: str, limits: Limits
) -> Lag | None:
    # What does nothing is no slow node, nor do others that do nothing wait for one. Beside nodes that joined
    # since then, a node has another place without any change of its own.
    names = rows[-1][1].keys()
    beside = [
        (begin, uses[name], sorted(uses[other] for other in names - {name}))
        for begin, uses in rows
        if len(names) > 1 and names <= uses.keys() and uses[name] >= IDLE
    ]
    beside = [(begin, own, others) for begin, own, others in beside if median(others) >= IDLE]
    if len(beside) < _BINS or beside[-1][0] < rows[-1][0]:
        return None
    is_held = run.is_held(name)
    share = run.eased(limits.straggler_share, 1.0, held=is_held)
    own, usual = (
        fmean(values)
        for values in zip(*((own, median(others)) for _, own, others in beside[-_BINS:]), strict=True)
    )
    begins = [begin for begin, _, _ in beside]
    places = flipped(begins, (own / median(others) for _, own, others in beside))
    fall = worsened(places, 1 - share, newest=_BINS, earlier=EARLIER, descends=False, held=is_held)
    curve = next(node.mean_utilization for node in run.metrics.nodes if node.name == name)
    if fall is not None:
        return Lag(own, usual, fall.since, busier=False)
    if _is_odd(run, beside, share, name):
        return Lag(own, usual, curve.times[0], busier=False)
    below = max(share, _CLOSE)
    # Each of the others waits, all the time: a node that is only the busiest of several is no reason.
    all_wait = all(len(others) > 2 and others[-1] < below * now for _, now, others in beside[-_BINS:])
    if not all_wait or own < _WAITED_FOR:
        return None
    rest = flipped(begins, (median(others) for _, _, others in beside))
    wait = worsened(rest, 1 - below, newest=_BINS, earlier=EARLIER, descends=False, held=is_held)
    return None if wait is None else Lag(own, usual, wait.since, busier=True)


def _is_odd(
    run: Watched, beside: Sequence[tuple[float, float, Sequence[float]]], share: float, name: str
) -> bool:
    """Return True if a node was slow from the beginning, while the others, three or more in all, are alike.

    A leader may do other work, and so may a node that holds something else in memory.
    """
    levels = [max(values_between(node.mean_memory), default=0.0) for node in run.metrics.nodes]
    leads = name == run.metrics.nodes[0].name
    if leads or min(levels) < _ALIKE * max(levels):
        return False
    return all(
        len(others) > 1 and others[0] >= _ALIKE * others[-1] and _WAITED_FOR <= own / others[-1] < share
        for _, own, others in beside
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
    " evaluations and saves, and the first half an hour. To a remark (info): a node that"
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
