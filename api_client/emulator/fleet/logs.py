"""Logs of the simulated runs: the trainers' formats as templates, what all runs log, and incidents.

Lines come from sources that can be read at any time range. A source can count its lines before a moment
without iterating over them, so the cost of a page of logs does not depend on the length of the run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from typing import Any

from api_client.emulator.fleet.plans import LineSource, SimRun
from api_client.emulator.fleet.training import NS_PER_S, StepSchedule, mix, smooth, uniform
from api_client.models import JobStatus


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
    pace: StepSchedule,
    message_of: Callable[[int], str],
    every: int = 1,
    delay_ns: int = 0,
) -> LineSource:
    """Build a line of node-0 ``delay_ns`` after every ``every``-th step of a run; ``message_of`` gets it."""
    return LineSource(
        "node-0",
        level,
        lambda at_ns: pace.steps_done(at_ns - 1 - delay_ns - run_ns) // every,
        lambda index: run_ns + pace.finished_ns((index + 1) * every) + delay_ns,
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
"""Lines of a run: those of its trainer, or of an incident."""


class Values(dict[str, Any]):
    """Values for the template of a step's line, as in ``{loss:.4f}``; computed when it names them."""

    def __init__(self, run: SimRun, step: int) -> None:
        super().__init__(run=run, step=step)
        self.run, self.pace = run, run.curves.pace
        self.step = step

    def __missing__(self, name: str) -> Any:
        return VALUES[name](self)


def _step_s(of: Values) -> float:
    done_ns = of.pace.finished_ns
    return (done_ns(of.step) - done_ns(of.step - 1)) / NS_PER_S


def _speed(of: Values) -> float:
    """Return the measured speed as a share of the usual one."""
    return 0.98 + 0.04 * uniform(of.run.seed, of.step)


def _elapsed_s(of: Values) -> float:
    return of.pace.finished_ns(of.step) / NS_PER_S - of.pace.warmup_s


def _bar(of: Values) -> str:
    """Return a bar like tqdm's, without its end: `` 46%|████▌  | 4120/9000 [6:12:03<7:10:44, 5.30s/it``."""
    step, total, elapsed_s = of.step, of.pace.total_steps, _elapsed_s(of)
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


VALUES: Mapping[str, Callable[[Values], Any]] = {
    "total": lambda of: of.pace.total_steps,
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
    "time": lambda of: of.run.wall(of.run.start_ns + of.pace.finished_ns(of.step)),
    "ms": lambda of: of["time"].microsecond // 1000,
    "elapsed_s": _elapsed_s,
    "step_s": _step_s,
    "step_ms": lambda of: 1000 * _step_s(of),
    "tokens_per_s": lambda of: 8192 / of.pace.step_s * _speed(of),
    "tflops": lambda of: 412.0 * _speed(of),
    "mfu": lambda of: of["tflops"] / 989.0,  # dense bf16 peak of an H100 or H200
    "length": lambda of: 412 + 1.1 * of.step + 30 * smooth(of.run.seed + 1, of.step / 9),
    "reward": lambda of: 0.86 - 0.55 / (1 + of.step / 200) + 0.02 * smooth(of.run.seed, of.step / 6),
    "entropy": lambda of: of["loss"] / 4,
    "throughput": lambda of: 1900 * _speed(of),
    "kl": lambda of: 0.0004 * of.step**0.5,
    "drift": lambda of: 0.03 * smooth(of.run.seed + 2, of.step / 3),
    "bar": _bar,
}


