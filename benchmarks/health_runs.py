"""Simulated runs for ``health.py``, which documents the format: healthy and sick runs that look alike."""

# ruff: noqa: E731 (levels are short)

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from simulated_run import HOUR, LOADED_S, Level, Line, Node, Run, busy, ticks, training


def run(
    seed: int,
    hours: float,
    expected: Mapping[str, float] | None = None,
    *,
    lines: Sequence[Line] = (),
    nodes: Sequence[Node] | None = None,
    **options: Any,
) -> Run:
    """Return a training run that also logs ``lines``; it has one busy node unless ``nodes`` are given."""
    trainer_lines = training(seed, hours, **options)
    return Run(hours, [*lines, *trainer_lines], nodes or [Node(busy(seed))], expected or {})


def busy_except(begin: float, end: float = math.inf) -> Level:
    """Return a busy level without samples between two times."""
    return lambda at: None if begin < at < end else 0.95 if at > LOADED_S else 0.0


def healthy(seed: int) -> Run:
    loading = ticks(0, 20, 29, lambda n: f"Loading checkpoint shards: {3 * n}%|█ | {n}/30 [00:10<01:00]")
    return run(seed, 6, lines=loading, nodes=[Node(busy(seed + n)) for n in range(2)])


def bar_at_zero(seed: int) -> Run:
    """A progress bar appears; the first batch is finished fifteen minutes later."""
    lines = [Line(100, "***** Running training *****"), Line(101, "  0%|          | 0/5000 [00:00<?, ?it/s]")]
    return run(seed, 3, lines=lines, begin=1000, nodes=[Node(busy(seed, begin=1000))])


def loading_grows(seed: int) -> Run:
    """Memory of the node and of the GPUs grows for forty minutes while a large model loads."""
    loaded = 2400.0
    node = Node(
        busy(seed, begin=loaded),
        memory=lambda at: 40 + 330 * min(1.0, at / loaded) - (200 if at > loaded + 60 else 0),
        gpu_memory=lambda at: 75 * min(1.0, at / loaded),
        disk=lambda at: 0.1 + 0.8 * min(1, at / loaded),
    )
    loading = ticks(30, 30, 79, lambda n: f"loaded shard {n + 1} of 80")
    return run(seed, 4, lines=loading, begin=loaded, nodes=[node])


def first_save(seed: int) -> Run:
    """The first save takes eleven minutes, and nothing announces it."""
    lines = training(seed, 4, pauses={500: 660, 1000: 700})
    at = lines[499].at
    return Run(4, lines, [Node(lambda now: 0.02 if at < now < at + 660 else 0.95 if now > 600 else 0.0)])


def evaluation(seed: int) -> Run:
    """Evaluations take a quarter of an hour; the log announces them, then has no lines."""
    lines = training(seed, 5, pauses={400: 900, 800: 900})
    lines += [Line(lines[step - 1].at + 1, "***** Running Evaluation *****") for step in (400, 800)]
    return Run(5, lines, [Node(busy(seed + n, level=0.9)) for n in range(2)])


def hang(seed: int) -> Run:
    end = 2 * HOUR
    spin = lambda at: 0.0 if at < LOADED_S else 0.95 if at < end else 1.0
    return Run(3, training(seed, 2), [Node(spin), Node(spin)], {"stalled": end})


def hang_idle(seed: int) -> Run:
    end = 2 * HOUR + seed * 333
    nodes = [Node(busy(seed + n, end=end)) for n in range(2)]
    return Run(3.2, training(seed, end / HOUR), nodes, {"stalled": end})


def nan_for_good(seed: int) -> Run:
    loss = lambda step: math.nan if step > 500 else 2 + 4 / (1 + step / 100)
    return run(seed, 3, {"loss-not-finite": LOADED_S + 4900}, loss=loss)


def nan_once(seed: int) -> Run:
    """A loss scale adapts: some single steps have a NaN loss and are skipped."""
    return run(seed, 3, loss=lambda step: math.nan if step % 211 == 7 else 2 + 4 / (1 + step / 100))


def curriculum(seed: int) -> Run:
    """Harder data from step 600: the loss rises by half, then falls again."""
    harder = lambda step: 0 if step < 600 else 1.2 / (1 + (step - 600) / 150)
    return run(seed, 5, loss=lambda step: 0.9 + 1.5 / (1 + step / 60) + harder(step))


def exploding(seed: int) -> Run:
    loss = lambda step: 2 + 4 / (1 + step / 100) if step < 700 else min(11.0, 2.5 * 1.03 ** (step - 700))
    return run(seed, 5, {"loss-exploding": LOADED_S + 6900}, loss=loss)


