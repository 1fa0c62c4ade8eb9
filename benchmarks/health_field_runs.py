"""Simulated runs for ``health.py`` in the formats of common trainers, written without knowledge of the rules.

Rules are developed with ``health_runs.py`` and tested with these runs: do not tune a rule for a single run here.
"""

# ruff: noqa: E501, E731 (lines of logs are long, levels short)

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from simulated_run import HOUR, LOADED_S, Level, Line, Node, Run, busy, steady, ticks, training

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


def falling_loss(step: int) -> float:
    return 1.6 + 3.2 / (1 + step / 80)


def log(seed: int, hours: float, line_format: str, *, print_every: int = 1, **options: Any) -> list[Line]:
    """Return lines in a trainer's format, one per ``print_every`` steps; ``options`` are for ``training``."""
    defaults = {"step_s": 12.0, "total": 20_000, "loss": falling_loss, "noise": 0.03}
    return training(seed, hours, line_format, **(defaults | options))[print_every - 1 :: print_every]


def busy_nodes(seed: int, count: int = 2, **level: float) -> list[Node]:
    return [Node(busy(seed + 7 * n, **level)) for n in range(count)]


def run(
    seed: int,
    hours: float,
    line_format: str,
    expected: Mapping[str, float] | None = None,
    *,
    nodes: Sequence[Node] = (),
    lines: Sequence[Line] = (),
    **options: Any,
) -> Run:
    """Return a run with the lines of ``log`` and ``lines``; it has two busy nodes unless ``nodes`` are given."""
    trainer_lines = log(seed, hours, line_format, **options)
    return Run(hours, [*lines, *trainer_lines], nodes or busy_nodes(seed), expected or {})


def paused(level: Level, *begins: float, lasting_s: float) -> Level:
    """Return a level that is almost 0 for ``lasting_s`` seconds after each of the times."""
    return lambda at: 0.01 if any(begin <= at < begin + lasting_s for begin in begins) else level(at)


# Healthy runs.


def hf_with_long_evaluations(seed: int) -> Run:
    lines = log(seed, 6, HF, pauses={500: 1200, 1000: 1200}, print_every=5)
    for begin in (lines[99].at, lines[199].at):
        bar = lambda n: f" {2 * n}%|██        | {n * 4}/160 [0{n % 9}:10<10:00,  7.5s/it]"
        lines += ticks(begin + 10, 30, 38, bar)
        result = (
            "{'eval_loss': 1.9123, 'eval_runtime': 1180.2, 'eval_samples_per_second': 11.2, 'epoch': 0.4}"
        )
        lines.append(Line(begin + 1190, result))
    return Run(6, lines, busy_nodes(seed))


def compiling_first_step(seed: int) -> Run:
    """Compilation keeps the GPUs idle for 22 minutes after the trainer starts."""
    begin = LOADED_S + 1320
    messages = "compiling the model... (takes a ~minute)", "training starts: 20000 iterations"
    lines = [Line(120, messages[0]), Line(LOADED_S, messages[1])]
    run_nodes = busy_nodes(seed, begin=begin - 400, level=0.97)
    return run(seed, 4, NANOGPT, lines=lines, begin=begin, step_s=4, nodes=run_nodes)


def tokenizing_first(seed: int) -> Run:
    begin = 3000.0
    bar = lambda n: (
        f"Tokenizing train (num_proc=16): {n * 100 // 145:3d}%|███       | {n * 6900}/1000000 [0{n % 6}:10<08:00, 1800.21 examples/s]"
    )
    run_nodes = busy_nodes(seed, begin=begin)
    return run(seed, 4, HF, lines=ticks(60, 20, 145, bar), begin=begin, print_every=10, nodes=run_nodes)


def rollouts_and_updates(seed: int) -> Run:
    """Reinforcement learning with steps of eight minutes: six of sampling at low utilization, two of updates."""
    noise_source = random.Random(seed)
    utilization = lambda at: (
        0.0 if at < 900 else max(0.0, noise_source.gauss(0.35 if (at - 900) % 480 < 360 else 0.93, 0.05))
    )
    step = {"step_s": 480, "begin": 900, "total": 300, "loss": lambda step: 0.01 * math.sin(step / 3)}
    return run(seed, 8, VERL, nodes=[Node(utilization) for _ in range(4)], noise=0.8, **step)


