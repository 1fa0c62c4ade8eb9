"""Logs of the simulated runs: templates of lines (``demo.toml``), and when a run logs them.

Lines come from sources that can be read for any time range. A source can count its lines before a time
without iterating over them, so the cost of a page of logs does not depend on the length of the run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from typing import Any, Literal

from api_client.emulator.fleet.plans import LineSource, SimRun
from api_client.emulator.fleet.training import TrainingCurves, mix, smooth_noise, uniform
from api_client.models import InstanceType, JobStatus
from api_client.models.logs import NS_PER_MS, NS_PER_S


def fixed_lines(
    node: int, level: str | None, start_ns: int, lines: Iterable[tuple[float, str]]
) -> LineSource:
    """Build a source from ``(seconds after start_ns, text)`` pairs in ascending order."""
    timed_lines = [(start_ns + int(after_s * NS_PER_S), text) for after_s, text in lines]
    stamps = [time_ns for time_ns, _ in timed_lines]
    return LineSource(
        f"node-{node}",
        level,
        lambda time_ns: bisect_left(stamps, time_ns),
        stamps.__getitem__,
        lambda index: timed_lines[index][1],
    )


def step_lines(
    level: str | None,
    run_start_ns: int,
    curves: TrainingCurves,
    text_of: Callable[[int], str],
    every: int = 1,
    delay_ns: int = 0,
) -> LineSource:
    """Build a source with a line of node-0 ``delay_ns`` after every ``every``-th step.

    ``text_of(step)`` returns the text of the line.
    """
    return LineSource(
        "node-0",
        level,
        lambda time_ns: curves.steps_done(time_ns - 1 - delay_ns - run_start_ns) // every,
        lambda index: run_start_ns + curves.finished_ns((index + 1) * every) + delay_ns,
        lambda index: text_of((index + 1) * every),
    )


def periodic_lines(
    node: int,
    level: str | None,
    start_ns: int,
    end_ns: int | None,
    period_ns: int,
    seed: int,
    text_of: Callable[[int], str],
) -> LineSource:
    """Build a source with a line about every ``period_ns``; ``text_of(index)`` returns its text."""

    def stamp(index: int) -> int:
        return start_ns + index * period_ns + mix(seed, index) % period_ns

    def count_before(time_ns: int) -> int:
        time_ns = time_ns if end_ns is None else min(time_ns, end_ns)
        index = (time_ns - start_ns) // period_ns
        return 0 if index < 0 else index + (stamp(index) < time_ns)

    return LineSource(f"node-{node}", level, count_before, stamp, text_of)


def select_lines(
    sources: Sequence[LineSource],
    *,
    start_ns: int,
    end_ns: int,
    newest_first: bool,
    limit: int,
    levels: frozenset[str] | None = None,
) -> list[tuple[int, LineSource, int]]:
    """Return up to ``limit`` lines with ``start_ns <= stamp < end_ns``: stamp, source, index in it."""
    sorted_keys: list[Iterator[tuple[int, int, int]]] = []
    for number, source in enumerate(sources):
        if levels is None or source.level in levels:
            indexes = range(source.count_before(start_ns), source.count_before(end_ns))
            sorted_keys.append(_sort_keys(source, number, indexes[::-1] if newest_first else indexes))
    keys = islice(merge(*sorted_keys, reverse=newest_first), limit)
    return [(stamp_ns, sources[number], index) for stamp_ns, number, index in keys]


def _sort_keys(source: LineSource, number: int, indexes: range) -> Iterator[tuple[int, int, int]]:
    for index in indexes:
        yield source.stamp(index), number, index


RunLog = Callable[[SimRun], Sequence[LineSource]]
"""A function that returns the line sources of a run."""


class TemplateValues(dict[str, Any]):
    """The values that templates of lines may use, such as ``{loss:.4f}``; computed on use."""

    def __init__(self, run: SimRun, step: int, node: int = 0) -> None:
        super().__init__(run=run, step=step, node=node)
        self.run, self.curves = run, run.curves
        self.step = step

    def __missing__(self, name: str) -> Any:
        return TEMPLATE_VALUES[name](self)


def _step_s(values: TemplateValues) -> float:
    done_ns = values.curves.finished_ns
    return (done_ns(values.step) - done_ns(values.step - 1)) / NS_PER_S


def _speed(values: TemplateValues) -> float:
    """Return the speed at a step relative to the average: 0.98 to 1.02."""
    return 0.98 + 0.04 * uniform(values.run.seed, values.step)


def _elapsed_s(values: TemplateValues) -> float:
    return values.curves.finished_ns(values.step) / NS_PER_S - values.curves.warmup_s


def _progress_bar(values: TemplateValues) -> str:
    """Return a bar like tqdm's, without its end: `` 46%|████▌  | 4120/9000 [6:12:03<7:10:44, 5.30s/it``."""
    step, total, elapsed_s = values.step, values.curves.steps, _elapsed_s(values)
    full_cells, eighths = divmod(int(step / total * 80), 8)
    cells = ("█" * full_cells + (" ▏▎▍▌▋▊▉"[eighths] if eighths else "")).ljust(10)
    step_s = elapsed_s / step
    rate = f"{step_s:5.2f}s/it" if step_s >= 1 else f"{1 / step_s:5.2f}it/s"
    times = f"{_duration(elapsed_s)}<{_duration(step_s * (total - step))}, {rate}"
    return f"{step / total * 100:3.0f}%|{cells}| {step}/{total} [{times}"


