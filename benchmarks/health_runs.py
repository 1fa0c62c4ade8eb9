"""Simulated runs for ``health.py``: healthy and sick ones that look alike. See there how to write one."""

# ruff: noqa: D103, E731 (the names of runs say what they are, and levels are short)

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from simulated_run import Level, Line, Node, Run

HOUR = 3600.0
LOADED_S = 600.0
"""By then a model has loaded, and the first step begins."""


def training(
    seed: int,
    until: float,
    *,
    every: float = 10.0,
    begin: float = LOADED_S,
    total: int = 5000,
    loss: Callable[[int], float] = lambda step: 2 + 4 / (1 + step / 100),
    noise: float = 0.02,
    pauses: Sequence[tuple[int, float]] = (),
    form: str = "step {step}/{total} | loss {loss:.4f} | lr 1e-5 | grad norm {norm:.3f} | {speed:.0f} tok/s",
    pace: Callable[[float], float] = lambda at: 1.0,
) -> list[Line]:
    """Lines of a run that takes ``every`` seconds a step; a pause is (after that step, its seconds)."""
    draw = random.Random(seed)
    lines, at = [], begin
    waits = dict(pauses)
    for step in range(1, total + 1):
        took = every * pace(at) * (1 + draw.gauss(0, 0.02))
        at += took
        if at > until:
            break
        value = loss(step) * (1 + draw.gauss(0, noise))
        text = form.format(
            step=step,
            total=total,
            loss=value,
            norm=0.8 + draw.random() * 0.3,
            speed=40000 * every / took,
            took=took,
            ms=took * 1000,
            rate=1 / took,
        )
        lines.append(Line(at, text))
        at += waits.get(step, 0.0)
    return lines


def busy(seed: int, *, begin: float = LOADED_S, end: float = math.inf, level: float = 0.95) -> Level:
    draw = random.Random(seed + 1)
    return lambda at: max(0.0, draw.gauss(level, 0.015)) if begin <= at < end else 0.0


def healthy(seed: int) -> Run:
    loading = [
        Line(20.0 * n, f"Loading checkpoint shards: {3 * n}%|█ | {n}/30 [00:10<01:00]") for n in range(29)
    ]
    return Run(6, loading + training(seed, 6 * HOUR), [Node(gpu=busy(seed + n)) for n in range(2)])


def bar_at_zero(seed: int) -> Run:
    """The bar is there, and the first batch comes fifteen minutes later."""
    lines = [Line(100, "***** Running training *****"), Line(101, "  0%|          | 0/5000 [00:00<?, ?it/s]")]
    return Run(3, lines + training(seed, 3 * HOUR, begin=1000), [Node(gpu=busy(seed, begin=1000))])


def loading_grows(seed: int) -> Run:
    """Memory of the node and of the GPUs grows for forty minutes while a large model loads."""
    loaded = 2400.0
    memory = lambda at: 40 + 330 * min(1.0, at / loaded) - (200 if at > loaded + 60 else 0)
    gpu = lambda at: 75 * min(1.0, at / loaded)
    loading = [Line(30.0 * n, f"loaded shard {n} of 80") for n in range(1, 80)]
    node = Node(
        gpu=busy(seed, begin=loaded),
        memory=memory,
        gpu_memory=gpu,
        disk=lambda at: 0.1 + 0.8 * min(1, at / loaded),
    )
    return Run(4, loading + training(seed, 4 * HOUR, begin=loaded), [node])


def first_save(seed: int) -> Run:
    """The first save takes eleven minutes, and nothing announces it."""
    lines = training(seed, 4 * HOUR, pauses=[(500, 660), (1000, 700)])
    at = lines[499].at
    return Run(4, lines, [Node(gpu=lambda now: 0.02 if at < now < at + 660 else 0.95 if now > 600 else 0.0)])


def evaluation(seed: int) -> Run:
    """Evaluations that are announced, silent, and take a quarter of an hour; the GPUs are half busy."""
    lines = training(seed, 5 * HOUR, pauses=[(400, 900), (800, 900)])
    lines += [Line(lines[step - 1].at + 1, "***** Running Evaluation *****") for step in (400, 800)]
    return Run(5, lines, [Node(gpu=busy(seed, level=0.9)), Node(gpu=busy(seed + 1, level=0.9))])


