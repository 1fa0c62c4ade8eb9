"""Runs for ``health.py`` in the formats of common trainers, written without knowledge of the rules.

Rules are developed on ``health_runs.py``. These runs measure them: do not tune a rule on a single run here.
"""

# ruff: noqa: D103, E501, E731 (the names of runs say what they are; lines of logs are long, levels short)

from __future__ import annotations

import math
import random
from typing import Any

from health_runs import HOUR, LOADED_S, busy, training
from simulated_run import Level, Line, Node, Run, steady

HF = "{{'loss': {loss:.4f}, 'grad_norm': {norm:.3f}, 'learning_rate': 9.1e-06, 'epoch': 0.31}}"
MEGATRON = (
    " [2026-11-22 10:00:00] iteration {step:8d}/{total:8d} | consumed samples: {step:12d} | elapsed time per "
    "iteration (ms): {ms:.1f} | learning rate: 1.000000E-05 | global batch size:   128 | lm loss: {loss:.6E} | "
    "loss scale: 1.0 | grad norm: {norm:.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |"
)
NANOGPT = "iter {step}: loss {loss:.4f}, time {ms:.2f}ms, mfu 41.20%"
DEEPSPEED = "steps: {step} loss: {loss:.4f} iter time (s): {took:.3f} samples/sec: {rate:.3f}"
VERL = (
    "(TaskRunner pid=812) step:{step} - actor/pg_loss:{loss:.5f} - actor/grad_norm:{norm:.3f} - "
    "critic/score/mean:0.412 - response_length/mean:812.3 - timing_s/step:{took:.2f}"
)
LIGHTNING = (
    "Epoch 0:  12%|█▏        | {step}/{total} [02:00<14:40,  {rate:.2f}it/s, v_num=0, train_loss={loss:.3f}]"
)


def falling(step: int) -> float:
    return 1.6 + 3.2 / (1 + step / 80)


def log(seed: int, hours: float, form: str, *, print_every: int = 1, **options: Any) -> list[Line]:
    """Lines in a trainer's format, ``print_every`` steps apart; ``options`` are those of ``training``."""
    usual = {"every": 12.0, "total": 20_000, "loss": falling, "noise": 0.03}
    lines = training(seed, hours * HOUR, form=form, **(usual | options))
    return lines[print_every - 1 :: print_every]


def nodes(seed: int, count: int = 2, **level: float) -> list[Node]:
    return [Node(gpu=busy(seed + 7 * n, **level)) for n in range(count)]


def paused(level: Level, *pauses: tuple[float, float], to: float = 0.01) -> Level:
    """Return a level that falls during the pauses (begin, end)."""
    return lambda at: to if any(begin <= at < end for begin, end in pauses) else level(at)


# Healthy runs.


def hf_with_long_evaluations(seed: int) -> Run:
    lines = log(seed, 6, HF, pauses=((500, 1200), (1000, 1200)), print_every=5)
    for mark in (lines[99], lines[199]):
        lines += [
            Line(
                mark.at + 10 + 30 * n,
                f" {2 * n}%|██        | {n * 4}/160 [0{n % 9}:10<10:00,  7.5s/it]",
            )
            for n in range(38)
        ]
        lines.append(
            Line(
                mark.at + 1190,
                "{'eval_loss': 1.9123, 'eval_runtime': 1180.2, 'eval_samples_per_second': 11.2, 'epoch': 0.4}",
            )
        )
    return Run(6, lines, nodes(seed))


def compiling_first_step(seed: int) -> Run:
    """Compilation keeps the GPUs idle for 22 minutes after the trainer starts."""
    begin = LOADED_S + 1320
    intro = [
        Line(120, "compiling the model... (takes a ~minute)"),
        Line(LOADED_S, "training starts: 20000 iterations"),
    ]
    return Run(
        4, intro + log(seed, 4, NANOGPT, begin=begin, every=4), nodes(seed, begin=begin - 400, level=0.97)
    )


def tokenizing_first(seed: int) -> Run:
    begin = 3000.0
    bars = [
        Line(
            60 + 20 * n,
            f"Tokenizing train (num_proc=16): {n * 100 // 145:3d}%|███       | {n * 6900}/1000000 [0{n % 6}:10<08:00, 1800.21 examples/s]",
        )
        for n in range(145)
    ]
    return Run(4, bars + log(seed, 4, HF, begin=begin, print_every=10), nodes(seed, begin=begin))