@dataclass(frozen=True, slots=True)
class TrainerLog:
    """The log format of a trainer as templates (see ``VALUES``); calling it gives the lines of a run."""

    opening: Sequence[tuple[float, str]]
    """First lines, each with its share of the warm-up."""
    steps: Sequence[str]
    """Lines after every ``every``-th step."""
    background: Sequence[tuple[str, float, Sequence[str]]]
    """Level, period in seconds, and templates of the lines that every node logs beside the training."""
    every: int = 1
    model: str = ""
    level: str | None = None
    saving: str | None = None
    """Line after a checkpoint."""
    evaluation: str | None = None
    """Line after the evaluation that follows a checkpoint."""
    closing: str | None = None

    def __call__(self, run: SimRun) -> Sequence[LineSource]:
        pace, start_ns, saves = run.curves.pace, run.start_ns, run.plan.scenario.saves

        def after_steps(template: str, level: str | None, every: int, delay_ns: int) -> LineSource:
            def text(step: int) -> str:
                return template.format_map(Values(run, step))

            return step_lines(level, start_ns, pace, text, every, delay_ns)

        values = Values(run, 0)
        values["model"] = self.model
        opening = [(share * pace.warmup_s, text.format_map(values)) for share, text in self.opening]
        sources = [fixed_lines(0, self.level or "INFO", start_ns, opening)]
        for number, template in enumerate(self.steps):
            # Delays of the lines after their step: of the first format, and of each further one.
            delay_ns = 40_000_000 + number * 15_000_000
            sources.append(after_steps(template, self.level, self.every, delay_ns))
        if saves is not None and self.saving is not None:
            source = after_steps(self.saving, "INFO", saves.every, 300_000_000)
            until_s = saves.until_s
            sources.append(source if until_s is None else source.until(start_ns + int(until_s * NS_PER_S)))
        if saves is not None and self.evaluation is not None:
            sources.append(after_steps(self.evaluation, None, saves.every, 900_000_000))
        for salt, (level, period_s, templates) in enumerate(self.background):
            sources += [noise_lines(run, node, level, period_s, templates, salt) for node in run.nodes]
        if self.closing is not None and run.outcome == JobStatus.COMPLETED and run.end_ns is not None:
            summary = self.closing.format_map(Values(run, pace.total_steps))
            sources.append(
                fixed_lines(0, None, run.end_ns, [(-12.0, "Training completed."), (-11.9, summary)])
            )
        return sources


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

    start_ns = run.start_ns + int(run.curves.pace.warmup_s * NS_PER_S)
    return periodic_lines(node, level, start_ns, run.last_line_ns, int(period_s * NS_PER_S), seed, message_of)


def deploy_lines(run: SimRun) -> list[LineSource]:
    """Return the first lines of every job: the demo notice and the start of its nodes."""
    plan, machine = run.plan, run.machine
    gpus = f"{machine.gpu_count}x {machine.gpu_type}" if machine.gpu_count else "CPU only"
    mark = f"{'[demo data]'} simulated run '{plan.scenario.key}' of {plan.name}: nothing is really computed"
    ready_s = 0.25 if run.run_ns is None else (run.run_ns - run.deploy_ns) / NS_PER_S
    sources = [fixed_lines(0, "INFO", run.deploy_ns, [(0.0, mark)])]
    for node in run.nodes:
        steps = [
            (0.02, f"Provisioning {machine.name} ({gpus})"),
            (0.1, "Pulling image pytorch/pytorch:2.7.0-cuda12.8-cudnn9-runtime"),
        ]
        if run.run_ns is not None:
            steps += [
                (0.6, "Image pulled"),
                (0.8, "Weights placed at /app/models from the node-local cache"),
                (0.97, f"Node {node} of {plan.nodes} ready, leader is node-0"),
            ]
        late = 0.02 * uniform(run.seed, node)
        lines = [(ready_s * (share + late), text) for share, text in steps]
        sources.append(fixed_lines(node, "INFO", run.deploy_ns, lines))
    return sources


def closing_lines(run: SimRun) -> list[LineSource]:
    if run.run_ns is None or run.end_ns is None:
        return []
    if run.outcome == JobStatus.COMPLETED:
        message = "start_commands exited with code 0"
        return [fixed_lines(node, "INFO", run.end_ns, [(-2.0 + 0.1 * node, message)]) for node in run.nodes]
    if run.outcome == JobStatus.PREEMPTED:
        lines = [(-30.0, "Spot capacity is being reclaimed: 30 s to save"), (-1.0, SIGTERM)]
        return [fixed_lines(node, "WARNING", run.end_ns, lines) for node in run.nodes]
    return []


