"""Logs of the simulated runs: templates of lines (``demo.toml``), and when a run logs them.

Lines come from sources that can be read at any time range. A source can count its lines before a time without
iterating over them, so the cost of a page of logs does not depend on the length of the run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from typing import Any, Literal

from api_client.emulator.fleet.plans import LineSource, SimRun
from api_client.emulator.fleet.training import TrainingCurves, mix, smooth, uniform
from api_client.models import InstanceType, JobStatus
from api_client.models.logs import NS_PER_MS, NS_PER_S


def fixed_lines(
    node: int, level: str | None, start_ns: int, lines: Iterable[tuple[float, str]]
) -> LineSource:
    """Build a source from lines given in ascending order, as seconds after ``start_ns``."""
    placed = [(start_ns + int(after_s * NS_PER_S), text) for after_s, text in lines]
    stamps = [at_ns for at_ns, _ in placed]
    return LineSource(
        f"node-{node}",
        level,
        lambda at_ns: bisect_left(stamps, at_ns),
        stamps.__getitem__,
        lambda index: placed[index][1],
    )


def step_lines(
    level: str | None,
    run_ns: int,
    curves: TrainingCurves,
    message_of: Callable[[int], str],
    every: int = 1,
    delay_ns: int = 0,
) -> LineSource:
    """Build a line of node-0 ``delay_ns`` after every ``every``-th step of a run; ``message_of`` gets it."""
    return LineSource(
        "node-0",
        level,
        lambda at_ns: curves.steps_done(at_ns - 1 - delay_ns - run_ns) // every,
        lambda index: run_ns + curves.finished_ns((index + 1) * every) + delay_ns,
        lambda index: message_of((index + 1) * every),
    )


def periodic_lines(
    node: int,
    level: str | None,
    start_ns: int,
    until_ns: int | None,
    period_ns: int,
    seed: int,
    message_of: Callable[[int], str],
) -> LineSource:
    """Build a line about every ``period_ns`` from ``start_ns`` on; ``message_of`` gets the line's number."""

    def stamp(index: int) -> int:
        return start_ns + index * period_ns + mix(seed, index) % period_ns

    def count_before(at_ns: int) -> int:
        at_ns = at_ns if until_ns is None else min(at_ns, until_ns)
        index = (at_ns - start_ns) // period_ns
        return 0 if index < 0 else index + (stamp(index) < at_ns)

    return LineSource(f"node-{node}", level, count_before, stamp, message_of)


def window(
    sources: Sequence[LineSource],
    *,
    start_ns: int,
    end_ns: int,
    newest_first: bool,
    limit: int,
    levels: frozenset[str] | None = None,
) -> list[tuple[int, LineSource, int]]:
    """Return up to ``limit`` lines with ``start_ns <= stamp < end_ns``: stamp, source and index of each."""
    runs: list[Iterator[tuple[int, int, int]]] = []
    for number, source in enumerate(sources):
        if levels is None or source.level in levels:
            indexes = range(source.count_before(start_ns), source.count_before(end_ns))
            runs.append(_keys(source, number, indexes[::-1] if newest_first else indexes))
    keys = islice(merge(*runs, reverse=newest_first), limit)
    return [(stamp_ns, sources[number], index) for stamp_ns, number, index in keys]


def _keys(source: LineSource, number: int, indexes: range) -> Iterator[tuple[int, int, int]]:
    for index in indexes:
        yield source.stamp(index), number, index


RunLog = Callable[[SimRun], Sequence[LineSource]]
"""Returns the line sources of a run."""


class Values(dict[str, Any]):
    """Values for a line's template, such as ``{loss:.4f}``; each is computed when the template uses it."""

    def __init__(self, run: SimRun, step: int, node: int = 0) -> None:
        super().__init__(run=run, step=step, node=node)
        self.run, self.curves = run, run.curves
        self.step = step

    def __missing__(self, name: str) -> Any:
        return VALUES[name](self)


def _step_s(of: Values) -> float:
    done_ns = of.curves.finished_ns
    return (done_ns(of.step) - done_ns(of.step - 1)) / NS_PER_S


def _speed(of: Values) -> float:
    """Return the measured speed as a fraction of the usual one."""
    return 0.98 + 0.04 * uniform(of.run.seed, of.step)


def _elapsed_s(of: Values) -> float:
    return of.curves.finished_ns(of.step) / NS_PER_S - of.curves.warmup_s