def rollouts_and_updates(seed: int) -> Run:
    """A step of reinforcement learning takes eight minutes: six of sampling at a third, two of updates."""
    draw = random.Random(seed)
    use = lambda at: 0.0 if at < 900 else max(0.0, draw.gauss(0.35 if (at - 900) % 480 < 360 else 0.93, 0.05))
    loss = lambda step: 0.01 * math.sin(step / 3)
    return Run(
        8,
        log(seed, 8, VERL, every=480, begin=900, total=300, loss=loss, noise=0.8),
        [Node(gpu=use) for _ in range(4)],
    )


def trainers_and_samplers(seed: int) -> Run:
    """Two nodes train; two serve samples, in waves."""
    draw = random.Random(seed)
    serve = lambda at: 0.0 if at < 700 else max(0.0, draw.gauss(0.45 + 0.3 * math.sin(at / 500), 0.08))
    lines = log(seed, 6, VERL, every=150, begin=1000, loss=lambda step: 0.02, noise=1.0)
    lines += [
        Line(
            700 + 25 * n,
            f"INFO 11-22 10:00:00 metrics.py:481] Avg prompt throughput: {draw.gauss(900, 200):.1f} tokens/s, Running: 31 reqs, GPU KV cache usage: 41.2%.",
            2 + n % 2,
        )
        for n in range(800)
    ]
    return Run(
        6,
        lines,
        [Node(gpu=busy(seed, begin=1000, level=0.85)) for _ in range(2)]
        + [Node(gpu=serve) for _ in range(2)],
    )


def slow_saves_and_pruned_disk(seed: int) -> Run:
    lines = log(seed, 6, DEEPSPEED, pauses=tuple((150 * n, 360.0) for n in range(1, 12)))
    marks = [line.at for n, line in enumerate(lines, 1) if n % 150 == 0]
    lines += [
        Line(
            at + 1,
            f"[INFO] [torch_checkpoint_engine.py:21:save] [Torch] Saving /mnt/ckpts/global_step{150 * n}/mp_rank_00_model_states.pt...",
        )
        for n, at in enumerate(marks, 1)
    ]
    use = paused(busy(seed), *((at, at + 360) for at in marks))
    kept = lambda at: 0.2 + 0.09 * min(2, sum(mark < at for mark in marks))
    return Run(
        6,
        lines,
        [Node(gpu=use, disk=kept)],
        checkpoints=[(at + 380, f"global_step{150 * n}") for n, at in enumerate(marks, 1)],
    )


def detection_epochs(seed: int) -> Run:
    """A detector's epochs of four minutes, each a bar that starts again, then a validation."""
    draw, lines = random.Random(seed), []
    for epoch in range(1, 70):
        begin = 400 + 270.0 * epoch
        box = 0.6 + 1.2 / (1 + epoch / 6)
        lines += [
            Line(
                begin + 12 * n,
                f"     {epoch:3d}/100      11.2G     {draw.gauss(box, 0.05):.4f}     {draw.gauss(box * 0.7, 0.04):.4f}     0.9721         34        640: {n * 5:3d}%|█████     | {n * 12}/250 [00:{n * 3:02d}<00:40,  4.01it/s]",
            )
            for n in range(20)
        ]
        lines.append(
            Line(
                begin + 262,
                f"                   all       5000      36335      0.671      0.512      {0.2 + 0.4 * epoch / 70:.3f}      0.331",
            )
        )
    return Run(5, lines, [Node(gpu=busy(seed, begin=600, level=0.8))])


def adversarial_epochs(seed: int) -> Run:
    draw = random.Random(seed)
    lines = [
        Line(
            LOADED_S + 6 * n,
            f"[{n // 400}/25][{n % 400}/400] Loss_D: {abs(draw.gauss(0.6, 0.3)):.4f} Loss_G: {abs(draw.gauss(1.5 + n / 900, 0.8)):.4f} D(x): 0.74 D(G(z)): 0.31 / 0.12",
        )
        for n in range(2400)
    ]
    return Run(4, lines, [Node(gpu=busy(seed, level=0.9))])


