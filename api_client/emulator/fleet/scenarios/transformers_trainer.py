"""Runs that log as the Hugging Face Trainer does: dict lines, a tqdm bar, checkpoint notices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from api_client.emulator.fleet.course import Course
from api_client.emulator.fleet.lines import Clipped, LineSource, Stepped
from api_client.emulator.fleet.narration import (
    chatter,
    node_name,
    progress_bar,
    told,
)
from api_client.emulator.fleet.plans import RunFacts
from api_client.emulator.fleet.tempo import NS_PER_S
from api_client.models import JobStatus

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
    """The Trainer's log; ``logging_steps`` apart, evaluating and saving every so many steps."""

    logging_steps: int = 1
    save_steps: int = 500
    eval_steps: int = 0
    eval_metric: str | None = None
    output: str = "/mnt/ckpts"
    model: str = "a model"
    chatter_s: float = 8.0
    saves_end_s: float | None = None

    def lines(self, run: RunFacts, run_ns: int, course: Course) -> Sequence[LineSource]:
        """See ``Narrator``."""
        pace = course.pace
        sources: list[LineSource] = [
            self._opening(run, run_ns, course),
            Stepped(
                "node-0",
                None,
                run_ns,
                pace,
                lambda step: self._dict_line(course, step),
                self.logging_steps,
                40 * NS_PER_MS,
            ),
            Stepped(
                "node-0",
                None,
                run_ns,
                pace,
                lambda step: self._bar(course, step),
                self.logging_steps,
                55 * NS_PER_MS,
            ),
        ]
        if self.save_steps:
            saving: LineSource = Stepped(
                "node-0",
                "INFO",
                run_ns,
                pace,
                self._saving,
                every=self.save_steps,
                delay_ns=300 * NS_PER_MS,
            )
            if self.saves_end_s is not None:
                saving = Clipped(saving, run_ns + int(self.saves_end_s * NS_PER_S))
            sources.append(saving)
        if self.eval_steps:
            sources.append(
                Stepped(
                    "node-0",
                    None,
                    run_ns,
                    pace,
                    lambda step: self._eval_line(course, step),
                    self.eval_steps,
                    900 * NS_PER_MS,
                )
            )
        for node in range(run.node_count):
            sources.append(
                chatter(
                    run, run_ns, course, node=node, level="INFO", period_s=self.chatter_s, says=RANK_WORDS
                )
            )
            sources.append(
                chatter(
                    run, run_ns, course, node=node, level="WARNING", period_s=260.0, says=WARNINGS, salt=2
                )
            )
        sources.append(
            chatter(run, run_ns, course, node=0, level="DEBUG", period_s=45.0, says=DEBUG_WORDS, salt=3)
        )
        if run.outcome == JobStatus.COMPLETED and run.end_ns is not None:
            sources.append(self._closing(run.end_ns, course))
        return sources

    def _opening(self, run: RunFacts, run_ns: int, course: Course) -> LineSource:
        world = run.node_count * max(1, run.machine.gpu_count)
        warmup_s = course.pace.warmup_s
        return told(
            node_name(0),
            "INFO",
            run_ns,
            [
                (0.8, f"torchrun: {run.node_count} nodes, {world} ranks, rendezvous at node-0:29500"),
                (0.12 * warmup_s, f"Loading {self.model} from /app/models"),
                (0.68 * warmup_s, "Loading checkpoint shards: 100%|██████████| 30/30"),
                (0.8 * warmup_s, "***** Running training *****"),
                (0.8 * warmup_s, f"  Num examples = {course.steps_per_epoch * world:,}"),
                (0.8 * warmup_s, f"  Total optimization steps = {course.pace.total_steps:,}"),
            ],
        )

    def _dict_line(self, course: Course, step: int) -> str:
        values: dict[str, float] = {
            "loss": round(course.loss(step), 4),
            "grad_norm": round(course.grad_norm(step), 4),
            "learning_rate": float(f"{course.learning_rate(step):.4g}"),
            "epoch": round(course.epoch(step), 2),
        }
        return str(values)

    def _eval_line(self, course: Course, step: int) -> str:
        values: dict[str, float] = {"eval_loss": round(course.eval_loss(step), 4)}
        if self.eval_metric:
            values[self.eval_metric] = round(10 + 12 * course.eval_loss(step), 3)
        values |= {
            "eval_runtime": 41.7,
            "eval_samples_per_second": 96.1,
            "epoch": round(course.epoch(step), 2),
        }
        return str(values)

    def _bar(self, course: Course, step: int) -> str:
        pace = course.pace
        elapsed_s = pace.finished_ns(step) / NS_PER_S - pace.warmup_s
        return progress_bar(step, pace.total_steps, elapsed_s)

    def _saving(self, step: int) -> str:
        return f"Saving model checkpoint to {self.output}/checkpoint-{step}"

    def _closing(self, end_ns: int, course: Course) -> LineSource:
        total = course.pace.total_steps
        runtime_s = round(course.pace.finished_ns(total) / NS_PER_S, 1)
        summary = {
            "train_runtime": runtime_s,
            "train_loss": round(course.eval_loss(total), 4),
            "epoch": course.epoch(total),
        }
        return told("node-0", None, end_ns, [(-12.0, "Training completed."), (-11.9, str(summary))])