def _bar(of: Values) -> str:
    """Return a bar like tqdm's, without its end: `` 46%|████▌  | 4120/9000 [6:12:03<7:10:44, 5.30s/it``."""
    step, total, elapsed_s = of.step, of.curves.steps, _elapsed_s(of)
    full, part = divmod(int(step / total * 80), 8)
    cells = ("█" * full + (" ▏▎▍▌▋▊▉"[part] if part else "")).ljust(10)
    step_s = elapsed_s / step
    rate = f"{step_s:5.2f}s/it" if step_s >= 1 else f"{1 / step_s:5.2f}it/s"
    times = f"{_duration(elapsed_s)}<{_duration(step_s * (total - step))}, {rate}"
    return f"{step / total * 100:3.0f}%|{cells}| {step}/{total} [{times}"


def _duration(seconds: float) -> str:
    """Format ``22323`` as ``6:12:03`` and ``63`` as ``01:03``, as progress bars do."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"


def _gpus(machine: InstanceType) -> str:
    return f"{machine.gpu_count}x {machine.gpu_type}" if machine.gpu_count else "CPU only"


VALUES: Mapping[str, Callable[[Values], Any]] = {
    "job": lambda of: of.run.plan.name,
    "scenario": lambda of: of.run.plan.scenario,
    "model": lambda of: of.run.plan.scenario.model,
    "machine": lambda of: of.run.machine.name,
    "gpus": lambda of: _gpus(of.run.machine),
    # PyTorch can use slightly less than all of the memory
    "gpu_gib": lambda of: (of.run.machine.gpu_memory_limit_mib or 0) / 1024 * 0.989,
    "total": lambda of: of.curves.steps,
    "nodes": lambda of: of.run.plan.nodes,
    "ranks": lambda of: of.run.plan.nodes * max(1, of.run.machine.gpu_count),
    "examples": lambda of: of.run.curves.steps_per_epoch * of["ranks"],
    "samples": lambda of: of.step * 256,
    "loss": lambda of: of.run.curves.loss(of.step),
    "eval_loss": lambda of: of.run.curves.eval_loss(of.step),
    "word_errors": lambda of: 10 + 12 * of["eval_loss"],
    "grad_norm": lambda of: of.run.curves.grad_norm(of.step),
    "lr": lambda of: of.run.curves.learning_rate(of.step),
    "epoch": lambda of: of.run.curves.epoch(of.step),
    "time": lambda of: of.run.wall(of.run.start_ns + of.curves.finished_ns(of.step)),
    "ms": lambda of: of["time"].microsecond // 1000,
    "elapsed_s": _elapsed_s,
    "step_s": _step_s,
    "step_ms": lambda of: 1000 * _step_s(of),
    "tokens_per_s": lambda of: 8192 / of.curves.step_s * _speed(of),
    "tflops": lambda of: 412.0 * _speed(of),
    "mfu": lambda of: of["tflops"] / 989.0,  # dense bf16 peak of an H100 or H200
    "length": lambda of: 412 + 1.1 * of.step + 30 * smooth(of.run.seed + 1, of.step / 9),
    "reward": lambda of: 0.86 - 0.55 / (1 + of.step / 200) + 0.02 * smooth(of.run.seed, of.step / 6),
    "entropy": lambda of: of["loss"] / 4,
    "throughput": lambda of: 1900 * _speed(of),
    "kl": lambda of: 0.0004 * of.step**0.5,
    "drift": lambda of: 0.03 * smooth(of.run.seed + 2, of.step / 3),
    "bar": _bar,
    "clipping": lambda of: (
        f"gradient norm {of['grad_norm']:.2f}, limit 1.0"
        if of.step < of.run.curves.nan_from
        else "WARNING: found inf/nan in gradients, optimizer step skipped"
    ),
}


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines that belong together: when a run logs them, on which nodes, and their templates (see ``VALUES``).

    Calling it returns the line sources for a run.
    """

    when: Literal["deploying", "ready", "warming up", "starting", "step", "save", "noise", "ending"]
    """After a step or a checkpoint, now and then while it trains, or once, relative to a part of its life."""

    texts: Sequence[str] = ()
    """Templates: one line each after a step, one of them as noise."""

    at: Sequence[tuple[float, str]] = ()
    """Templates of single lines, each with its place: its share of the deployment or of the warm-up, or its
    seconds after the start or the end of the run."""

    level: str = "INFO"
    """Level, empty for lines without one."""

    node: int = 0
    is_everywhere: bool = False
    """True for the lines of all nodes, False for those of ``node``."""

    every: int = 1
    """Steps from one line to the next."""

    delay_ms: int = 40
    period_s: float = 5.0
    salt: int = 0
    """Distinguishes several sources of noise of one node."""

    outcome: JobStatus | None = None
    """The outcome of the runs that log them; None: any."""

    def __call__(self, run: SimRun) -> Sequence[LineSource]:
        nodes = run.nodes if self.is_everywhere else [self.node]
        if self.when in ("step", "save"):
            return [*self._after_steps(run)]
        if self.when == "noise":
            return [
                noise_lines(run, node, self.level, self.period_s, self.texts, self.salt) for node in nodes
            ]
        origin = self._origin(run)
        return [] if origin is None else [self._single_lines(run, node, *origin) for node in nodes]

    def _after_steps(self, run: SimRun) -> Iterator[LineSource]:
        saves, every, until_ns = run.plan.scenario.saves, self.every, None
        if self.when == "save":
            if saves is None:
                return
            every = saves.every
            until_ns = None if saves.until_s is None else run.start_ns + int(saves.until_s * NS_PER_S)
        for number, template in enumerate(self.texts):
            delay_ns = (self.delay_ms + 15 * number) * NS_PER_MS

            def text(step: int, template: str = template) -> str:
                return template.format_map(Values(run, step))

            source = step_lines(self.level or None, run.start_ns, run.curves, text, every, delay_ns)
            yield source if until_ns is None else source.until(until_ns)

    def _origin(self, run: SimRun) -> tuple[int, float] | None:
        """Return the start of ``at``, and its unit in seconds; None if the run never gets there."""
        if self.when == "ending":
            is_this = self.outcome in (None, run.outcome)
            return (run.end_ns, 1.0) if run.end_ns is not None and is_this else None
        if self.when == "deploying":
            return run.deploy_ns, 0.25 if run.run_ns is None else run.ready_s
        if self.when == "ready":
            return None if run.run_ns is None else (run.deploy_ns, run.ready_s)
        return run.start_ns, run.curves.warmup_s if self.when == "warming up" else 1.0

    def _single_lines(self, run: SimRun, node: int, start_ns: int, unit_s: float) -> LineSource:
        values = Values(run, run.curves.steps if self.when == "ending" else 0, node)
        late = 0.003 * node  # nodes are never at the same point at the same moment
        lines = [((share + late) * unit_s, template.format_map(values)) for share, template in self.at]
        return fixed_lines(node, self.level or None, start_ns, lines)