def pushing_to_the_hub(seed: int) -> Run:
    lines = log(seed, 3, HF, total=700)
    end = lines[-1].at
    lines += [
        Line(
            end + 3,
            "{'train_runtime': 8411.2, 'train_samples_per_second': 5.1, 'train_loss': 1.7312, 'epoch': 3.0}",
        ),
        Line(end + 9, "Pushing model to the hub: org/model"),
    ]
    lines += [
        Line(
            end + 20 + 30 * n,
            f"model-00001-of-00004.safetensors: {3 * n}%|▏         | {0.15 * n:.2f}G/4.98G [00:30<12:00, 6.1MB/s]",
        )
        for n in range(30)
    ]
    return Run((end + 950) / HOUR, lines, nodes(seed, 1, end=end))


def resumed_after_a_restart(seed: int) -> Run:
    first = log(seed, 2, HF)
    again = [
        Line(
            2 * HOUR + 60,
            "Continuing training from global_step 500. Will skip the first 0 epochs then 500 batches.",
        )
    ]
    later = log(seed + 1, 5, HF, begin=2 * HOUR + 500, loss=lambda step: falling(step + 500))
    use = paused(busy(seed), (2 * HOUR, 2 * HOUR + 500))
    return Run(
        5, first + again + later, [Node(gpu=use)], allowed=frozenset({"restarts"}), restarts=[2 * HOUR]
    )


def tiny_batches(seed: int) -> Run:
    return Run(4, log(seed, 4, NANOGPT, every=0.9 * 4, noise=0.3), nodes(seed, 1, level=0.55))


def rare_lines(seed: int) -> Run:
    """A line each hundred steps: twenty-five minutes of silence is usual."""
    return Run(9, log(seed, 9, MEGATRON, every=15, print_every=100), nodes(seed, 4, level=0.98))


def epoch_pauses(seed: int) -> Run:
    """The data loader starts again at each epoch, for four minutes."""
    lines = log(seed, 6, LIGHTNING, every=5, pauses=tuple((500 * n, 240.0) for n in range(1, 9)))
    gaps = [(line.at, line.at + 240) for n, line in enumerate(lines, 1) if n % 500 == 0]
    return Run(6, lines, [Node(gpu=paused(busy(seed), *gaps)) for _ in range(2)])


def single_gradient_spikes(seed: int) -> Run:
    lines = log(seed, 6, HF)
    for n in range(300, len(lines), 400):
        lines[n] = Line(
            lines[n].at, "{'loss': 2.6114, 'grad_norm': 48.21, 'learning_rate': 9.1e-06, 'epoch': 0.31}"
        )
    return Run(6, lines, nodes(seed))


def late_lines(seed: int) -> Run:
    lines = [
        Line(line.at, line.text, late_s=55.0 if line.at % 600 < 300 else 2.0)
        for line in log(seed, 4, DEEPSPEED)
    ]
    return Run(4, lines, nodes(seed))


def metrics_outage(seed: int) -> Run:
    use = busy(seed)
    return Run(
        4,
        log(seed, 4, MEGATRON),
        [Node(gpu=lambda at: None if 5000 < at < 5480 else use(at)) for _ in range(4)],
    )


def small_model(seed: int) -> Run:
    draw = random.Random(seed)
    return Run(
        4,
        log(seed, 4, LIGHTNING, every=2),
        [Node(gpu=lambda at: 0.0 if at < LOADED_S else min(1, max(0, draw.gauss(0.4, 0.18))))],
    )


def preference_training(seed: int) -> Run:
    form = (
        "{{'loss': {loss:.4f}, 'grad_norm': {norm:.3f}, 'learning_rate': 4.1e-07, 'rewards/chosen': -0.41, "
        "'rewards/rejected': -2.12, 'rewards/margins': 1.71, 'logps/chosen': -301.2, 'epoch': 0.2}}"
    )
    loss = lambda step: 0.08 + 0.61 / (1 + step / 90)
    return Run(5, log(seed, 5, form, loss=loss, noise=0.25), nodes(seed))