def trainers_and_samplers(seed: int) -> Run:
    """Two nodes train; two generate samples, with utilization in waves."""
    noise_source = random.Random(seed)
    serve = lambda at: (
        0.0 if at < 700 else max(0.0, noise_source.gauss(0.45 + 0.3 * math.sin(at / 500), 0.08))
    )
    lines = log(seed, 6, VERL, step_s=150, begin=1000, loss=lambda step: 0.02, noise=1.0)
    lines += [
        Line(
            700 + 25 * n,
            f"INFO 11-22 10:00:00 metrics.py:481] Avg prompt throughput: {noise_source.gauss(900, 200):.1f} tokens/s, Running: 31 reqs, GPU KV cache usage: 41.2%.",
            2 + n % 2,
        )
        for n in range(800)
    ]
    trainers = [Node(busy(seed, begin=1000, level=0.85)) for _ in range(2)]
    return Run(6, lines, [*trainers, Node(serve), Node(serve)])


def slow_saves_and_pruned_disk(seed: int) -> Run:
    lines = log(seed, 6, DEEPSPEED, pauses={150 * n: 360.0 for n in range(1, 12)})
    marks = {f"global_step{n}": lines[n - 1].at for n in range(150, len(lines) + 1, 150)}
    engine = "[INFO] [torch_checkpoint_engine.py:21:save] [Torch]"
    lines += [
        Line(at + 1, f"{engine} Saving /mnt/ckpts/{name}/mp_rank_00_model_states.pt...")
        for name, at in marks.items()
    ]
    utilization = paused(busy(seed), *marks.values(), lasting_s=360)
    disk_use = lambda at: 0.2 + 0.09 * min(2, sum(mark < at for mark in marks.values()))
    saved = [(at + 380, name) for name, at in marks.items()]
    return Run(6, lines, [Node(utilization, disk=disk_use)], checkpoints=saved)


def detection_epochs(seed: int) -> Run:
    """An object detector has epochs of four minutes, each with a new progress bar and a validation."""
    noise_source, lines = random.Random(seed), []
    for epoch in range(1, 70):
        begin = 400 + 270.0 * epoch
        box = 0.6 + 1.2 / (1 + epoch / 6)
        bar = lambda n, box=box, epoch=epoch: (
            f"     {epoch:3d}/100      11.2G     {noise_source.gauss(box, 0.05):.4f}     {noise_source.gauss(box * 0.7, 0.04):.4f}     0.9721         34        640: {n * 5:3d}%|█████     | {n * 12}/250 [00:{n * 3:02d}<00:40,  4.01it/s]"
        )
        lines += ticks(begin, 12, 20, bar)
        score = f"{0.2 + 0.4 * epoch / 70:.3f}      0.331"
        validation = f"                   all       5000      36335      0.671      0.512      {score}"
        lines.append(Line(begin + 262, validation))
    return Run(5, lines, [Node(busy(seed, begin=600, level=0.8))])


def adversarial_epochs(seed: int) -> Run:
    noise_source = random.Random(seed)
    text = lambda n: (
        f"[{n // 400}/25][{n % 400}/400] Loss_D: {abs(noise_source.gauss(0.6, 0.3)):.4f} Loss_G: {abs(noise_source.gauss(1.5 + n / 900, 0.8)):.4f} D(x): 0.74 D(G(z)): 0.31 / 0.12"
    )
    return Run(4, ticks(LOADED_S, 6, 2400, text), busy_nodes(seed, 1, level=0.9))


def pushing_to_the_hub(seed: int) -> Run:
    lines = log(seed, 3, HF, total=700)
    end = lines[-1].at
    result = "{'train_runtime': 8411.2, 'train_samples_per_second': 5.1, 'train_loss': 1.7312, 'epoch': 3.0}"
    lines += [Line(end + 3, result), Line(end + 9, "Pushing model to the hub: org/model")]
    bar = lambda n: (
        f"model-00001-of-00004.safetensors: {3 * n}%|▏         | {0.15 * n:.2f}G/4.98G [00:30<12:00, 6.1MB/s]"
    )
    lines += ticks(end + 20, 30, 30, bar)
    return Run((end + 950) / HOUR, lines, busy_nodes(seed, 1, end=end))


def resumed_after_a_restart(seed: int) -> Run:
    begin = 2 * HOUR
    lines = log(seed, 2, HF)
    messages = "Continuing training from global_step 500. Will skip the first 0 epochs then 500 batches."
    lines.append(Line(begin + 60, messages))
    lines += log(seed + 1, 5, HF, begin=begin + 500, loss=lambda step: falling_loss(step + 500))
    utilization = paused(busy(seed), begin, lasting_s=500)
    return Run(5, lines, [Node(utilization)], allowed=["restarts"], restarts=[begin])


