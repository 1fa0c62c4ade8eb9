"""Runs that log as verl, progress bars, or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from api_client.emulator.fleet.course import Course
from api_client.emulator.fleet.lines import LineSource, Stepped
from api_client.emulator.fleet.narration import chatter_everywhere, node_name, progress_bar, told
from api_client.emulator.fleet.noise import smooth, uniform
from api_client.emulator.fleet.plans import RunFacts
from api_client.emulator.fleet.tempo import NS_PER_S

RAY_WORDS = (
    "(WorkerDict pid={count}) rollout batch {n}: {ms} sequences generated",
    "(WorkerDict pid={count}) vLLM: KV cache usage {x:.1%}, running 64 reqs",
    "(TaskRunner pid=2114) reward worker {rank} scored {ms} answers",
)
PLAIN_WORDS = ("worker {rank}: {count} items in the last minute", "heartbeat {n} ok")


@dataclass(frozen=True, slots=True)
class Verl:
    """``step:880 - actor/pg_loss:-0.013 - critic/rewards/mean:0.61 - …``."""

    save_every: int = 100

    def lines(self, run: RunFacts, run_ns: int, course: Course) -> Sequence[LineSource]:
        """See ``Narrator``."""
        pace = course.pace
        sources: list[LineSource] = [
            told(
                node_name(0),
                "INFO",
                run_ns,
                [
                    (3.0, "Started a local Ray instance. View the dashboard at 127.0.0.1:8265"),
                    (0.6 * pace.warmup_s, "(WorkerDict pid=2301) vLLM engine is up, 0.55 of GPU memory"),
                    (0.95 * pace.warmup_s, "(TaskRunner pid=2114) Training Progress:   0%"),
                ],
            ),
            Stepped(node_name(0), None, run_ns, pace, partial(self._step, run, course)),
            Stepped(node_name(0), None, run_ns, pace, partial(self._bar, course), delay_ns=10**8),
            Stepped(node_name(0), "INFO", run_ns, pace, self._saving, self.save_every, 5 * 10**8),
        ]
        sources += chatter_everywhere(run, run_ns, course, level="INFO", period_s=4.0, says=RAY_WORDS)
        return sources

    def _step(self, run: RunFacts, course: Course, step: int) -> str:
        reward = 0.86 - 0.55 / (1 + step / 200) + 0.02 * smooth(run.seed, step / 6)
        length = 412 + 1.1 * step + 30 * smooth(run.seed + 1, step / 9)
        return (
            f"step:{step} - global_seqlen/mean:{length * 64:.1f} - "
            f"actor/entropy_loss:{course.loss(step) / 4:.4f} - "
            f"actor/pg_loss:{0.03 * smooth(run.seed + 2, step / 3):.4f} - "
            f"actor/kl_loss:{0.0004 * step**0.5:.4f} - "
            f"actor/grad_norm:{course.grad_norm(step):.4f} - actor/lr:{course.peak_learning_rate:.1e} - "
            f"critic/rewards/mean:{reward:.4f} - response_length/mean:{length:.1f} - "
            f"timing_s/step:{course.pace.step_s * (1 + 0.1 * uniform(run.seed, step)):.2f} - "
            f"perf/throughput:{1900 + 60 * smooth(run.seed + 3, step / 5):.1f}"
        )

    def _bar(self, course: Course, step: int) -> str:
        elapsed_s = course.pace.finished_ns(step) / NS_PER_S - course.pace.warmup_s
        return "Training Progress: " + progress_bar(step, course.pace.total_steps, elapsed_s)

    def _saving(self, step: int) -> str:
        return f"(TaskRunner pid=2114) local_global_step_folder: /mnt/ckpts/global_step_{step}"


@dataclass(frozen=True, slots=True)
class ProgressBar:
    """One tqdm bar: ``Steps:  31%|███▏      | 310/1000 [12:03<26:50,  2.33s/it, loss=0.0912]``."""

    label: str = "Steps"
    unit: str = "it"
    every: int = 1
    tells_loss: bool = True
    opening: str = "Starting"
    words: tuple[str, ...] = PLAIN_WORDS
    save_every: int = 0

    def lines(self, run: RunFacts, run_ns: int, course: Course) -> Sequence[LineSource]:
        """See ``Narrator``."""
        pace = course.pace
        sources: list[LineSource] = [
            told(node_name(0), "INFO", run_ns, [(1.0, self.opening), (0.9 * pace.warmup_s, "Ready")]),
            Stepped(node_name(0), None, run_ns, pace, partial(self._bar, course), self.every),
        ]
        if self.save_every:
            sources.append(
                Stepped(node_name(0), "INFO", run_ns, pace, self._saving, self.save_every, 2 * 10**8)
            )
        sources += chatter_everywhere(run, run_ns, course, level="INFO", period_s=5.0, says=self.words)
        return sources

    def _bar(self, course: Course, step: int) -> str:
        pace = course.pace
        elapsed_s = pace.finished_ns(step) / NS_PER_S - pace.warmup_s
        extra = (
            f", loss={course.loss(step):.4f}, lr={course.learning_rate(step):.3g}" if self.tells_loss else ""
        )
        return f"{self.label}: " + progress_bar(
            step, pace.total_steps, elapsed_s, unit=self.unit, extra=extra
        )

    def _saving(self, step: int) -> str:
        return f"Saved state to /mnt/ckpts/checkpoint-{step}"


@dataclass(frozen=True, slots=True)
class JsonLines:
    """``{"step": 310, "total_steps": 1000, "loss": 0.41, "lr": 1e-05}``."""

    every: int = 1

    def lines(self, run: RunFacts, run_ns: int, course: Course) -> Sequence[LineSource]:
        """See ``Narrator``."""
        pace = course.pace
        sources: list[LineSource] = [
            told(
                node_name(0), "INFO", run_ns, [(1.0, "contrastive training, in-batch negatives, batch 2048")]
            ),
            Stepped(node_name(0), None, run_ns, pace, partial(self._step, course), self.every),
        ]
        sources += chatter_everywhere(run, run_ns, course, level="INFO", period_s=5.0, says=PLAIN_WORDS)
        return sources

    def _step(self, course: Course, step: int) -> str:
        return json.dumps(
            {
                "step": step,
                "total_steps": course.pace.total_steps,
                "loss": round(course.loss(step), 4),
                "lr": float(f"{course.learning_rate(step):.4g}"),
                "grad_norm": round(course.grad_norm(step), 3),
            }
        )