def noise_lines(
    run: SimRun, node: int, level: str, period_s: float, templates: Sequence[str], salt: int = 0
) -> LineSource:
    """Build background log lines of one node while it trains, from the templates in ``templates``.

    A template may use ``{n}`` (the line's number), ``{x}`` (0 to 1), ``{rank}`` (a rank on the node),
    ``{local}`` (its index on the node), ``{ms}`` and ``{count}``. Each line always gets the same values.
    """
    seed = mix(run.seed, 1_000 * salt + node)
    gpus = max(1, run.machine.gpu_count)

    def message_of(index: int) -> str:
        x = uniform(seed + 1, index)
        local = int(gpus * x)
        return templates[mix(seed, index) % len(templates)].format(
            n=index,
            x=x,
            rank=node * gpus + local,
            local=local,
            ms=int(40 + 300 * x),
            count=int(1000 + 9000 * x),
        )

    start_ns = run.start_ns + int(run.curves.warmup_s * NS_PER_S)
    return periodic_lines(node, level, start_ns, run.last_line_ns, int(period_s * NS_PER_S), seed, message_of)


def stop_lines(run: SimRun, stopped_ns: int) -> list[LineSource]:
    text = "Received SIGTERM, exiting"
    return [fixed_lines(node, "WARNING", stopped_ns, [(0.05 + 0.01 * node, text)]) for node in run.nodes]


def restarting(log: RunLog, *, attempt_s: float, break_s: float, save_every: int) -> RunLog:
    """Return the log of a run that restarts every ``attempt_s`` seconds from its last checkpoint.

    Each attempt fails ``break_s`` before the next one starts.
    """
    crash = (
        "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error"
    )

    def lines(run: SimRun) -> Sequence[LineSource]:
        sources: list[LineSource] = []
        curves = run.curves
        for attempt in range(12):
            start_ns = run.start_ns + int(attempt * attempt_s * NS_PER_S)
            until_ns = start_ns + int((attempt_s - break_s) * NS_PER_S)
            resumed = replace(run, run_ns=start_ns, curves=curves)
            again = f"torchrun: worker group restarting, restart_count={attempt + 1}"
            sources += [source.until(until_ns) for source in log(resumed)]
            sources.append(fixed_lines(0, "ERROR", until_ns, [(0.1, crash)]))
            sources.append(fixed_lines(0, "WARNING", until_ns, [(break_s / 2, again)]))
            reached = curves.steps_done(until_ns - start_ns)
            if reached >= curves.steps:
                break
            curves = replace(curves, first_step=reached // save_every * save_every)
        return sources

    return lines