def warm_restarts(seed: int) -> Run:
    """A cosine schedule with restarts: the loss rises for a while after each restart."""
    restarted = lambda step: 0.55 * math.exp(-(step % 400) / 60) if step >= 400 else 0
    return run(seed, 6, loss=lambda step: 0.4 + 1.2 / (1 + step / 150) + restarted(step))


def negative_loss(seed: int) -> Run:
    noise_source = random.Random(seed)
    loss = lambda step: (
        -0.9 + 0.5 / (1 + step / 50) + 0.15 * math.sin(step / 90) + noise_source.gauss(0, 0.05)
    )
    return run(seed, 5, loss=loss)


def adversarial(seed: int) -> Run:
    loss = lambda step: 0.7 + 0.6 * math.log1p(step / 80) + 0.3 * math.sin(step / 40)
    line_format = "step {step}/{total} loss_G: {loss:.4f} loss_D: 0.4312 lr: 2e-4"
    return run(seed, 5, loss=loss, noise=0.15, line_format=line_format)


def policy_loss(seed: int) -> Run:
    noise_source = random.Random(seed)
    loss = lambda step: 0.02 + noise_source.gauss(0, 0.03) + step * 2e-4
    line_format = (
        "step {step}/{total} - actor/pg_loss: {loss:.5f} - critic/rewards: 0.4 - timing_s/step: {took:.2f}"
    )
    return run(seed, 5, loss=loss, line_format=line_format, step_s=60)


def decaying_speed(seed: int) -> Run:
    """Steps become slower, by half after four hours; GPU utilization falls."""
    pace = lambda at: 1 + 0.5 * min(1.0, max(0.0, at - HOUR) / (3 * HOUR))
    noise_source = random.Random(seed)
    utilization = lambda at: 0.0 if at < LOADED_S else noise_source.gauss(0.95 / pace(at), 0.02)
    return run(seed, 6, {"slowdown": HOUR}, pace=pace, nodes=[Node(utilization)])


def throttled(seed: int) -> Run:
    """After two hours, all steps take half as long again, while GPU utilization does not change."""
    pace = lambda at: 1.5 if at > 2 * HOUR else 1.0
    return run(seed, 5, {"slowdown": 2 * HOUR}, pace=pace, nodes=[Node(busy(seed)) for _ in range(2)])


def longer_sequences(seed: int) -> Run:
    """After two hours, sequences and steps are twice as long; tokens per second do not change."""
    pace = lambda at: 2.0 if at > 2 * HOUR else 1.0
    lines = training(seed, 5, "step {step}/{total} loss {loss:.4f} step_time_s {took:.3f}", pace=pace)
    for n, line in enumerate(lines):
        line.text += f" tokens_per_sec {41000 + n % 7 * 200}"
    return Run(5, lines, [Node(busy(seed))])


def waves_of_speed(seed: int) -> Run:
    """Batches are sorted by length: each epoch of an hour begins slowly and ends fast."""
    return run(seed, 6, pace=lambda at: 1.6 - 0.8 * (at % HOUR) / HOUR)


def learns_little(seed: int) -> Run:
    """A fine-tuning run whose loss is noisy and hardly changes."""
    return run(seed, 6, loss=lambda step: 1.2 - step / 40_000, noise=0.05)


def evaluated(seed: int, loss: Callable[[int], float]) -> list[Line]:
    """Return lines with a training loss that falls for seven hours, and an evaluation every 100 steps."""
    noise_source, lines = random.Random(seed), training(seed, 7, loss=lambda step: 0.4 + 2 / (1 + step / 300))
    for step in range(100, len(lines), 100):
        text = f"step {step} eval_loss: {loss(step) + noise_source.gauss(0, 0.01):.4f}"
        lines.append(Line(lines[step - 1].at + 5, text))
    return lines


def overfits(seed: int) -> Run:
    lines = evaluated(seed, lambda step: 1.1 + math.exp(-step / 300) + max(0, step - 1000) / 5000)
    return Run(7, lines, [Node(busy(seed))], {"overfitting": LOADED_S + 10_000})


def levels_off(seed: int) -> Run:
    """The evaluation loss stays above the training loss, and rises by a few hundredths."""
    lines = evaluated(seed, lambda step: 1.1 + math.exp(-step / 300) + max(0, step - 1000) / 60_000)
    return Run(7, lines, [Node(busy(seed))])


def starves(seed: int) -> Run:
    """The CPUs are fully used from the first step, and the GPUs wait for them."""
    node = Node(busy(seed, level=0.35), cpu=busy(seed, level=60))
    return run(seed, 3, {"gpu-underused": LOADED_S}, nodes=[node])