def _duration(seconds: float) -> str:
    """Format ``22323`` as ``6:12:03`` and ``63`` as ``01:03``, as progress bars do."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"


def _gpu_text(machine: InstanceType) -> str:
    return f"{machine.gpu_count}x {machine.gpu_type}" if machine.gpu_count else "CPU only"


TEMPLATE_VALUES: Mapping[str, Callable[[TemplateValues], Any]] = {
    "job": lambda values: values.run.plan.name,
    "scenario": lambda values: values.run.plan.scenario,
    "model": lambda values: values.run.plan.scenario.model,
    "machine": lambda values: values.run.machine.name,
    "gpus": lambda values: _gpu_text(values.run.machine),
    # PyTorch can use slightly less than all of the memory
    "gpu_gib": lambda values: (values.run.machine.gpu_memory_limit_mib or 0) / 1024 * 0.989,
    "total": lambda values: values.curves.steps,
    "nodes": lambda values: values.run.plan.nodes,
    "ranks": lambda values: values.run.plan.nodes * max(1, values.run.machine.gpu_count),
    "examples": lambda values: values.run.curves.steps_per_epoch * values["ranks"],
    "samples": lambda values: values.step * 256,
    "loss": lambda values: values.run.curves.loss(values.step),
    "eval_loss": lambda values: values.run.curves.eval_loss(values.step),
    "word_errors": lambda values: 10 + 12 * values["eval_loss"],
    "grad_norm": lambda values: values.run.curves.grad_norm(values.step),
    "lr": lambda values: values.run.curves.learning_rate(values.step),
    "epoch": lambda values: values.run.curves.epoch(values.step),
    "time": lambda values: values.run.wall(values.run.start_ns + values.curves.finished_ns(values.step)),
    "ms": lambda values: values["time"].microsecond // 1000,
    "elapsed_s": _elapsed_s,
    "step_s": _step_s,
    "step_ms": lambda values: 1000 * _step_s(values),
    "tokens_per_s": lambda values: 8192 / values.curves.step_s * _speed(values),
    "tflops": lambda values: 412.0 * _speed(values),
    "mfu": lambda values: values["tflops"] / 989.0,  # dense bf16 peak of an H100 or H200
    "length": lambda values: (
        412 + 1.1 * values.step + 30 * smooth_noise(values.run.seed + 1, values.step / 9)
    ),
    "reward": lambda values: (
        0.86 - 0.55 / (1 + values.step / 200) + 0.02 * smooth_noise(values.run.seed, values.step / 6)
    ),
    "entropy": lambda values: values["loss"] / 4,
    "throughput": lambda values: 1900 * _speed(values),
    "kl": lambda values: 0.0004 * values.step**0.5,
    "drift": lambda values: 0.03 * smooth_noise(values.run.seed + 2, values.step / 3),
    "bar": _progress_bar,
    "clipping": lambda values: (
        f"gradient norm {values['grad_norm']:.2f}, limit 1.0"
        if values.step < values.run.curves.nan_from
        else "WARNING: found inf/nan in gradients, optimizer step skipped"
    ),
}


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines that belong together: when and on which nodes a run logs them, and their templates.

    ``TEMPLATE_VALUES`` has the values that templates may use. Calling an instance with a run returns the
    line sources for the run.
    """

    when: Literal["deploying", "ready", "warming up", "starting", "step", "save", "noise", "ending"]
    """``step`` and ``save``: after steps or checkpoints. ``noise``: about every ``period_s`` while the run
    trains. All others: once, relative to that phase of the run."""

    texts: Sequence[str] = ()
    """Templates for ``step`` and ``save`` (a line each) and for ``noise`` (each line uses one template)."""

    at: Sequence[tuple[float, str]] = ()
    """For all other ``when``: (offset, template) of each line. The offset is a fraction of the deployment or
    of the warm-up, or seconds after the start or the end of the run."""

    level: str = "INFO"
    """Empty for lines without a level."""

    node: int = 0
    is_everywhere: bool = False
    """True if all nodes log the lines, False if only ``node`` does."""

    every: int = 1
    """Steps between two lines."""

    delay_ms: int = 40
    """Time from the end of the step to the line."""

    period_s: float = 5.0
    salt: int = 0
    """Seed that distinguishes several sources of ``noise`` on the same node."""

    outcome: JobStatus | None = None
    """Only runs with this outcome log the lines; None: all runs do."""

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
                return template.format_map(TemplateValues(run, step))

            source = step_lines(self.level or None, run.start_ns, run.curves, text, every, delay_ns)
            yield source if until_ns is None else source.until(until_ns)

    def _origin(self, run: SimRun) -> tuple[int, float] | None:
        """Return the time to which offsets in ``at`` are relative, and their unit in seconds.

        Returns None if the run never reaches that time.
        """
        if self.when == "ending":
            outcome_matches = self.outcome in (None, run.outcome)
            return (run.end_ns, 1.0) if run.end_ns is not None and outcome_matches else None
        if self.when == "deploying":
            return run.deploy_ns, 0.25 if run.run_start_ns is None else run.deployment_s
        if self.when == "ready":
            return None if run.run_start_ns is None else (run.deploy_ns, run.deployment_s)
        return run.start_ns, run.curves.warmup_s if self.when == "warming up" else 1.0

    def _single_lines(self, run: SimRun, node: int, start_ns: int, unit_s: float) -> LineSource:
        values = TemplateValues(run, run.curves.steps if self.when == "ending" else 0, node)
        node_delay = 0.003 * node  # nodes never log the same line at the same time
        lines = [
            ((offset + node_delay) * unit_s, template.format_map(values)) for offset, template in self.at
        ]
        return fixed_lines(node, self.level or None, start_ns, lines)