def samples_in_the_log(seed: int) -> Run:
    """Completions of the model are printed, and one of them talks about losses."""
    lines = log(seed, 4, HF)
    said = (
        "prompt: why is my loss nan? | completion: When the loss is nan, lower lr: 1e-5. At step 3 loss: nan ...",
        "User: the job hangs. Assistant: RuntimeError: CUDA out of memory means that the batch is too large.",
    )
    lines += [Line(LOADED_S + 400.0 * n + 3, said[n % 2]) for n in range(30)]
    return Run(4, lines, nodes(seed))


def retried_downloads(seed: int) -> Run:
    lines = log(seed, 4, HF)
    for at in (900.0, 4000.0, 9000.0):
        lines += [
            Line(
                at,
                "'(ReadTimeoutError(\"HTTPSConnectionPool(host='cdn', port=443): Read timed out.\"))' thrown while requesting GET /data/part-3",
                level="WARNING",
            ),
            Line(at + 1, "Retrying in 1s [Retry 1/5].", level="WARNING"),
        ]
    return Run(4, lines, nodes(seed))


def benchmark_at_the_end(seed: int) -> Run:
    lines = log(seed, 3, NANOGPT, total=600)
    end = lines[-1].at
    lines.append(Line(end + 30, "Running loglikelihood requests"))
    lines += [
        Line(
            end + 60 + 20 * n,
            f"Running loglikelihood requests: {n:3d}%|█         | {n * 400}/40168 [01:00<20:00, 33.1it/s]",
        )
        for n in range(100)
    ]
    use = lambda at: 0.0 if at < LOADED_S else 0.95 if at < end else 0.6
    return Run((end + 2060) / HOUR, lines, [Node(gpu=use)])