def small_model(seed: int) -> Run:
    return run(seed, 3, nodes=[Node(busy(seed, level=0.35))])


def slow_in_bursts(seed: int) -> Run:
    """After two hours, the run waits for data in four of every nine minutes."""
    waits = lambda at: at > 2 * HOUR and at % 540 < 240
    node = Node(lambda at: 0.3 if waits(at) else 0.95 if at > LOADED_S else 0.0)
    return run(seed, 5, {"slowdown": 2 * HOUR}, pace=lambda at: 2.6 if waits(at) else 1.0, nodes=[node])


def slow_node(seed: int) -> Run:
    """Each node prints its own step time; node-2 is 15% slower after two hours."""
    noise_source, lines = random.Random(seed), []
    for n in range(1, 1600):
        at = LOADED_S + 10 * n
        for node in range(4):
            step_time_s = 10 * noise_source.gauss(1, 0.02) * (1.15 if node == 2 and at > 2 * HOUR else 1)
            lines.append(Line(at + node / 10, f"step {n}/5000 loss 2.1 step_time {step_time_s:.3f}s", node))
    return Run(4, lines, [Node(busy(seed + n)) for n in range(4)], {"straggler": 2 * HOUR})


def unmeasured_node(seed: int) -> Run:
    """node-1 logs every few seconds, and its metrics stop."""
    lines = ticks(0, 7, 1500, lambda n: f"batch {n} loaded", 1)
    nodes = [Node(busy(seed)), Node(busy_except(2 * HOUR))]
    return run(seed, 3, {"metrics-missing": 2 * HOUR}, lines=lines, nodes=nodes)


def metrics_gap(seed: int) -> Run:
    """Four minutes without samples of one node, which never logs."""
    return run(seed, 3, nodes=[Node(busy(seed)), Node(busy_except(7200, 7440))])


def dead_node(seed: int) -> Run:
    lines = training(seed, 2)
    lines += ticks(0, 9, 800, lambda n: f"prefetched {n}", 1)
    lines += ticks(7200, 60, 60, lambda n: "waiting for peers")
    nodes = [Node(busy(seed)), Node(busy_except(2 * HOUR))]
    return Run(3, lines, nodes, {"node-missing": 2 * HOUR}, ["stalled"])


def never_saved(seed: int) -> Run:
    """The log announces a checkpoint every 250 steps; the platform lists only the first two."""
    lines = training(seed, 5)
    saves = {f"checkpoint-{n}": lines[n - 1].at for n in range(250, len(lines) + 1, 250)}
    lines += [Line(at + 1, f"Saving model checkpoint to /mnt/ckpts/{name}") for name, at in saves.items()]
    listed = [(at + 40, name) for name, at in saves.items()][:2]
    overdue = {"checkpoint-overdue": saves["checkpoint-750"]}
    return Run(5, lines, [Node(busy(seed))], overdue, checkpoints=listed)


def save_interval_unkept(seed: int) -> Run:
    """The printed settings have a checkpoint every 200 steps, but none is written."""
    arguments = "output_dir=/mnt/ckpts, save_strategy=steps, save_steps=200, logging_steps=1"
    lines = [Line(30, f"TrainingArguments({arguments})")]
    return replace(run(seed, 5, {"checkpoint-overdue": LOADED_S + 2000}, lines=lines), checkpoints=[])


def pruned_checkpoints(seed: int) -> Run:
    """A checkpoint takes 6% of the disk every 20 minutes; the trainer keeps only three."""
    return run(seed, 5, nodes=[Node(busy(seed), disk=lambda at: 0.15 + 0.06 * min(3, at // 1200))])


def leak(seed: int) -> Run:
    memory = lambda at: 110 + max(0.0, at - HOUR) / HOUR * 45
    return run(seed, 6, {"memory-leak": HOUR}, nodes=[Node(busy(seed), memory=memory)])


def page_cache(seed: int) -> Run:
    """Host memory rises to a plateau as the data set is read for the first time."""
    memory = lambda at: 90 + 230 * (1 - math.exp(-max(0.0, at - LOADED_S) / 2400))
    return run(seed, 6, nodes=[Node(busy(seed), memory=memory)])


def retried_error(seed: int) -> Run:
    lines = [Line(5000, "ERROR: connection to the artifact server was reset, retrying (1/5)")]
    return run(seed, 3, lines=lines)


def upload_at_end(seed: int) -> Run:
    lines = training(seed, 3, total=600)
    end = lines[-1].at
    lines.append(Line(end + 5, "Uploading 14 files to s3://bucket/run"))
    return Run((end + 1000) / HOUR, lines, [Node(busy(seed, end=end))])