def noise_lines(
    run: SimRun, node: int, level: str, period_s: float, templates: Sequence[str], salt: int = 0
) -> LineSource:
    """Build a source of unrelated log lines of a node while it trains.

    A template may use ``{n}`` (the line's number), ``{x}`` (0 to 1), ``{rank}`` (a rank on the node),
    ``{local}`` (its index on the node), ``{ms}`` and ``{count}``. A line has the same values each time it is
    read.
    """
    seed = mix(run.seed, 1_000 * salt + node)
    gpus = max(1, run.machine.gpu_count)

    def text_of(index: int) -> str:
        x = uniform(seed + 1, index)
        local_rank = int(gpus * x)
        return templates[mix(seed, index) % len(templates)].format(
            n=index,
            x=x,
            rank=node * gpus + local_rank,
            local=local_rank,
            ms=int(40 + 300 * x),
            count=int(1000 + 9000 * x),
        )

    start_ns = run.start_ns + int(run.curves.warmup_s * NS_PER_S)
    return periodic_lines(node, level, start_ns, run.last_line_ns, int(period_s * NS_PER_S), seed, text_of)


def stop_lines(run: SimRun, stopped_ns: int) -> list[LineSource]:
    text = "Received SIGTERM, exiting"
    return [fixed_lines(node, "WARNING", stopped_ns, [(0.05 + 0.01 * node, text)]) for node in run.nodes]


def restarting(log: RunLog, *, attempt_s: float, break_s: float, save_every: int) -> RunLog:
    """Return the log of a run that restarts every ``attempt_s`` seconds from its last checkpoint.

    ``log`` returns the log of the run without restarts.

    Each attempt fails ``break_s`` before the next attempt starts.
    """
    crash_text = (
        "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error"
    )

    def lines(run: SimRun) -> Sequence[LineSource]:
        sources: list[LineSource] = []
        curves = run.curves
        for attempt in range(12):
            start_ns = run.start_ns + int(attempt * attempt_s * NS_PER_S)
            until_ns = start_ns + int((attempt_s - break_s) * NS_PER_S)
            resumed_run = replace(run, run_start_ns=start_ns, curves=curves)
            restart_text = f"torchrun: worker group restarting, restart_count={attempt + 1}"
            sources += [source.until(until_ns) for source in log(resumed_run)]
            sources.append(fixed_lines(0, "ERROR", until_ns, [(0.1, crash_text)]))
            sources.append(fixed_lines(0, "WARNING", until_ns, [(break_s / 2, restart_text)]))
            steps_done = curves.steps_done(until_ns - start_ns)
            if steps_done >= curves.steps:
                break
            curves = replace(curves, first_step=steps_done // save_every * save_every)
        return sources

    return lines