def tiny_batches(seed: int) -> Run:
    return run(seed, 4, NANOGPT, step_s=0.9 * 4, noise=0.3, nodes=busy_nodes(seed, 1, level=0.55))


def rare_lines(seed: int) -> Run:
    """The log has a line every hundred steps, so 25 minutes without lines are usual."""
    return run(seed, 9, MEGATRON, step_s=15, print_every=100, nodes=busy_nodes(seed, 4, level=0.98))


def epoch_pauses(seed: int) -> Run:
    """The data loader restarts at each epoch, which takes four minutes."""
    lines = log(seed, 6, LIGHTNING, step_s=5, pauses={500 * n: 240.0 for n in range(1, 9)})
    pause_starts = [line.at for line in lines[499::500]]
    return Run(6, lines, [Node(paused(busy(seed), *pause_starts, lasting_s=240)) for _ in range(2)])


def single_gradient_spikes(seed: int) -> Run:
    lines = log(seed, 6, HF)
    for line in lines[300::400]:
        line.text = "{'loss': 2.6114, 'grad_norm': 48.21, 'learning_rate': 9.1e-06, 'epoch': 0.31}"
    return Run(6, lines, busy_nodes(seed))


def late_lines(seed: int) -> Run:
    lines = log(seed, 4, DEEPSPEED)
    for line in lines:
        line.late_s = 55.0 if line.at % 600 < 300 else 2.0
    return Run(4, lines, busy_nodes(seed))


def metrics_outage(seed: int) -> Run:
    utilization = busy(seed)
    outage = lambda at: None if 5000 < at < 5480 else utilization(at)
    return run(seed, 4, MEGATRON, nodes=[Node(outage) for _ in range(4)])


def small_model(seed: int) -> Run:
    noise_source = random.Random(seed)
    utilization = lambda at: 0.0 if at < LOADED_S else min(1, max(0, noise_source.gauss(0.4, 0.18)))
    return run(seed, 4, LIGHTNING, step_s=2, nodes=[Node(utilization)])


def preference_training(seed: int) -> Run:
    line_format = (
        "{{'loss': {loss:.4f}, 'grad_norm': {norm:.3f}, 'learning_rate': 4.1e-07, 'rewards/chosen': -0.41, "
        "'rewards/rejected': -2.12, 'rewards/margins': 1.71, 'logps/chosen': -301.2, 'epoch': 0.2}}"
    )
    return run(seed, 5, line_format, loss=lambda step: 0.08 + 0.61 / (1 + step / 90), noise=0.25)


def samples_in_the_log(seed: int) -> Run:
    """The log has completions of the model, one of which is about losses."""
    messages = (
        "prompt: why is my loss nan? | completion: When the loss is nan, lower lr: 1e-5. At step 3 loss: nan ...",
        "User: the job hangs. Assistant: RuntimeError: CUDA out of memory means that the batch is too large.",
    )
    return run(seed, 4, HF, lines=ticks(LOADED_S + 3, 400, 30, lambda n: messages[n % 2]))


def retried_downloads(seed: int) -> Run:
    messages = (
        "'(ReadTimeoutError(\"HTTPSConnectionPool(host='cdn', port=443): Read timed out.\"))' thrown while requesting GET /data/part-3",
        "Retrying in 1s [Retry 1/5].",
    )
    begins = (900.0, 4000.0, 9000.0)
    lines = [Line(at + n, text, level="WARNING") for at in begins for n, text in enumerate(messages)]
    return run(seed, 4, HF, lines=lines)


def benchmark_at_the_end(seed: int) -> Run:
    lines = log(seed, 3, NANOGPT, total=600)
    end, name = lines[-1].at, "Running loglikelihood requests"
    bar = lambda n: f"{name}: {n:3d}%|█         | {n * 400}/40168 [01:00<20:00, 33.1it/s]"
    lines += [Line(end + 30, name), *ticks(end + 60, 20, 100, bar)]
    utilization = lambda at: 0.0 if at < LOADED_S else 0.95 if at < end else 0.6
    return Run((end + 2060) / HOUR, lines, [Node(utilization)])