SIGTERM = "Received SIGTERM, exiting"


def stop_lines(run: SimRun, stopped_ns: int) -> list[LineSource]:
    return [fixed_lines(node, "WARNING", stopped_ns, [(0.05 + 0.01 * node, SIGTERM)]) for node in run.nodes]


def warns(period_s: float, lines: Sequence[str], node: int = 0) -> RunLog:
    """Return an incident: warnings of one node every few seconds while it trains."""
    return lambda run: [noise_lines(run, node, "WARNING", period_s, lines, salt=9)]


def fails(before_end_s: float, text: str, node: int = 0) -> RunLog:
    """Return an incident: an error shortly before the script ends the run."""
    return lambda run: (
        [] if run.end_ns is None else [fixed_lines(node, "ERROR", run.end_ns, [(-before_end_s, text)])]
    )


def errs(lines: Sequence[tuple[float, str]]) -> RunLog:
    """Return an incident: errors of the leader, as seconds after the start."""
    return lambda run: [fixed_lines(0, "ERROR", run.start_ns, lines)]


_OUT_OF_MEMORY = (
    "Traceback (most recent call last):\n"
    '  File "/b10/workspace/train.py", line 214, in <module>\n'
    "    trainer.train()\n"
    '  File "/usr/local/lib/python3.11/site-packages/transformers/trainer.py", line 2241, in train\n'
    "    return inner_training_loop(\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.91 GiB. GPU 5 has a total capacity "
    "of 79.10 GiB of which 2.44 GiB is free."
)


def out_of_memory(run: SimRun) -> list[LineSource]:
    after = "torch.distributed.elastic: worker 5 failed with exit code 1, stopping the others"
    sources = [*fails(6.0, _OUT_OF_MEMORY)(run)]
    return [*sources, *(line for node in run.nodes for line in fails(4.0, after, node=node)(run))]


def nan_loss(run: SimRun) -> list[LineSource]:
    """Return warnings about clipped gradients, then about inf/nan gradients once the loss is NaN."""

    def message_of(step: int) -> str:
        if step < run.curves.nan_from:
            return f"gradient norm {run.curves.grad_norm(step):.2f}, limit 1.0"
        return "WARNING: found inf/nan in gradients, optimizer step skipped"

    return [step_lines("WARNING", run.start_ns, run.curves.pace, message_of, every=25, delay_ns=10**8)]


def restarting(log: RunLog, *, attempt_s: float, break_s: float, save_every: int) -> RunLog:
    """Return the log restarted every ``attempt_s`` seconds, from the last checkpoint of the attempt before.

    Each attempt fails ``break_s`` before the next one starts.
    """
    crash = (
        "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error"
    )

    def lines(run: SimRun) -> Sequence[LineSource]:
        sources: list[LineSource] = []
        pace = run.curves.pace
        for attempt in range(12):
            start_ns = run.start_ns + int(attempt * attempt_s * NS_PER_S)
            until_ns = start_ns + int((attempt_s - break_s) * NS_PER_S)
            resumed = replace(run, run_ns=start_ns, curves=replace(run.curves, pace=pace))
            again = f"torchrun: worker group restarting, restart_count={attempt + 1}"
            sources += [source.until(until_ns) for source in log(resumed)]
            sources.append(fixed_lines(0, "ERROR", until_ns, [(0.1, crash)]))
            sources.append(fixed_lines(0, "WARNING", until_ns, [(break_s / 2, again)]))
            reached = pace.steps_done(until_ns - start_ns)
            if reached >= pace.total_steps:
                break
            pace = replace(pace, first_step=reached // save_every * save_every)
        return sources

    return lines
