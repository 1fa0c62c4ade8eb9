"""Log styles: torchtitan, Megatron-LM, verl, transformers, progress bars and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from api_client.emulator.fleet.clock import NS_PER_S
from api_client.emulator.fleet.log_generator import (
    fixed_lines,
    node_name,
    progress_bar,
    unrelated_lines,
    unrelated_lines_everywhere,
)
from api_client.emulator.fleet.log_lines import LineSource, StepLines, TruncatedLines
from api_client.emulator.fleet.plans import RunFacts
from api_client.emulator.fleet.training import TrainingCurves, smooth, uniform
from api_client.models import JobStatus

SEQUENCE_TOKENS = 8192
PEAK_TFLOPS = 989.0
"""Dense bf16 peak of an H100 or H200; model FLOPs utilization is reported relative to it."""

NCCL_WORDS = (
    "NCCL INFO comm 0x7f3a{count} rank {rank} nranks 8 - collective {n} ok",
    "[rank{rank}]: data loader at sample {n}, {ms} ms behind the step",
    "[rank{rank}]: garbage collection took {x:.2f} s",
)


def _when(run: RunFacts, run_ns: int, curves: TrainingCurves, step: int) -> datetime:
    return run.wall(run_ns + curves.pace.finished_ns(step))


@dataclass(frozen=True, slots=True)
class Torchtitan:
    """torchtitan's log: ``[titan] … step: 120  loss:  4.1234  memory: …  tps: …  tflops: …  mfu: …``."""

    log_every: int = 1
    save_every: int = 500
    memory_gib: float = 62.3
    tflops: float = 412.0

    def lines(self, run: RunFacts, run_ns: int, curves: TrainingCurves) -> Sequence[LineSource]:
        pace = curves.pace
        opening = fixed_lines(
            node_name(0),
            "INFO",
            run_ns,
            [
                (1.0, "[titan] - root - INFO - Starting job"),
                (0.3 * pace.warmup_s, "[titan] - root - INFO - Applied FSDP to the model, torch.compile on"),
                (
                    0.9 * pace.warmup_s,
                    f"[titan] - root - INFO - Training starts at step 1, {pace.total_steps} steps",
                ),
            ],
        )
        sources: list[LineSource] = [
            opening,
            StepLines(
                node_name(0),
                "INFO",
                run_ns,
                pace,
                partial(self._step, run, run_ns, curves),
                self.log_every,
            ),
            StepLines(
                node_name(0),
                "INFO",
                run_ns,
                pace,
                partial(self._saving, run, run_ns, curves),
                self.save_every,
                2 * 10**8,
            ),
        ]
        sources += unrelated_lines_everywhere(
            run, run_ns, curves, level="INFO", period_s=7.0, says=NCCL_WORDS
        )
        return sources

    def _prefix(self, run: RunFacts, run_ns: int, curves: TrainingCurves, step: int) -> str:
        when = _when(run, run_ns, curves, step)
        return f"[rank0]:[titan] {when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03} - root - INFO - "

    def _step(self, run: RunFacts, run_ns: int, curves: TrainingCurves, step: int) -> str:
        tflops = self.tflops * (0.98 + 0.04 * uniform(run.seed, step))
        tokens_per_s = SEQUENCE_TOKENS / curves.pace.step_s * (0.98 + 0.04 * uniform(run.seed, step))
        return (
            f"{self._prefix(run, run_ns, curves, step)}step: {step:2}  loss: {curves.loss(step):7.4f}  "
            f"grad_norm: {curves.grad_norm(step):7.4f}  memory: {self.memory_gib:.2f}GiB(78.68%)  "
            f"tps: {tokens_per_s:,.0f}  tflops: {tflops:,.2f}  mfu: {tflops / PEAK_TFLOPS:.2%}"
        )

    def _saving(self, run: RunFacts, run_ns: int, curves: TrainingCurves, step: int) -> str:
        return f"{self._prefix(run, run_ns, curves, step)}Saving the checkpoint at step {step} (async)."