def hang(seed: int) -> Run:
    end = 2 * HOUR
    spin = lambda at: 0.0 if at < LOADED_S else 0.95 if at < end else 1.0
    return Run(3, training(seed, end), [Node(gpu=spin), Node(gpu=spin)], {"stalled": end})


def hang_idle(seed: int) -> Run:
    end = 2 * HOUR + seed * 333
    nodes = [Node(gpu=busy(seed + n, end=end)) for n in range(2)]
    return Run(3.2, training(seed, end), nodes, {"stalled": end})


def nan_for_good(seed: int) -> Run:
    loss = lambda step: math.nan if step > 500 else 2 + 4 / (1 + step / 100)
    return Run(
        3, training(seed, 3 * HOUR, loss=loss), [Node(gpu=busy(seed))], {"loss-not-finite": LOADED_S + 4900}
    )


def nan_once(seed: int) -> Run:
    """A loss scale that finds its place: a few single NaN losses, skipped."""
    loss = lambda step: math.nan if step % 211 == 7 else 2 + 4 / (1 + step / 100)
    return Run(3, training(seed, 3 * HOUR, loss=loss), [Node(gpu=busy(seed))])


def curriculum(seed: int) -> Run:
    """Harder data from step 600 on: the loss rises by half, and falls again."""
    loss = lambda step: 0.9 + 1.5 / (1 + step / 60) + (0 if step < 600 else 1.2 / (1 + (step - 600) / 150))
    return Run(5, training(seed, 5 * HOUR, loss=loss), [Node(gpu=busy(seed))])


def exploding(seed: int) -> Run:
    loss = lambda step: 2 + 4 / (1 + step / 100) if step < 700 else min(11.0, 2.5 * 1.03 ** (step - 700))
    return Run(
        5, training(seed, 5 * HOUR, loss=loss), [Node(gpu=busy(seed))], {"loss-exploding": LOADED_S + 6900}
    )


def warm_restarts(seed: int) -> Run:
    """A cosine schedule with restarts: after each the loss rises for a while."""

    def loss(step: int) -> float:
        phase = step % 400
        return 0.4 + 1.2 / (1 + step / 150) + (0.55 * math.exp(-phase / 60) if step >= 400 else 0)

    return Run(6, training(seed, 6 * HOUR, loss=loss), [Node(gpu=busy(seed))])


def negative_loss(seed: int) -> Run:
    draw = random.Random(seed)
    loss = lambda step: -0.9 + 0.5 / (1 + step / 50) + 0.15 * math.sin(step / 90) + draw.gauss(0, 0.05)
    return Run(5, training(seed, 5 * HOUR, loss=loss), [Node(gpu=busy(seed))])


def adversarial(seed: int) -> Run:
    loss = lambda step: 0.7 + 0.6 * math.log1p(step / 80) + 0.3 * math.sin(step / 40)
    form = "step {step}/{total} loss_G: {loss:.4f} loss_D: 0.4312 lr: 2e-4"
    return Run(5, training(seed, 5 * HOUR, loss=loss, noise=0.15, form=form), [Node(gpu=busy(seed))])


def policy_loss(seed: int) -> Run:
    draw = random.Random(seed)
    loss = lambda step: 0.02 + draw.gauss(0, 0.03) + step * 2e-4
    form = "step {step}/{total} - actor/pg_loss: {loss:.5f} - critic/rewards: 0.4 - timing_s/step: {took:.2f}"
    return Run(5, training(seed, 5 * HOUR, loss=loss, form=form, every=60), [Node(gpu=busy(seed))])


def decaying_speed(seed: int) -> Run:
    """Steps take longer and longer, by half after four hours; the GPUs wait more and more."""
    pace = lambda at: 1 + 0.5 * min(1.0, max(0.0, at - HOUR) / (3 * HOUR))
    draw = random.Random(seed)
    use = lambda at: 0.0 if at < LOADED_S else draw.gauss(0.95 / pace(at), 0.02)
    return Run(6, training(seed, 6 * HOUR, pace=pace), [Node(gpu=use)], {"slowdown": HOUR})


def throttled(seed: int) -> Run:
    """From one moment on all steps take a third longer, while the GPUs are as busy as before."""
    pace = lambda at: 1.5 if at > 2 * HOUR else 1.0
    return Run(
        5,
        training(seed, 5 * HOUR, pace=pace),
        [Node(gpu=busy(seed)) for _ in range(2)],
        {"slowdown": 2 * HOUR},
    )


