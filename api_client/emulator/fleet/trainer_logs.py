"""Log formats of the simulated trainers: torchtitan, Megatron-LM, verl, transformers, tqdm and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from api_client.emulator.fleet.clock import NS_PER_S
from api_client.emulator.fleet.log_lines import LineSource, fixed_lines, step_lines
from api_client.emulator.fleet.plans import SimRun
from api_client.emulator.fleet.run_log import RunLog, noise
from api_client.emulator.fleet.training import smooth, uniform
from api_client.models import JobStatus

SEQUENCE_TOKENS = 8192
MEGATRON_BATCH = 256
PEAK_TFLOPS = 989.0
"""Dense bf16 peak of an H100 or H200; model FLOPs utilization is reported relative to it."""
FIRST_DELAY_NS, DELAY_NS = 40_000_000, 15_000_000
"""Delays of the lines after their step: of the first format, and of each further one."""
SAVE_DELAY_NS, EVALUATION_DELAY_NS = 300_000_000, 900_000_000

StepText = Callable[[SimRun, int], str]
Background = tuple[str, float, Sequence[str]]
"""Level, period in seconds, and templates of the lines that every node logs beside the training."""


@dataclass(frozen=True, slots=True)
class TrainerLog:
    """The log format of a trainer; calling it gives the lines of a run.

    ``opening`` are lines as (share of the warm-up, text). ``steps`` are the formats of the lines logged
    after every ``every``-th step. ``saving`` and ``evaluation`` are those after a checkpoint.
    """

    opening: tuple[tuple[float, str | Callable[[SimRun], str]], ...]
    steps: tuple[StepText, ...]
    background: tuple[Background, ...]
    every: int = 1
    level: str | None = None
    saving: StepText | None = None
    evaluation: StepText | None = None
    closing: Callable[[SimRun], str] | None = None

    def __call__(self, run: SimRun) -> Sequence[LineSource]:
        pace, start_ns = run.curves.pace, run.start_ns
        opening = [
            (share * pace.warmup_s, text if isinstance(text, str) else text(run))
            for share, text in self.opening
        ]
        sources = [fixed_lines(0, self.level or "INFO", start_ns, opening)]

        def after_steps(message_of: StepText, level: str | None, every: int, delay_ns: int) -> LineSource:
            return step_lines(level, start_ns, pace, lambda step: message_of(run, step), every, delay_ns)

        for number, message_of in enumerate(self.steps):
            sources.append(
                after_steps(message_of, self.level, self.every, FIRST_DELAY_NS + number * DELAY_NS)
            )
        saves = run.plan.scenario.saves
        if saves is not None and self.saving is not None:
            source = after_steps(self.saving, "INFO", saves.every, SAVE_DELAY_NS)
            if saves.until_s is not None:
                source = source.until(start_ns + int(saves.until_s * NS_PER_S))
            sources.append(source)
        if saves is not None and self.evaluation is not None:
            sources.append(after_steps(self.evaluation, None, saves.every, EVALUATION_DELAY_NS))
        for salt, (level, period_s, templates) in enumerate(self.background):
            sources += [noise(run, node, level, period_s, templates, salt) for node in run.nodes]
        if self.closing is not None and run.outcome == JobStatus.COMPLETED and run.end_ns is not None:
            lines = [(-12.0, "Training completed."), (-11.9, self.closing(run))]
            sources.append(fixed_lines(0, None, run.end_ns, lines))
        return sources


def _duration(seconds: float) -> str:
    """Format ``22323`` as ``6:12:03`` and ``63`` as ``01:03``, as progress bars do."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"


_EIGHTHS = " ▏▎▍▌▋▊▉"
_BAR_CELLS = 10


def _bar(run: SimRun, step: int, *, unit: str = "it", extra: str = "") -> str:
    """Format a progress bar like tqdm: `` 46%|████▌     | 4120/9000 [6:12:03<7:10:44,  5.30s/it]``."""
    pace = run.curves.pace
    total, elapsed_s = pace.total_steps, pace.finished_ns(step) / NS_PER_S - pace.warmup_s
    full, part = divmod(int(step / total * _BAR_CELLS * 8), 8)
    bar = ("█" * full + (_EIGHTHS[part] if part else "")).ljust(_BAR_CELLS)
    step_s = elapsed_s / step
    rate = f"{step_s:5.2f}s/{unit}" if step_s >= 1 else f"{1 / step_s:5.2f}{unit}/s"
    times = f"{_duration(elapsed_s)}<{_duration(step_s * (total - step))}, {rate}{extra}"
    return f"{step / total * 100:3.0f}%|{bar}| {step}/{total} [{times}]"


_NCCL: Background = (
    "INFO",
    7.0,
    (
        "NCCL INFO comm 0x7f3a{count} rank {rank} nranks 8 - collective {n} ok",
        "[rank{rank}]: data loader at sample {n}, {ms} ms behind the step",
        "[rank{rank}]: garbage collection took {x:.2f} s",
    ),
)