@dataclass(frozen=True, slots=True)
class Megatron:
    """Megatron-LM's log lines.

    `` [2026-01-02 03:04:05] iteration      120/   20000 | … | lm loss: 2.310000E+00 | …``.
    """

    log_every: int = 1
    save_every: int = 500
    batch: int = 256

    def lines(self, run: RunFacts, run_ns: int, curves: TrainingCurves) -> Sequence[LineSource]:
        pace = curves.pace
        opening = fixed_lines(
            node_name(0),
            None,
            run_ns,
            [
                (2.0, "using world size: 8, data-parallel size: 2, tensor-model-parallel size: 4"),
                (0.5 * pace.warmup_s, "> building train, validation, and test datasets ..."),
                (0.9 * pace.warmup_s, "training ..."),
            ],
        )
        sources: list[LineSource] = [
            opening,
            StepLines(
                node_name(0),
                None,
                run_ns,
                pace,
                partial(self._step, run, run_ns, curves),
                self.log_every,
            ),
            StepLines(node_name(0), None, run_ns, pace, self._saving, self.save_every, 3 * 10**8),
        ]
        sources += unrelated_lines_everywhere(
            run, run_ns, curves, level="INFO", period_s=6.0, says=NCCL_WORDS
        )
        return sources

    def _step(self, run: RunFacts, run_ns: int, curves: TrainingCurves, step: int) -> str:
        pace = curves.pace
        took_ms = (
            (pace.finished_ns(step) - pace.finished_ns(step - 1)) / NS_PER_S * 1000
            if step > 1
            else pace.step_s * 1000
        )
        return (
            f" [{_when(run, run_ns, curves, step):%Y-%m-%d %H:%M:%S}] "
            f"iteration {step:8}/{pace.total_steps:8} | "
            f"consumed samples: {step * self.batch:12} | elapsed time per iteration (ms): {took_ms:.1f} | "
            f"learning rate: {curves.learning_rate(step):.6E} | global batch size: {self.batch:5} | "
            f"lm loss: {curves.loss(step):.6E} | loss scale: 1.0 | grad norm: {curves.grad_norm(step):.3f} | "
            f"number of skipped iterations:   0 | number of nan iterations:   0 |"
        )

    def _saving(self, step: int) -> str:
        return f"saving checkpoint at iteration {step:7} to /mnt/ckpts in torch_dist format"


RAY_WORDS = (
    "(WorkerDict pid={count}) rollout batch {n}: {ms} sequences generated",
    "(WorkerDict pid={count}) vLLM: KV cache usage {x:.1%}, running 64 reqs",
    "(TaskRunner pid=2114) reward worker {rank} scored {ms} answers",
)
PLAIN_WORDS = ("worker {rank}: {count} items in the last minute", "heartbeat {n} ok")


@dataclass(frozen=True, slots=True)
class Verl:
    """verl's log: ``step:880 - actor/pg_loss:-0.013 - critic/rewards/mean:0.61 - …``."""

    save_every: int = 100

    def lines(self, run: RunFacts, run_ns: int, curves: TrainingCurves) -> Sequence[LineSource]:
        pace = curves.pace
        sources: list[LineSource] = [
            fixed_lines(
                node_name(0),
                "INFO",
                run_ns,
                [
                    (3.0, "Started a local Ray instance. View the dashboard at 127.0.0.1:8265"),
                    (0.6 * pace.warmup_s, "(WorkerDict pid=2301) vLLM engine is up, 0.55 of GPU memory"),
                    (0.95 * pace.warmup_s, "(TaskRunner pid=2114) Training Progress:   0%"),
                ],
            ),
            StepLines(node_name(0), None, run_ns, pace, partial(self._step, run, curves)),
            StepLines(node_name(0), None, run_ns, pace, partial(self._bar, curves), delay_ns=10**8),
            StepLines(node_name(0), "INFO", run_ns, pace, self._saving, self.save_every, 5 * 10**8),
        ]
        sources += unrelated_lines_everywhere(run, run_ns, curves, level="INFO", period_s=4.0, says=RAY_WORDS)
        return sources

    def _step(self, run: RunFacts, curves: TrainingCurves, step: int) -> str:
        reward = 0.86 - 0.55 / (1 + step / 200) + 0.02 * smooth(run.seed, step / 6)
        length = 412 + 1.1 * step + 30 * smooth(run.seed + 1, step / 9)
        return (
            f"step:{step} - global_seqlen/mean:{length * 64:.1f} - "
            f"actor/entropy_loss:{curves.loss(step) / 4:.4f} - "
            f"actor/pg_loss:{0.03 * smooth(run.seed + 2, step / 3):.4f} - "
            f"actor/kl_loss:{0.0004 * step**0.5:.4f} - "
            f"actor/grad_norm:{curves.grad_norm(step):.4f} - actor/lr:{curves.peak_learning_rate:.1e} - "
            f"critic/rewards/mean:{reward:.4f} - response_length/mean:{length:.1f} - "
            f"timing_s/step:{curves.pace.step_s * (1 + 0.1 * uniform(run.seed, step)):.2f} - "
            f"perf/throughput:{1900 + 60 * smooth(run.seed + 3, step / 5):.1f}"
        )

    def _bar(self, curves: TrainingCurves, step: int) -> str:
        elapsed_s = curves.pace.finished_ns(step) / NS_PER_S - curves.pace.warmup_s
        return "Training Progress: " + progress_bar(step, curves.pace.total_steps, elapsed_s)

    def _saving(self, step: int) -> str:
        return f"(TaskRunner pid=2114) local_global_step_folder: /mnt/ckpts/global_step_{step}"