def longer_sequences(seed: int) -> Run:
    """Sequences twice as long from two hours on: steps take twice as long, tokens a second stay."""
    pace = lambda at: 2.0 if at > 2 * HOUR else 1.0
    lines = training(
        seed, 5 * HOUR, pace=pace, form="step {step}/{total} loss {loss:.4f} step_time_s {took:.3f}"
    )
    lines = [
        Line(line.at, f"{line.text} tokens_per_sec {41000 + n % 7 * 200}") for n, line in enumerate(lines)
    ]
    return Run(5, lines, [Node(gpu=busy(seed))])


def waves_of_speed(seed: int) -> Run:
    """Batches sorted by length: each epoch of an hour begins slow and ends fast."""
    pace = lambda at: 1.6 - 0.8 * (at % HOUR) / HOUR
    return Run(6, training(seed, 6 * HOUR, pace=pace), [Node(gpu=busy(seed))])


def learns_little(seed: int) -> Run:
    """A fine-tuning whose loss is noisy and hardly moves."""
    lines = training(seed, 6 * HOUR, loss=lambda step: 1.2 - step / 40_000, noise=0.05)
    return Run(6, lines, [Node(gpu=busy(seed))])


def evaluated(seed: int, loss: Callable[[int], float]) -> list[Line]:
    """A training loss that falls for seven hours, with an evaluation every 100 steps."""
    draw, lines = random.Random(seed), training(seed, 7 * HOUR, loss=lambda step: 0.4 + 2 / (1 + step / 300))
    steps = range(100, len(lines), 100)
    values = (f"step {step} eval_loss: {loss(step) + draw.gauss(0, 0.01):.4f}" for step in steps)
    return lines + [Line(lines[step - 1].at + 5, text) for step, text in zip(steps, values, strict=True)]


def overfits(seed: int) -> Run:
    lines = evaluated(seed, lambda step: 1.1 + math.exp(-step / 300) + max(0, step - 1000) / 5000)
    return Run(7, lines, [Node(gpu=busy(seed))], {"overfitting": LOADED_S + 10_000})


def levels_off(seed: int) -> Run:
    """An evaluation loss that stays above the training loss, and rises by a few hundredths."""
    lines = evaluated(seed, lambda step: 1.1 + math.exp(-step / 300) + max(0, step - 1000) / 60_000)
    return Run(7, lines, [Node(gpu=busy(seed))])


def starves(seed: int) -> Run:
    """The CPUs are at their limit from the first step on, and the GPUs wait for them."""
    node = Node(gpu=busy(seed, level=0.35), cpu=busy(seed, level=60))
    return Run(3, training(seed, 3 * HOUR), [node], {"gpu-underused": LOADED_S})


def small_model(seed: int) -> Run:
    return Run(3, training(seed, 3 * HOUR), [Node(gpu=busy(seed, level=0.35))])


def slow_in_bursts(seed: int) -> Run:
    """From two hours on, the run waits for data in four of nine minutes."""
    waits = lambda at: at > 2 * HOUR and at % 540 < 240
    lines = training(seed, 5 * HOUR, pace=lambda at: 2.6 if waits(at) else 1.0)
    node = Node(gpu=lambda at: 0.3 if waits(at) else 0.95 if at > LOADED_S else 0.0)
    return Run(5, lines, [node], {"slowdown": 2 * HOUR})


def slow_node(seed: int) -> Run:
    """Each node prints its own step time; node-2 is 15% slower from the second hour on."""
    draw = random.Random(seed)
    lines = []
    for n in range(1, 1600):
        at = LOADED_S + 10 * n
        for node in range(4):
            took = 10 * draw.gauss(1, 0.02) * (1.15 if node == 2 and at > 2 * HOUR else 1)
            lines.append(Line(at + node / 10, f"step {n}/5000 loss 2.1 step_time {took:.3f}s", node))
    return Run(4, lines, [Node(gpu=busy(seed + n)) for n in range(4)], {"straggler": 2 * HOUR})


def unmeasured_node(seed: int) -> Run:
    """node-1 logs every few seconds, and its metrics stop."""
    lines = training(seed, 3 * HOUR)
    lines += [Line(7.0 * n, f"batch {n} loaded", 1) for n in range(1500)]
    gone = lambda at: None if at > 2 * HOUR else 0.95 if at > LOADED_S else 0.0
    return Run(3, lines, [Node(gpu=busy(seed)), Node(gpu=gone)], {"metrics-missing": 2 * HOUR})