def _titan(run: SimRun, step: int, text: str) -> str:
    when = run.wall(run.start_ns + run.curves.pace.finished_ns(step))
    stamp = f"{when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03}"
    return f"[rank0]:[titan] {stamp} - root - INFO - {text}"


def _titan_step(run: SimRun, step: int) -> str:
    curves, factor = run.curves, 0.98 + 0.04 * uniform(run.seed, step)
    tflops, tokens_per_s = 412.0 * factor, SEQUENCE_TOKENS / curves.pace.step_s * factor
    text = (
        f"step: {step:2}  loss: {curves.loss(step):7.4f}  grad_norm: {curves.grad_norm(step):7.4f}  "
        f"memory: 62.30GiB(78.68%)  tps: {tokens_per_s:,.0f}  tflops: {tflops:,.2f}  "
        f"mfu: {tflops / PEAK_TFLOPS:.2%}"
    )
    return _titan(run, step, text)


TORCHTITAN = TrainerLog(
    opening=(
        (0.01, "[titan] - root - INFO - Starting job"),
        (0.3, "[titan] - root - INFO - Applied FSDP to the model, torch.compile on"),
        (0.9, lambda run: f"[titan] - root - INFO - Training starts, {run.curves.pace.total_steps} steps"),
    ),
    steps=(_titan_step,),
    level="INFO",
    saving=lambda run, step: _titan(run, step, f"Saving the checkpoint at step {step} (async)."),
    background=(_NCCL,),
)