@dataclass(frozen=True, slots=True)
class ProgressBar:
    """A single tqdm bar: ``Steps:  31%|███▏      | 310/1000 [12:03<26:50,  2.33s/it, loss=0.0912]``."""

    label: str = "Steps"
    unit: str = "it"
    every: int = 1
    prints_loss: bool = True
    opening: str = "Starting"
    words: tuple[str, ...] = PLAIN_WORDS
    save_every: int = 0

    def lines(self, run: RunFacts, run_ns: int, curves: TrainingCurves) -> Sequence[LineSource]:
        pace = curves.pace
        sources: list[LineSource] = [
            fixed_lines(node_name(0), "INFO", run_ns, [(1.0, self.opening), (0.9 * pace.warmup_s, "Ready")]),
            StepLines(node_name(0), None, run_ns, pace, partial(self._bar, curves), self.every),
        ]
        if self.save_every:
            sources.append(
                StepLines(node_name(0), "INFO", run_ns, pace, self._saving, self.save_every, 2 * 10**8)
            )
        sources += unrelated_lines_everywhere(
            run, run_ns, curves, level="INFO", period_s=5.0, says=self.words
        )
        return sources

    def _bar(self, curves: TrainingCurves, step: int) -> str:
        pace = curves.pace
        elapsed_s = pace.finished_ns(step) / NS_PER_S - pace.warmup_s
        extra = (
            f", loss={curves.loss(step):.4f}, lr={curves.learning_rate(step):.3g}" if self.prints_loss else ""
        )
        return f"{self.label}: " + progress_bar(
            step, pace.total_steps, elapsed_s, unit=self.unit, extra=extra
        )

    def _saving(self, step: int) -> str:
        return f"Saved state to /mnt/ckpts/checkpoint-{step}"


@dataclass(frozen=True, slots=True)
class JsonLines:
    """JSON lines: ``{"step": 310, "total_steps": 1000, "loss": 0.41, "lr": 1e-05}``."""

    every: int = 1

    def lines(self, run: RunFacts, run_ns: int, curves: TrainingCurves) -> Sequence[LineSource]:
        pace = curves.pace
        sources: list[LineSource] = [
            fixed_lines(
                node_name(0), "INFO", run_ns, [(1.0, "contrastive training, in-batch negatives, batch 2048")]
            ),
            StepLines(node_name(0), None, run_ns, pace, partial(self._step, curves), self.every),
        ]
        sources += unrelated_lines_everywhere(
            run, run_ns, curves, level="INFO", period_s=5.0, says=PLAIN_WORDS
        )
        return sources

    def _step(self, curves: TrainingCurves, step: int) -> str:
        return json.dumps(
            {
                "step": step,
                "total_steps": curves.pace.total_steps,
                "loss": round(curves.loss(step), 4),
                "lr": float(f"{curves.learning_rate(step):.4g}"),
                "grad_norm": round(curves.grad_norm(step), 3),
            }
        )


NS_PER_MS = 1_000_000

RANK_WORDS = (
    "[rank{rank}] dataloader: prefetched {n} batches, queue depth 8",
    "NCCL INFO Channel 0{local}/0 : {rank}[{local}] -> 0[0] [send] via NET/IBext/{local}/GDRDMA",
    "[rank{rank}] all_gather 2.1 GB in {ms} ms",
    "[rank{rank}] reduce_scatter 2.1 GB in {ms} ms",
    "[rank{rank}] allocator: {count} MiB reserved, 0 retries",
)
WARNINGS = (
    "WARNING: token sequence longer than the maximum (131072), truncated: sample {count}",
    "WARNING: dataloader waited {ms} ms for /app/data/shard-0{local}.parquet",
)
DEBUG_WORDS = ("DEBUG heartbeat {n}: all ranks answered within {ms} ms",)