def metrics_gap(seed: int) -> Run:
    """Four minutes without samples of one node, which never logs."""
    gap = lambda at: None if 7200 < at < 7440 else 0.95 if at > LOADED_S else 0.0
    return Run(3, training(seed, 3 * HOUR), [Node(gpu=busy(seed)), Node(gpu=gap)])


def dead_node(seed: int) -> Run:
    lines = training(seed, 2 * HOUR) + [Line(9.0 * n, f"prefetched {n}", 1) for n in range(800)]
    gone = lambda at: None if at > 2 * HOUR else 0.95 if at > LOADED_S else 0.0
    lines += [Line(60.0 * n, "waiting for peers") for n in range(120, 180)]
    nodes = [Node(gpu=busy(seed)), Node(gpu=gone)]
    return Run(3, lines, nodes, {"node-missing": 2 * HOUR}, frozenset({"stalled"}))


def never_saved(seed: int) -> Run:
    """The log announces a save every 250 steps; after the second, none reaches the platform."""
    lines = training(seed, 5 * HOUR)
    saves = [line for n, line in enumerate(lines, 1) if n % 250 == 0]
    lines += [
        Line(one.at + 1, f"Saving model checkpoint to /mnt/ckpts/checkpoint-{250 * n}")
        for n, one in enumerate(saves, 1)
    ]
    listed = [(one.at + 40, f"checkpoint-{250 * n}") for n, one in enumerate(saves[:2], 1)]
    return Run(5, lines, [Node(gpu=busy(seed))], {"checkpoint-overdue": saves[2].at}, checkpoints=listed)


def save_interval_unkept(seed: int) -> Run:
    """The settings announce a save every 200 steps, and none is ever made."""
    lines = [
        Line(
            30,
            "TrainingArguments(output_dir=/mnt/ckpts, save_strategy=steps, save_steps=200, logging_steps=1)",
        )
    ]
    return Run(
        5,
        lines + training(seed, 5 * HOUR),
        [Node(gpu=busy(seed))],
        {"checkpoint-overdue": LOADED_S + 2000},
        checkpoints=[],
    )


def pruned_checkpoints(seed: int) -> Run:
    """A checkpoint of 6% of the disk every 20 minutes; only three are kept."""
    disk = lambda at: 0.15 + 0.06 * min(3, at // 1200)
    return Run(5, training(seed, 5 * HOUR), [Node(gpu=busy(seed), disk=disk)])


def leak(seed: int) -> Run:
    memory = lambda at: 110 + max(0.0, at - HOUR) / HOUR * 45
    return Run(6, training(seed, 6 * HOUR), [Node(gpu=busy(seed), memory=memory)], {"memory-leak": HOUR})


def page_cache(seed: int) -> Run:
    """Host memory rises to a plateau as the data set is read for the first time."""
    memory = lambda at: 90 + 230 * (1 - math.exp(-max(0.0, at - LOADED_S) / 2400))
    return Run(6, training(seed, 6 * HOUR), [Node(gpu=busy(seed), memory=memory)])


def retried_error(seed: int) -> Run:
    lines = training(seed, 3 * HOUR)
    lines.append(Line(5000, "ERROR: connection to the artifact server was reset, retrying (1/5)"))
    return Run(3, lines, [Node(gpu=busy(seed))])


def upload_at_end(seed: int) -> Run:
    lines = training(seed, 3 * HOUR, total=600)
    end = lines[-1].at
    lines.append(Line(end + 5, "Uploading 14 files to s3://bucket/run"))
    return Run((end + 1000) / HOUR, lines, [Node(gpu=busy(seed, end=end))])


RUNS = (
    healthy,
    bar_at_zero,
    loading_grows,
    first_save,
    evaluation,
    hang,
    hang_idle,
    nan_for_good,
    nan_once,
    curriculum,
    exploding,
    warm_restarts,
    negative_loss,
    adversarial,
    policy_loss,
    decaying_speed,
    throttled,
    longer_sequences,
    waves_of_speed,
    learns_little,
    overfits,
    levels_off,
    starves,
    small_model,
    slow_in_bursts,
    slow_node,
    unmeasured_node,
    metrics_gap,
    dead_node,
    never_saved,
    save_interval_unkept,
    pruned_checkpoints,
    leak,
    page_cache,
    retried_error,
    upload_at_end,
)