def sequence_warmup(seed: int) -> Run:
    factor = lambda at: 1 + min(3, int(at // HOUR))
    lines = log(seed, 5, "{step} {loss} {took}", pace=factor)
    for line in lines:
        step, loss, step_time_s = line.text.split()
        length = 2048 * factor(line.at)
        speed = f"tokens_per_sec={length * 12 * 20 / float(step_time_s):.0f}"
        line.text = f"step={step} loss={float(loss):.4f} {speed} seq_len={length}"
    return Run(5, lines, busy_nodes(seed))


def held_disk(seed: int) -> Run:
    """Data is copied for an hour, until the disk is 70% full, and is not deleted."""
    disk = lambda at: 0.1 + 0.6 * min(1.0, at / HOUR)
    return run(seed, 5, HF, nodes=[Node(busy(seed), disk=disk)])


def preallocated_memory(seed: int) -> Run:
    return run(seed, 4, MEGATRON, nodes=[Node(busy(seed), gpu_memory=steady(73.5)) for _ in range(2)])


def saw_toothed_memory(seed: int) -> Run:
    memory = lambda at: 120 + 110 * ((at % 4000) / 4000)
    return run(seed, 6, DEEPSPEED, nodes=[Node(busy(seed), memory=memory)])


def reward_that_rises(seed: int) -> Run:
    line_format = (
        "| ep_rew_mean | {loss:.3f} | total_timesteps | {step} | fps | 812 | explained_variance | 0.71 |"
    )
    reward = lambda step: -200 + 380 * (1 - math.exp(-step / 300))
    return run(seed, 4, line_format, loss=reward, noise=0.1, nodes=busy_nodes(seed, 1, level=0.3))


# Sick runs.


def zero_loss_and_nan_norm(seed: int) -> Run:
    """The Hugging Face trainer prints a loss of 0.0 and a gradient norm of nan."""
    lines = log(seed, 5, HF)
    for line in lines[500:]:
        line.text = "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 9.1e-06, 'epoch': 0.31}"
    return Run(5, lines, busy_nodes(seed), {"loss-not-finite": lines[500].at}, ["loss-exploding"])


def megatron_nan(seed: int) -> Run:
    lines = log(seed, 4, MEGATRON, loss=lambda step: math.nan if step > 400 else falling_loss(step))
    return Run(4, lines, busy_nodes(seed, 4), {"loss-not-finite": lines[400].at})


def collective_hang(seed: int) -> Run:
    end = 1.5 * HOUR + 211 * seed
    utilization = lambda at: 0.0 if at < LOADED_S else 0.96 if at < end else 1.0
    watchdog = "[rank3]:[E1122 10:00:00.1 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8812, OpType=ALLREDUCE) ran for 1800051 milliseconds before timing out."
    lines = [*log(seed, end / HOUR, MEGATRON), Line(end + 1800, watchdog, 1, level="ERROR")]
    return Run(end / HOUR + 0.75, lines, [Node(utilization) for _ in range(4)], {"stalled": end}, ["errors"])


def hang_with_heartbeats(seed: int) -> Run:
    end = 1.5 * HOUR
    lines = log(seed, 1.5, DEEPSPEED)
    lines += ticks(0, 30, 360, lambda n: "agent heartbeat ok, 8 workers alive")
    return Run(3, lines, busy_nodes(seed, 2, end=end), {"stalled": end}, ["gpu-idle"])


def killed_node(seed: int) -> Run:
    end, utilization = 2 * HOUR, busy(seed)
    lines = log(seed, 2, HF) + ticks(0, 20, 360, lambda n: f"worker 1: fetched batch {n}", 1)
    lines.append(Line(end, "Killed", 1))
    run_nodes = [Node(busy(seed, end=end)), Node(lambda at: utilization(at) if at < end else None)]
    return Run(3, lines, run_nodes, {"node-missing": end}, ["stalled", "gpu-idle", "errors"])


def slow_loader_on_a_node(seed: int) -> Run:
    noise_source, run_nodes = random.Random(seed), busy_nodes(seed, 8)
    run_nodes[5] = Node(
        lambda at: 0.0 if at < LOADED_S else noise_source.gauss(0.95 if at < HOUR else 0.62, 0.03)
    )
    return run(seed, 4, MEGATRON, {"straggler": HOUR}, nodes=run_nodes)


def slow_node_in_its_lines(seed: int) -> Run:
    noise_source, lines = random.Random(seed), []
    for n in range(1, 1000):
        for node in range(4):
            step_time_s = noise_source.gauss(11.5, 0.2) * (1.22 if node == 3 else 1)
            text = f"[rank{8 * node}] iter {n} loss {noise_source.gauss(2, 0.05):.3f} fwd+bwd time {step_time_s:.2f}s"
            lines.append(Line(LOADED_S + 14 * n + node / 8, text, node))
    return Run(4, lines, busy_nodes(seed, 4), {"straggler": LOADED_S})


def slow_divergence(seed: int) -> Run:
    loss = lambda step: (
        falling_loss(step) if step < 600 else falling_loss(600) + 4.0 * min(1.0, (step - 600) / 350)
    )
    lines = log(seed, 6, HF, loss=loss)
    return Run(6, lines, busy_nodes(seed), {"loss-exploding": lines[600].at})


def fragmenting_memory(seed: int) -> Run:
    """Steps become 60% slower over five hours, because the allocator searches longer and longer."""
    pace = lambda at: 1 + 0.6 * min(1.0, max(0.0, at - HOUR) / (5 * HOUR))
    return run(seed, 8, MEGATRON, {"slowdown": HOUR}, pace=pace)


def hot_gpus(seed: int) -> Run:
    begin = 2 * HOUR + 100 * seed
    return run(seed, 6, DEEPSPEED, {"slowdown": begin}, pace=lambda at: 1.42 if at > begin else 1.0)


def starved_of_data(seed: int) -> Run:
    pace = lambda at: 4.0 if at > 2 * HOUR else 1.0
    noise_source = random.Random(seed)
    utilization = lambda at: (
        0.0 if at < LOADED_S else noise_source.gauss(0.93 if at < 2 * HOUR else 0.24, 0.03)
    )
    return run(seed, 5, HF, {"slowdown": 2 * HOUR}, pace=pace, nodes=[Node(utilization) for _ in range(2)])


def unpruned_checkpoints(seed: int) -> Run:
    disk = lambda at: min(0.995, 0.2 + 0.045 * (max(0.0, at - HOUR) // 1000))
    return run(seed, 6, HF, {"disk-filling": HOUR}, nodes=[Node(busy(seed), disk=disk)])


def leaking_loader(seed: int) -> Run:
    noise_source = random.Random(seed)
    memory = lambda at: 100 + max(0.0, at - 0.5 * HOUR) / HOUR * 42 + noise_source.gauss(0, 1)
    return run(seed, 6, MEGATRON, {"memory-leak": 0.5 * HOUR}, nodes=[Node(busy(seed), memory=memory)])


def crash_loop(seed: int) -> Run:
    lines: list[Line] = []
    begins = [0.0, 1500.0, 3000.0, 4500.0]
    for begin in begins:
        lines += log(seed, (begin + 1400) / HOUR, HF, begin=begin + 400)
        error = "RuntimeError: DataLoader worker (pid 812) is killed by signal: Bus error."
        lines += [
            Line(begin + 1401, "Traceback (most recent call last):", level="ERROR"),
            Line(begin + 1402, error),
        ]
    run_nodes = [Node(lambda at: 0.95 if at % 1500 > 400 else 0.0)]
    allowed = ["errors", "stalled", "gpu-idle"]
    return Run(1.5, lines, run_nodes, {"restarts": begins[1]}, allowed, restarts=begins[1:])


def sleeping_after_the_end(seed: int) -> Run:
    lines = log(seed, 3, HF, total=600)
    end = lines[-1].at
    lines.append(Line(end + 5, "done. sleeping so that the pod can be inspected"))
    return Run(end / HOUR + 1.5, lines, busy_nodes(seed, 1, end=end), {"stalled": end}, ["gpu-idle"])


def no_checkpoint_any_more(seed: int) -> Run:
    saved = [(1800.0 * n, f"checkpoint-{150 * n}") for n in range(1, 7)]
    lines = log(seed, 7, HF)
    return Run(7, lines, busy_nodes(seed), {"checkpoint-overdue": 1800.0 * 7}, checkpoints=saved)


def first_batch_never_comes(seed: int) -> Run:
    messages = (
        "***** Running training *****",
        "  Num examples = 120,000",
        "  Total optimization steps = 9,000",
        "  0%|          | 0/9000 [00:00<?, ?it/s]",
    )
    lines = ticks(300, 1, len(messages), lambda n: messages[n])
    return Run(2.5, lines, [Node(steady(0.0)) for _ in range(2)], {"gpu-idle": 303}, ["stalled"])


def cache_fills(seed: int) -> Run:
    cache = lambda at: min(0.99, 0.3 + at / HOUR * 0.12)
    return Run(6, log(seed, 6, HF), busy_nodes(seed), {"cache-filling": 0.0}, cache=cache)


def memory_at_its_limit(seed: int) -> Run:
    gpu = lambda at: 60.0 if at < HOUR else 79.3
    run_nodes = [Node(busy(seed), gpu_memory=gpu) for _ in range(2)]
    return run(seed, 4, HF, {"gpu-memory": HOUR}, nodes=run_nodes)