@dataclass(frozen=True, slots=True)
class TransformersTrainer:
    """The Trainer's log: a line every ``logging_steps``, with evaluations and saves in between."""

    logging_steps: int = 1
    save_steps: int = 500
    eval_steps: int = 0
    eval_metric: str | None = None
    output: str = "/mnt/ckpts"
    model: str = "a model"
    unrelated_every_s: float = 8.0
    saves_end_s: float | None = None

    def lines(self, run: RunFacts, run_ns: int, curves: TrainingCurves) -> Sequence[LineSource]:
        pace = curves.pace
        sources: list[LineSource] = [
            self._opening(run, run_ns, curves),
            StepLines(
                "node-0",
                None,
                run_ns,
                pace,
                lambda step: self._dict_line(curves, step),
                self.logging_steps,
                40 * NS_PER_MS,
            ),
            StepLines(
                "node-0",
                None,
                run_ns,
                pace,
                lambda step: self._bar(curves, step),
                self.logging_steps,
                55 * NS_PER_MS,
            ),
        ]
        if self.save_steps:
            saving: LineSource = StepLines(
                "node-0",
                "INFO",
                run_ns,
                pace,
                self._saving,
                every=self.save_steps,
                delay_ns=300 * NS_PER_MS,
            )
            if self.saves_end_s is not None:
                saving = TruncatedLines(saving, run_ns + int(self.saves_end_s * NS_PER_S))
            sources.append(saving)
        if self.eval_steps:
            sources.append(
                StepLines(
                    "node-0",
                    None,
                    run_ns,
                    pace,
                    lambda step: self._eval_line(curves, step),
                    self.eval_steps,
                    900 * NS_PER_MS,
                )
            )
        for node in range(run.node_count):
            sources.append(
                unrelated_lines(
                    run,
                    run_ns,
                    curves,
                    node=node,
                    level="INFO",
                    period_s=self.unrelated_every_s,
                    says=RANK_WORDS,
                )
            )
            sources.append(
                unrelated_lines(
                    run,
                    run_ns,
                    curves,
                    node=node,
                    level="WARNING",
                    period_s=260.0,
                    says=WARNINGS,
                    salt=2,
                )
            )
        sources.append(
            unrelated_lines(
                run, run_ns, curves, node=0, level="DEBUG", period_s=45.0, says=DEBUG_WORDS, salt=3
            )
        )
        if run.outcome == JobStatus.COMPLETED and run.end_ns is not None:
            sources.append(self._closing(run.end_ns, curves))
        return sources

    def _opening(self, run: RunFacts, run_ns: int, curves: TrainingCurves) -> LineSource:
        world = run.node_count * max(1, run.machine.gpu_count)
        warmup_s = curves.pace.warmup_s
        return fixed_lines(
            node_name(0),
            "INFO",
            run_ns,
            [
                (0.8, f"torchrun: {run.node_count} nodes, {world} ranks, rendezvous at node-0:29500"),
                (0.12 * warmup_s, f"Loading {self.model} from /app/models"),
                (0.68 * warmup_s, "Loading checkpoint shards: 100%|██████████| 30/30"),
                (0.8 * warmup_s, "***** Running training *****"),
                (0.8 * warmup_s, f"  Num examples = {curves.steps_per_epoch * world:,}"),
                (0.8 * warmup_s, f"  Total optimization steps = {curves.pace.total_steps:,}"),
            ],
        )

    def _dict_line(self, curves: TrainingCurves, step: int) -> str:
        values: dict[str, float] = {
            "loss": round(curves.loss(step), 4),
            "grad_norm": round(curves.grad_norm(step), 4),
            "learning_rate": float(f"{curves.learning_rate(step):.4g}"),
            "epoch": round(curves.epoch(step), 2),
        }
        return str(values)

    def _eval_line(self, curves: TrainingCurves, step: int) -> str:
        values: dict[str, float] = {"eval_loss": round(curves.eval_loss(step), 4)}
        if self.eval_metric:
            values[self.eval_metric] = round(10 + 12 * curves.eval_loss(step), 3)
        values |= {
            "eval_runtime": 41.7,
            "eval_samples_per_second": 96.1,
            "epoch": round(curves.epoch(step), 2),
        }
        return str(values)

    def _bar(self, curves: TrainingCurves, step: int) -> str:
        pace = curves.pace
        elapsed_s = pace.finished_ns(step) / NS_PER_S - pace.warmup_s
        return progress_bar(step, pace.total_steps, elapsed_s)

    def _saving(self, step: int) -> str:
        return f"Saving model checkpoint to {self.output}/checkpoint-{step}"

    def _closing(self, end_ns: int, curves: TrainingCurves) -> LineSource:
        total = curves.pace.total_steps
        runtime_s = round(curves.pace.finished_ns(total) / NS_PER_S, 1)
        summary = {
            "train_runtime": runtime_s,
            "train_loss": round(curves.eval_loss(total), 4),
            "epoch": curves.epoch(total),
        }
        return fixed_lines("node-0", None, end_ns, [(-12.0, "Training completed."), (-11.9, str(summary))])