def sequence_warmup(seed: int) -> Run:
    form = "step={step} loss={loss:.4f} tokens_per_sec={tokens:.0f} seq_len={length}"
    pace = lambda at: 1 + min(3, int(at // HOUR))
    lines = log(seed, 5, "{step} {loss} {took}", pace=pace)
    out = []
    for line in lines:
        step, loss, took = line.text.split()
        length = 2048 * (1 + min(3, int(line.at // HOUR)))
        out.append(
            Line(
                line.at,
                form.format(
                    step=step, loss=float(loss), tokens=length * 12 * 20 / float(took) * 1, length=length
                ),
            )
        )
    return Run(5, out, nodes(seed))


def held_disk(seed: int) -> Run:
    """Data is copied to the disk for an hour, to two thirds of it, and stays."""
    disk = lambda at: 0.1 + 0.6 * min(1.0, at / HOUR)
    return Run(5, log(seed, 5, HF), [Node(gpu=busy(seed), disk=disk)])


def preallocated_memory(seed: int) -> Run:
    return Run(4, log(seed, 4, MEGATRON), [Node(gpu=busy(seed), gpu_memory=steady(73.5)) for _ in range(2)])


def saw_toothed_memory(seed: int) -> Run:
    memory = lambda at: 120 + 110 * ((at % 4000) / 4000)
    return Run(6, log(seed, 6, DEEPSPEED), [Node(gpu=busy(seed), memory=memory)])


def reward_that_rises(seed: int) -> Run:
    form = "| ep_rew_mean | {loss:.3f} | total_timesteps | {step} | fps | 812 | explained_variance | 0.71 |"
    return Run(
        4,
        log(seed, 4, form, loss=lambda step: -200 + 380 * (1 - math.exp(-step / 300)), noise=0.1),
        [Node(gpu=busy(seed, level=0.3))],
    )


# Sick runs.


def zero_loss_and_nan_norm(seed: int) -> Run:
    """HF prints a loss of 0.0 beside a gradient norm of nan."""
    lines = log(seed, 5, HF)
    broke = 500
    lines[broke:] = [
        Line(one.at, "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 9.1e-06, 'epoch': 0.31}")
        for one in lines[broke:]
    ]
    return Run(5, lines, nodes(seed), {"loss-not-finite": lines[broke].at}, frozenset({"loss-exploding"}))


def megatron_nan(seed: int) -> Run:
    loss = lambda step: math.nan if step > 400 else falling(step)
    lines = log(seed, 4, MEGATRON, loss=loss)
    return Run(4, lines, nodes(seed, 4), {"loss-not-finite": lines[400].at})


def collective_hang(seed: int) -> Run:
    end = 1.5 * HOUR + 211 * seed
    use = lambda at: 0.0 if at < LOADED_S else 0.96 if at < end else 1.0
    lines = log(seed, end / HOUR, MEGATRON)
    watchdog = "[rank3]:[E1122 10:00:00.1 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8812, OpType=ALLREDUCE) ran for 1800051 milliseconds before timing out."
    lines.append(Line(end + 1800, watchdog, 1, level="ERROR"))
    return Run(
        end / HOUR + 0.75, lines, [Node(gpu=use) for _ in range(4)], {"stalled": end}, frozenset({"errors"})
    )


def hang_with_heartbeats(seed: int) -> Run:
    end = 1.5 * HOUR
    lines = log(seed, 1.5, DEEPSPEED) + [
        Line(30.0 * n, "agent heartbeat ok, 8 workers alive") for n in range(360)
    ]
    return Run(3, lines, nodes(seed, 2, end=end), {"stalled": end}, frozenset({"gpu-idle"}))


def killed_node(seed: int) -> Run:
    end = 2 * HOUR
    lines = log(seed, 2, HF) + [Line(20.0 * n, f"worker 1: fetched batch {n}", 1) for n in range(360)]
    lines.append(Line(end, "Killed", 1))
    gone = busy(seed)
    return Run(
        3,
        lines,
        [Node(gpu=busy(seed, end=end)), Node(gpu=lambda at: gone(at) if at < end else None)],
        {"node-missing": end},
        frozenset({"stalled", "gpu-idle", "errors"}),
    )


def slow_loader_on_a_node(seed: int) -> Run:
    draw, use = random.Random(seed), nodes(seed, 8)
    use[5] = Node(gpu=lambda at: 0.0 if at < LOADED_S else draw.gauss(0.95 if at < HOUR else 0.62, 0.03))
    return Run(4, log(seed, 4, MEGATRON), use, {"straggler": HOUR})


def slow_node_in_its_lines(seed: int) -> Run:
    draw, lines = random.Random(seed), []
    for n in range(1, 1000):
        for node in range(4):
            took = draw.gauss(11.5, 0.2) * (1.22 if node == 3 else 1)
            lines.append(
                Line(
                    LOADED_S + 14 * n + node / 8,
                    f"[rank{8 * node}] iter {n} loss {draw.gauss(2, 0.05):.3f} fwd+bwd time {took:.2f}s",
                    node,
                )
            )
    return Run(4, lines, nodes(seed, 4), {"straggler": LOADED_S})


def slow_divergence(seed: int) -> Run:
    loss = lambda step: falling(step) if step < 600 else falling(600) + 4.0 * min(1.0, (step - 600) / 350)
    lines = log(seed, 6, HF, loss=loss)
    return Run(6, lines, nodes(seed), {"loss-exploding": lines[600].at})


def fragmenting_memory(seed: int) -> Run:
    """Steps take 60% longer after five hours, as the allocator searches ever longer."""
    pace = lambda at: 1 + 0.6 * min(1.0, max(0.0, at - HOUR) / (5 * HOUR))
    return Run(8, log(seed, 8, MEGATRON, pace=pace), nodes(seed, 2), {"slowdown": HOUR})


def hot_gpus(seed: int) -> Run:
    pace = lambda at: 1.42 if at > 2 * HOUR + 100 * seed else 1.0
    return Run(6, log(seed, 6, DEEPSPEED, pace=pace), nodes(seed, 2), {"slowdown": 2 * HOUR + 100 * seed})


def starved_of_data(seed: int) -> Run:
    pace = lambda at: 4.0 if at > 2 * HOUR else 1.0
    draw = random.Random(seed)
    use = lambda at: 0.0 if at < LOADED_S else draw.gauss(0.93 if at < 2 * HOUR else 0.24, 0.03)
    return Run(5, log(seed, 5, HF, pace=pace), [Node(gpu=use) for _ in range(2)], {"slowdown": 2 * HOUR})


def unpruned_checkpoints(seed: int) -> Run:
    disk = lambda at: min(0.995, 0.2 + 0.045 * (max(0.0, at - HOUR) // 1000))
    return Run(6, log(seed, 6, HF), [Node(gpu=busy(seed), disk=disk)], {"disk-filling": HOUR})


def leaking_loader(seed: int) -> Run:
    draw = random.Random(seed)
    memory = lambda at: 100 + max(0.0, at - 0.5 * HOUR) / HOUR * 42 + draw.gauss(0, 1)
    return Run(6, log(seed, 6, MEGATRON), [Node(gpu=busy(seed), memory=memory)], {"memory-leak": 0.5 * HOUR})


def crash_loop(seed: int) -> Run:
    lines: list[Line] = []
    begins = [0.0, 1500.0, 3000.0, 4500.0]
    for begin in begins:
        lines += log(seed, (begin + 1400) / HOUR, HF, begin=begin + 400)
        lines += [
            Line(begin + 1401, "Traceback (most recent call last):", level="ERROR"),
            Line(begin + 1402, "RuntimeError: DataLoader worker (pid 812) is killed by signal: Bus error."),
        ]
    use: Level = lambda at: 0.95 if at % 1500 > 400 else 0.0
    return Run(
        1.5,
        lines,
        [Node(gpu=use)],
        {"restarts": begins[1]},
        frozenset({"errors", "stalled", "gpu-idle"}),
        restarts=begins[1:],
    )


def sleeping_after_the_end(seed: int) -> Run:
    lines = log(seed, 3, HF, total=600)
    end = lines[-1].at
    lines.append(Line(end + 5, "done. sleeping so that the pod can be inspected"))
    return Run(end / HOUR + 1.5, lines, nodes(seed, 1, end=end), {"stalled": end}, frozenset({"gpu-idle"}))


def no_checkpoint_any_more(seed: int) -> Run:
    saved = [(1800.0 * n, f"checkpoint-{150 * n}") for n in range(1, 7)]
    return Run(7, log(seed, 7, HF), nodes(seed), {"checkpoint-overdue": 1800.0 * 7}, checkpoints=saved)


def first_batch_never_comes(seed: int) -> Run:
    lines = [
        Line(300, "***** Running training *****"),
        Line(301, "  Num examples = 120,000"),
        Line(302, "  Total optimization steps = 9,000"),
        Line(303, "  0%|          | 0/9000 [00:00<?, ?it/s]"),
    ]
    return Run(
        2.5, lines, [Node(gpu=steady(0.0)) for _ in range(2)], {"gpu-idle": 303}, frozenset({"stalled"})
    )


def cache_fills(seed: int) -> Run:
    cache = lambda at: min(0.99, 0.3 + at / HOUR * 0.12)
    return Run(6, log(seed, 6, HF), nodes(seed), {"cache-filling": 0.0}, cache=cache)


def memory_at_its_limit(seed: int) -> Run:
    gpu = lambda at: 60.0 if at < HOUR else 79.3
    return Run(
        4, log(seed, 4, HF), [Node(gpu=busy(seed), gpu_memory=gpu) for _ in range(2)], {"gpu-memory": HOUR}
    )


RUNS = (
    hf_with_long_evaluations,
    compiling_first_step,
    tokenizing_first,
    rollouts_and_updates,
    trainers_and_samplers,
    slow_saves_and_pruned_disk,
    detection_epochs,
    adversarial_epochs,
    pushing_to_the_hub,
    resumed_after_a_restart,
    tiny_batches,
    rare_lines,
    epoch_pauses,
    single_gradient_spikes,
    late_lines,
    metrics_outage,
    small_model,
    preference_training,
    samples_in_the_log,
    retried_downloads,
    benchmark_at_the_end,
    sequence_warmup,
    held_disk,
    preallocated_memory,
    saw_toothed_memory,
    reward_that_rises,
    zero_loss_and_nan_norm,
    megatron_nan,
    collective_hang,
    hang_with_heartbeats,
    killed_node,
    slow_loader_on_a_node,
    slow_node_in_its_lines,
    slow_divergence,
    fragmenting_memory,
    hot_gpus,
    starved_of_data,
    unpruned_checkpoints,
    leaking_loader,
    crash_loop,
    sleeping_after_the_end,
    no_checkpoint_any_more,
    first_batch_never_comes,
    cache_fills,
    memory_at_its_limit,
)
