"""Detect nodes that are slower than their peers, by their GPUs or by the step times their ranks print.

In synchronous training everybody waits for the slowest node. Ranks that wait inside an NCCL collective spin
and look busy, so the slow node looks less busy: the common case. Ranks that wait otherwise (gloo, a barrier,
a data loader) are idle, and the slow node is the only busy one. A node with throttled clocks looks like the
others; only step times show it.

Only nodes that do the same work are compared: in reinforcement learning some nodes train while others
generate, and a leader may only serve. Such nodes differ from the start, or take turns; a node that slows down
the others was like them at first.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import floor
from statistics import median

from tui.analysis.health.context import Context, finding
from tui.analysis.health.rules import HealthRules
from tui.analysis.node_metrics import MetricsSnapshot, NodeSnapshot
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.analysis.series import Series, mean_between, value_range
from tui.text.units import duration, percent

BIN_S = 150.0
"""Length of the bins in which nodes are compared; within it, samples and phases of a step average out."""

FIRST_BINS = 4
"""Number of bins, counting those in which either node works, that show how two nodes started."""

ALIKE_BINS = 0.5
"""More than this fraction of those bins must be alike for two nodes to do the same work."""

TURNS = 2
"""Two nodes take turns if each was clearly busier than the other in this many bins."""

OTHER_MEMORY = 0.75
"""A node holds something else if its GPU memory is below this fraction of the others', or vice versa."""

SWINGS, SWINGING = 3.0, 0.03
"""Nodes do other work if one changes this many times as much from bin to bin, and by more than this."""

_MIN_SWINGS = 6  # Means; fewer differ by chance.

ALIKE_SPREAD = 0.15
"""Nodes within this range of each other all do the same work, so the details need no check."""

_MIN_GROUP_SIZE = 2

Bins = dict[int, float]
"""Means by bin number."""


def _same_work(
    context: Context, metrics: MetricsSnapshot, held: frozenset[str | None]
) -> tuple[MetricsSnapshot, ...]:
    """Split the snapshot into groups of nodes that do the same work; usually there is just one group.

    A single node that differs still belongs to the others, unless it leads two or more of them, takes
    turns with them, or its GPU memory shows that it holds something else. Nodes in ``held``, which were
    found slow before, also belong to the others: their normal state may be older than the samples.
    """
    rules, nodes, at = context.rules, metrics.nodes, metrics.at
    if at is None or len(nodes) < _MIN_GROUP_SIZE or _all_alike(nodes, at - rules.straggler_window_s, at):
        return (metrics,)
    bins = {node.name: _bins(node.mean_utilization) for node in nodes}
    groups: list[list[NodeSnapshot]] = []
    for node in nodes:
        for group in groups:
            if _share_workload(bins[group[0].name], bins[node.name], rules):
                group.append(node)
                break
        else:
            groups.append([node])

    def differ(group: Sequence[NodeSnapshot], others: Sequence[NodeSnapshot]) -> bool:
        if all(node.name in held for node in group):
            return False
        if len(group) >= _MIN_GROUP_SIZE:
            return True
        one = group[0]
        worked = _paired_means(bins[one.name], bins[others[0].name], rules.straggler_busy)
        leads = one is nodes[0] and len(nodes) > _MIN_GROUP_SIZE
        turns = _work_alternately(worked, rules.straggler_share)
        return turns or leads or _holds_something_else(one, others)

    largest = max(groups, key=lambda group: (len(group), len(group) > 1 or group[0] is not nodes[0]))
    kept, others = [largest], tuple(largest)
    for group in groups:
        if group is largest:
            continue
        if differ(group, others):
            kept.append(group)
        else:
            largest.extend(group)
    return tuple(replace(metrics, nodes=tuple(group)) for group in kept)


def _all_alike(nodes: Sequence[NodeSnapshot], start: float, end: float) -> bool:
    means = [mean_between(node.mean_utilization, start, end) for node in nodes]
    between = value_range([mean for mean in means if mean is not None])
    return between is None or between[1] - between[0] <= ALIKE_SPREAD


def _bins(series: Series) -> Bins:
    sums: dict[int, tuple[float, int]] = {}
    for time, value in zip(series.times, series.values, strict=True):
        if value == value:
            total, count = sums.get(number := floor(time / BIN_S), (0.0, 0))
            sums[number] = (total + value, count + 1)
    return {number: total / count for number, (total, count) in sums.items()}