def _megatron_step(run: SimRun, step: int) -> str:
    curves, pace = run.curves, run.curves.pace
    took_ns = pace.finished_ns(step) - pace.finished_ns(step - 1) if step > 1 else pace.step_s * NS_PER_S
    return (
        f" [{run.wall(run.start_ns + pace.finished_ns(step)):%Y-%m-%d %H:%M:%S}] "
        f"iteration {step:8}/{pace.total_steps:8} | consumed samples: {step * MEGATRON_BATCH:12} | "
        f"elapsed time per iteration (ms): {took_ns / 1e6:.1f} | "
        f"learning rate: {curves.learning_rate(step):.6E} | global batch size: {MEGATRON_BATCH:5} | "
        f"lm loss: {curves.loss(step):.6E} | loss scale: 1.0 | grad norm: {curves.grad_norm(step):.3f} | "
        f"number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


MEGATRON = TrainerLog(
    opening=(
        (0.01, "using world size: 8, data-parallel size: 2, tensor-model-parallel size: 4"),
        (0.5, "> building train, validation, and test datasets ..."),
        (0.9, "training ..."),
    ),
    steps=(_megatron_step,),
    saving=lambda _run, step: f"saving checkpoint at iteration {step:7} to /mnt/ckpts in torch_dist format",
    background=(_NCCL,),
)


def _verl_step(run: SimRun, step: int) -> str:
    curves, seed = run.curves, run.seed
    reward = 0.86 - 0.55 / (1 + step / 200) + 0.02 * smooth(seed, step / 6)
    length = 412 + 1.1 * step + 30 * smooth(seed + 1, step / 9)
    values = {
        "global_seqlen/mean": f"{length * 64:.1f}",
        "actor/entropy_loss": f"{curves.loss(step) / 4:.4f}",
        "actor/pg_loss": f"{0.03 * smooth(seed + 2, step / 3):.4f}",
        "actor/kl_loss": f"{0.0004 * step**0.5:.4f}",
        "actor/grad_norm": f"{curves.grad_norm(step):.4f}",
        "actor/lr": f"{curves.peak_learning_rate:.1e}",
        "critic/rewards/mean": f"{reward:.4f}",
        "response_length/mean": f"{length:.1f}",
        "timing_s/step": f"{curves.pace.step_s * (1 + 0.1 * uniform(seed, step)):.2f}",
        "perf/throughput": f"{1900 + 60 * smooth(seed + 3, step / 5):.1f}",
    }
    return " - ".join([f"step:{step}", *(f"{name}:{value}" for name, value in values.items())])


_RAY = (
    "(WorkerDict pid={count}) rollout batch {n}: {ms} sequences generated",
    "(WorkerDict pid={count}) vLLM: KV cache usage {x:.1%}, running 64 reqs",
    "(TaskRunner pid=2114) reward worker {rank} scored {ms} answers",
)
VERL = TrainerLog(
    opening=(
        (0.02, "Started a local Ray instance. View the dashboard at 127.0.0.1:8265"),
        (0.6, "(WorkerDict pid=2301) vLLM engine is up, 0.55 of GPU memory"),
        (0.95, "(TaskRunner pid=2114) Training Progress:   0%"),
    ),
    steps=(_verl_step, lambda run, step: "Training Progress: " + _bar(run, step)),
    saving=lambda _run, step: (
        f"(TaskRunner pid=2114) local_global_step_folder: /mnt/ckpts/global_step_{step}"
    ),
    background=(("INFO", 4.0, _RAY),),
)

_PLAIN = ("worker {rank}: {count} items in the last minute", "heartbeat {n} ok")


def progress_bar(
    label: str, opening: str, *templates: str, unit: str = "it", every: int = 1, has_loss: bool = False
) -> RunLog:
    """A single tqdm bar: ``Steps:  31%|███▏      | 310/1000 [12:03<26:50,  2.33s/it, loss=0.0912]``."""

    def message_of(run: SimRun, step: int) -> str:
        curves = run.curves
        extra = f", loss={curves.loss(step):.4f}, lr={curves.learning_rate(step):.3g}" if has_loss else ""
        return f"{label}: {_bar(run, step, unit=unit, extra=extra)}"

    return TrainerLog(
        opening=((0.02, opening), (0.9, "Ready")),
        steps=(message_of,),
        every=every,
        saving=lambda _run, step: f"Saved state to /mnt/ckpts/checkpoint-{step}",
        background=(("INFO", 5.0, templates or _PLAIN),),
    )


def json_lines(every: int) -> RunLog:
    """JSON lines: ``{"step": 310, "total_steps": 1000, "loss": 0.41, "lr": 1e-05}``."""

    def message_of(run: SimRun, step: int) -> str:
        curves = run.curves
        values = {
            "step": step,
            "total_steps": curves.pace.total_steps,
            "loss": round(curves.loss(step), 4),
            "lr": float(f"{curves.learning_rate(step):.4g}"),
            "grad_norm": round(curves.grad_norm(step), 3),
        }
        return json.dumps(values)

    return TrainerLog(
        opening=((0.03, "contrastive training, in-batch negatives, batch 2048"),),
        steps=(message_of,),
        every=every,
        background=(("INFO", 5.0, _PLAIN),),
    )


_RANKS = (
    "[rank{rank}] dataloader: prefetched {n} batches, queue depth 8",
    "NCCL INFO Channel 0{local}/0 : {rank}[{local}] -> 0[0] [send] via NET/IBext/{local}/GDRDMA",
    "[rank{rank}] all_gather 2.1 GB in {ms} ms",
    "[rank{rank}] reduce_scatter 2.1 GB in {ms} ms",
    "[rank{rank}] allocator: {count} MiB reserved, 0 retries",
)
_WARNINGS = (
    "WARNING: token sequence longer than the maximum (131072), truncated: sample {count}",
    "WARNING: dataloader waited {ms} ms for /app/data/shard-0{local}.parquet",
)
_HEARTBEATS = ("DEBUG heartbeat {n}: all ranks answered within {ms} ms",)


def _trainer_step(run: SimRun, step: int) -> str:
    curves = run.curves
    values = {
        "loss": round(curves.loss(step), 4),
        "grad_norm": round(curves.grad_norm(step), 4),
        "learning_rate": float(f"{curves.learning_rate(step):.4g}"),
        "epoch": round(curves.epoch(step), 2),
    }
    return str(values)


def _trainer_summary(run: SimRun) -> str:
    curves, total = run.curves, run.curves.pace.total_steps
    summary = {
        "train_runtime": round(curves.pace.finished_ns(total) / NS_PER_S, 1),
        "train_loss": round(curves.eval_loss(total), 4),
        "epoch": curves.epoch(total),
    }
    return str(summary)


def _ranks(run: SimRun) -> int:
    return run.plan.nodes * max(1, run.machine.gpu_count)


def transformers(
    model: str, *, every: int = 1, evaluates: bool = False, metric: str = "", noise_s: float = 8.0
) -> RunLog:
    """The Trainer's log: a bar and a dict every few steps, with evaluations and saves in between."""

    def evaluation(run: SimRun, step: int) -> str:
        loss = run.curves.eval_loss(step)
        extra = {metric: round(10 + 12 * loss, 3)} if metric else {}
        rates = {"eval_runtime": 41.7, "eval_samples_per_second": 96.1}
        return str({"eval_loss": round(loss, 4), **extra, **rates, "epoch": round(run.curves.epoch(step), 2)})

    def ranks_line(run: SimRun) -> str:
        return f"torchrun: {run.plan.nodes} nodes, {_ranks(run)} ranks, rendezvous at node-0:29500"

    return TrainerLog(
        opening=(
            (0.01, ranks_line),
            (0.12, f"Loading {model} from /app/models"),
            (0.68, "Loading checkpoint shards: 100%|██████████| 30/30"),
            (0.8, "***** Running training *****"),
            (0.8, lambda run: f"  Num examples = {run.curves.steps_per_epoch * _ranks(run):,}"),
            (0.8, lambda run: f"  Total optimization steps = {run.curves.pace.total_steps:,}"),
        ),
        steps=(_bar, _trainer_step),
        every=every,
        saving=lambda _run, step: f"Saving model checkpoint to /mnt/ckpts/checkpoint-{step}",
        evaluation=evaluation if evaluates else None,
        closing=_trainer_summary,
        background=(
            ("INFO", noise_s, _RANKS),
            ("WARNING", 260.0, _WARNINGS),
            ("DEBUG", 45.0, _HEARTBEATS),
        ),
    )
