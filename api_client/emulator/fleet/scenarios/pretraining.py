"""Runs that log as pre-training stacks do: torchtitan's and Megatron-LM's lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from api_client.emulator.fleet.course import Course
from api_client.emulator.fleet.lines import LineSource, Stepped
from api_client.emulator.fleet.narration import chatter_everywhere, node_name, told
from api_client.emulator.fleet.noise import uniform
from api_client.emulator.fleet.plans import RunFacts
from api_client.emulator.fleet.tempo import NS_PER_S

SEQUENCE_TOKENS = 8192
PEAK_TFLOPS = 989.0
"""Dense bf16 of one H100 or H200; utilisation of the model's flops is told against it."""

NCCL_WORDS = (
    "NCCL INFO comm 0x7f3a{count} rank {rank} nranks 8 - collective {n} ok",
    "[rank{rank}]: data loader at sample {n}, {ms} ms behind the step",
    "[rank{rank}]: garbage collection took {x:.2f} s",
)


def _when(run: RunFacts, run_ns: int, course: Course, step: int) -> datetime:
    return run.wall(run_ns + course.pace.finished_ns(step))


@dataclass(frozen=True, slots=True)
class Torchtitan:
    """``[titan] … step: 120  loss:  4.1234  memory: …  tps: …  tflops: …  mfu: …``."""

    log_every: int = 1
    save_every: int = 500
    memory_gib: float = 62.3
    tflops: float = 412.0

    def lines(self, run: RunFacts, run_ns: int, course: Course) -> Sequence[LineSource]:
        """See ``Narrator``."""
        pace = course.pace
        opening = told(
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
            Stepped(
                node_name(0), "INFO", run_ns, pace, partial(self._step, run, run_ns, course), self.log_every
            ),
            Stepped(
                node_name(0),
                "INFO",
                run_ns,
                pace,
                partial(self._saving, run, run_ns, course),
                self.save_every,
                2 * 10**8,
            ),
        ]
        sources += chatter_everywhere(run, run_ns, course, level="INFO", period_s=7.0, says=NCCL_WORDS)
        return sources

    def _prefix(self, run: RunFacts, run_ns: int, course: Course, step: int) -> str:
        when = _when(run, run_ns, course, step)
        return f"[rank0]:[titan] {when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03} - root - INFO - "

    def _step(self, run: RunFacts, run_ns: int, course: Course, step: int) -> str:
        tflops = self.tflops * (0.98 + 0.04 * uniform(run.seed, step))
        tokens_per_s = SEQUENCE_TOKENS / course.pace.step_s * (0.98 + 0.04 * uniform(run.seed, step))
        return (
            f"{self._prefix(run, run_ns, course, step)}step: {step:2}  loss: {course.loss(step):7.4f}  "
            f"grad_norm: {course.grad_norm(step):7.4f}  memory: {self.memory_gib:.2f}GiB(78.68%)  "
            f"tps: {tokens_per_s:,.0f}  tflops: {tflops:,.2f}  mfu: {tflops / PEAK_TFLOPS:.2%}"
        )

    def _saving(self, run: RunFacts, run_ns: int, course: Course, step: int) -> str:
        return f"{self._prefix(run, run_ns, course, step)}Saving the checkpoint at step {step} (async)."


@dataclass(frozen=True, slots=True)
class Megatron:
    """`` [2026-01-02 03:04:05] iteration      120/   20000 | … | lm loss: 2.310000E+00 | …``."""

    log_every: int = 1
    save_every: int = 500
    batch: int = 256

    def lines(self, run: RunFacts, run_ns: int, course: Course) -> Sequence[LineSource]:
        """See ``Narrator``."""
        pace = course.pace
        opening = told(
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
            Stepped(
                node_name(0), None, run_ns, pace, partial(self._step, run, run_ns, course), self.log_every
            ),
            Stepped(node_name(0), None, run_ns, pace, self._saving, self.save_every, 3 * 10**8),
        ]
        sources += chatter_everywhere(run, run_ns, course, level="INFO", period_s=6.0, says=NCCL_WORDS)
        return sources

    def _step(self, run: RunFacts, run_ns: int, course: Course, step: int) -> str:
        pace = course.pace
        took_ms = (
            (pace.finished_ns(step) - pace.finished_ns(step - 1)) / NS_PER_S * 1000
            if step > 1
            else pace.step_s * 1000
        )
        return (
            f" [{_when(run, run_ns, course, step):%Y-%m-%d %H:%M:%S}] "
            f"iteration {step:8}/{pace.total_steps:8} | "
            f"consumed samples: {step * self.batch:12} | elapsed time per iteration (ms): {took_ms:.1f} | "
            f"learning rate: {course.learning_rate(step):.6E} | global batch size: {self.batch:5} | "
            f"lm loss: {course.loss(step):.6E} | loss scale: 1.0 | grad norm: {course.grad_norm(step):.3f} | "
            f"number of skipped iterations:   0 | number of nan iterations:   0 |"
        )

    def _saving(self, step: int) -> str:
        return f"saving checkpoint at iteration {step:7} to /mnt/ckpts in torch_dist format"