def _share_workload(one: Bins, other: Bins, rules: HealthRules) -> bool:
    """Return True if two nodes started alike, moved alike and never took turns, or too little is known."""
    share = rules.straggler_share
    worked = _paired_means(one, other, rules.straggler_busy)
    began = [min(pair) >= share * max(pair) for pair in worked[:FIRST_BINS]]
    if len(began) >= _MIN_GROUP_SIZE and sum(began) <= ALIKE_BINS * len(began):
        return False
    # A node that slows down jumps once; one that serves in waves moved differently before.
    swings = [_swing([pair[which] for pair in worked[: len(worked) // 2]]) for which in (0, 1)]
    if max(swings) > max(SWINGING, SWINGS * min(swings)):
        return False
    return not _work_alternately(worked, share)


def _swing(means: Sequence[float]) -> float:
    """Return the usual change from one mean to the next."""
    if len(means) < _MIN_SWINGS:
        return 0.0
    return median(abs(later - earlier) for earlier, later in pairwise(means))


def _paired_means(one: Bins, other: Bins, busy: float) -> list[tuple[float, float]]:
    """Return both nodes' means in time order, where both are known and either node worked."""
    common = sorted(one.keys() & other.keys())
    return [(one[at], other[at]) for at in common if max(one[at], other[at]) >= busy]


def _work_alternately(worked: Sequence[tuple[float, float]], share: float) -> bool:
    less = sum(a < share * b and b - a > ALIKE_SPREAD for a, b in worked)
    more = sum(b < share * a and a - b > ALIKE_SPREAD for a, b in worked)
    return min(less, more) >= TURNS


def _holds_something_else(node: NodeSnapshot, others: Sequence[NodeSnapshot]) -> bool:
    own, theirs = _first_memory(node), [_first_memory(other) for other in others]
    known = [memory for memory in theirs if memory is not None]
    if own is None or not known:
        return False
    usual = median(known)
    return min(own, usual) < OTHER_MEMORY * max(own, usual)


def _first_memory(node: NodeSnapshot) -> float | None:
    """Return the highest GPU memory use of a node's first bins."""
    first = [mean for _, mean in sorted(_bins(node.mean_memory).items())[:FIRST_BINS]]
    return max(first, default=None)


WAITED_FOR = 0.5
"""Minimum utilization of a slow node that the idle others wait for."""

ALIKE = 0.15
"""The idle others must be within this range of each other, and at least three (two prove nothing)."""

CLOSE, CLOSE_SHARE = 0.05, 0.9
"""If the others are this close to each other, they wait for a node already below this share of its use."""

_PARTS = 2  # The lag must show in each half of the window, otherwise it is a passing dip.
_STEPS_PER_PART = 2
_MIN_WAITING_NODES = 3
_OTHERWISE = 3  # More samples than this in a row without a lag mean that it had not begun.
_ALIGNED_S = 30.0


@dataclass(frozen=True, slots=True)
class Lag:
    """A slow node's mean utilization and the others' median; ``busier`` if it is the busy one."""

    own: float
    others: float
    busier: bool = False


def _lagging_nodes(
    context: Context, group: MetricsSnapshot, held: frozenset[str | None], *, throughout: bool
) -> dict[str, Lag]:
    """Return the nodes whose GPUs clearly differed from the others' in the window, or in all of it.

    With two nodes, each is compared with the other. A node without samples is not slow but silent.
    """
    if group.at is None or len(group.nodes) < 2:
        return {}
    # In less than two steps, nodes that take turns within a step look different by chance.
    step_s = context.progress.step_interval_s or 0.0
    part_s = max(context.rules.straggler_window_s / _PARTS, _STEPS_PER_PART * step_s)
    parts: list[dict[str, Lag]] = []
    for part in range(_PARTS):
        end = group.at - part * part_s
        known = ((node.name, mean_between(node.mean_utilization, end - part_s, end)) for node in group.nodes)
        means = {name: mean for name, mean in known if mean is not None}
        ordered = sorted(means.values())
        lags = {
            name: _lag(own, ordered, _share(context, held=name in held), context.rules.straggler_busy)
            for name, own in means.items()
        }
        parts.append({name: lag for name, lag in lags.items() if lag is not None})
    if not throughout:
        return {name: lag for part in reversed(parts) for name, lag in part.items()}
    newest, *earlier = parts
    return {
        name: lag
        for name, lag in newest.items()
        if all(name in part and part[name].busier == lag.busier for part in earlier)
    }


def _share(context: Context, *, held: bool) -> float:
    return context.with_hysteresis(context.rules.straggler_share, 1.0, held=held)


def _lag_started_at(context: Context, snapshot: MetricsSnapshot, name: str, lag: Lag) -> float:
    """Return when a slow node began to lag (epoch seconds), following the available samples back.

    Samples in which no node lags because all of them wait (an evaluation, a checkpoint) do not end the
    search, nor do a few that contradict. Infinite if no sample shows a lag.
    """
    node = snapshot.node(name)
    others = [other.mean_utilization for other in snapshot.nodes if other.name != name]
    if node is None or not others:
        return math.inf
    share, busy = _share(context, held=True), context.rules.straggler_busy
    since, otherwise = math.inf, 0
    for time, own in zip(
        reversed(node.mean_utilization.times), reversed(node.mean_utilization.values), strict=True
    ):
        known = [value for series in others if (value := _value_at(series, time)) is not None]
        if own != own or not known:
            continue
        found = _lag(own, sorted([own, *known]), share, busy)
        if found is not None and found.busier == lag.busier:
            since, otherwise = time, 0
        elif max(own, *known) >= busy:
            otherwise += 1
            if otherwise > _OTHERWISE:
                break
    return since


def _value_at(series: Series, time: float) -> float | None:
    place = bisect_right(series.times, time + _ALIGNED_S) - 1
    if place < 0 or series.times[place] < time - _ALIGNED_S:
        return None
    value = series.values[place]
    return value if value == value else None


def _lag(own: float, ordered: list[float], share: float, busy: float) -> Lag | None:
    others = ordered.copy()
    others.remove(own)
    if not others:
        return None
    usual = (others[(len(others) - 1) // 2] + others[len(others) // 2]) / 2
    if usual >= busy and own < share * usual:
        return Lag(own, usual)
    apart = others[-1] - others[0]
    waits_below = max(share, CLOSE_SHARE) if apart <= CLOSE else share
    if (
        len(others) >= _MIN_WAITING_NODES
        and apart <= ALIKE
        and own >= WAITED_FOR
        and usual < waits_below * own
    ):
        return Lag(own, usual, busier=True)
    return None


_BEYOND_SWINGS = 2.0  # A slow node differs by more than nodes usually change from bin to bin.
_OFTEN, _THROUGHOUT = 0.1, 0.75  # Shares of the bins, before and since, in which it was half as far away.
_MIN_RANKS = 3  # With fewer step times, none is the usual one.
_OTHER_WORK = 3.0  # Ranks whose steps take this many times as long count other steps.
_ROLE_WINDOWS = 3
_SPREADS = 4.0  # A slow rank is outside of this many mean deviations of the others.


def stragglers(context: Context, excused: frozenset[str]) -> Iterator[HealthFinding]:
    """Report nodes that are persistently slower, by their GPUs or by the step times their ranks print.

    ``excused`` are nodes that already have a more serious finding.
    """
    found = list(_slow_by_their_gpus(context, throughout=True)) if _may_compare(context) else []
    named = [one for one in found if one.node not in excused]
    if not _is_comparable(context):  # A pause ends no finding.
        seen = excused | {one.node for one in named}
        named += [
            one for one in context.held.values() if one.kind is FindingKind.STRAGGLER and one.node not in seen
        ]
    yield from named
    yield from _by_step_time(context, excused | {one.node for one in named})


def may_have_stragglers(context: Context) -> bool:
    """Return True if a node looks slow, but nodes can't be compared yet."""
    return not _may_compare(context) and any(_slow_by_their_gpus(context, throughout=False))


def _may_compare(context: Context) -> bool:
    """Return True if a difference means something: in a pause, one node may evaluate for all."""
    return bool(context.held_nodes(FindingKind.STRAGGLER)) or _is_comparable(context)


def _slow_by_their_gpus(context: Context, *, throughout: bool) -> Iterator[HealthFinding]:
    metrics, held = context.metrics, context.held_nodes(FindingKind.STRAGGLER)
    # Nodes that have not worked yet are still loading.
    idle_below = context.rules.idle_below
    active = [node for node in metrics.nodes if _start_of_work(node.mean_utilization, idle_below) < math.inf]
    for group in _same_work(context, replace(metrics, nodes=tuple(active)), held):
        for name, lag in _lagging_nodes(context, group, held, throughout=throughout).items():
            since = _lag_started_at(context, group, name, lag)
            if lag.busier and context.progress.moving_target:
                continue  # In reinforcement learning a trainer is busier than those that serve it.
            if not _is_usual(context, group, name, lag, since) and not _was_always_so(
                context, group, lag, since
            ):
                yield _by_its_gpus(context, group, name, lag, since)


def _is_usual(context: Context, group: MetricsSnapshot, name: str, lag: Lag, since: float) -> bool:
    """Return True if the node's distance from the others changes that much anyway, or comes and goes."""
    bins = {node.name: _bins(node.mean_utilization) for node in group.nodes}
    own = bins.pop(name)
    others = {at: [one[at] for one in bins.values() if at in one] for at in sorted(own)}
    apart = {at: own[at] - median(known) for at, known in others.items() if known}
    now, busy = lag.own - lag.others, context.rules.straggler_busy
    if abs(now) <= _BEYOND_SWINGS * _swing([*apart.values()]):
        return True
    worked = {at: far / now > 0.5 for at, far in apart.items() if max(own[at], *others[at]) >= busy}
    before = [far for at, far in worked.items() if (at + 1) * BIN_S <= since]
    during = [far for at, far in worked.items() if at * BIN_S >= since]
    return sum(before) > _OFTEN * len(before) or sum(during) < _THROUGHOUT * len(during)


def _was_always_so(context: Context, group: MetricsSnapshot, lag: Lag, since: float) -> bool:
    """Return True if a node is a little busier since the beginning: it may do more than the others."""
    begun = min(node.mean_utilization.times[0] for node in group.nodes if node.mean_utilization.times)
    is_small = lag.others > context.rules.straggler_share * lag.own
    return lag.busier and is_small and since < begun + FIRST_BINS * BIN_S


def _is_comparable(context: Context) -> bool:
    """Return True if the nodes have worked for long enough to know their roles, and have not paused."""
    window_s, since = context.rules.straggler_window_s, context.training_since
    windows: float = _ROLE_WINDOWS
    if since is None:
        starts = (
            _start_of_work(node.mean_utilization, context.rules.idle_below) for node in context.metrics.nodes
        )
        since, windows = min(starts, default=0.0), _ROLE_WINDOWS / 2
    if (context.metrics.at or 0.0) - since < windows * window_s:
        return False
    return context.progress.run_phase is None and not context.has_paused_since(context.now_s - window_s)


def _start_of_work(utilization: Series, idle_below: float) -> float:
    """Return when GPUs first worked (epoch s); infinite if they never did."""
    pairs = zip(utilization.times, utilization.values, strict=True)
    return next((time for time, value in pairs if value >= idle_below), math.inf)


def _by_its_gpus(
    context: Context, group: MetricsSnapshot, name: str, lag: Lag, lag_since: float
) -> HealthFinding:
    uses = f"GPUs at {percent(lag.own)}, others at {percent(lag.others)}"
    how = "keeps the others waiting" if lag.busier else "lags behind the other nodes"
    since = (group.at or 0.0) - context.rules.straggler_window_s
    since = min(since, lag_since)
    short = f"{name} slow: GPU {percent(lag.own)} vs {percent(lag.others)}"
    return finding(
        FindingKind.STRAGGLER, "warning", f"{name} {how}: {uses}", short=short, node=name, since_s=since
    )


def _by_step_time(context: Context, named: frozenset[str | None]) -> Iterator[HealthFinding]:
    """Report ranks whose printed step times were longer throughout: in each half of the newest ones."""
    own = {
        view.replica: view.step_times_s
        for view in context.progress.streams
        if view.replica is not None and view.step_times_s
    }
    if len(own) < _MIN_RANKS:
        return
    for replica, halves in own.items():
        others = [times for name, times in own.items() if name != replica]
        usual = median(max(times) for times in others)
        spread = sum(abs(max(times) - usual) for times in others) / len(others) / usual
        step_s, slowest_s = min(halves), max(halves)
        least = max(context.rules.straggler_step_time, 1 + _SPREADS * spread)
        limit = context.with_hysteresis(least, 1.0, held=context.is_held(FindingKind.STRAGGLER, replica))
        if replica not in named and limit * usual < step_s and slowest_s < _OTHER_WORK * usual:
            text = f"{replica} slow: {_seconds(sum(halves) / 2)}/step vs {_seconds(usual)}"
            yield finding(FindingKind.STRAGGLER, "warning", text, node=replica)


def _seconds(value: float) -> str:
    return f"{value:.2f}s" if value < 10 else duration(value)
