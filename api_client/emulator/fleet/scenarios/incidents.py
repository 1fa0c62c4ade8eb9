"""Failures in the demo world, as extra log lines of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from api_client.emulator.fleet.clock import NS_PER_S
from api_client.emulator.fleet.log_generator import fixed_lines, node_name, unrelated_lines
from api_client.emulator.fleet.log_lines import LineSource, StepLines, TruncatedLines
from api_client.emulator.fleet.plans import Incident, LogGenerator, RunFacts
from api_client.emulator.fleet.training import TrainingCurves

SLOW_WORDS = (
    "WARNING dataloader: worker {local} took {x:.1f}4 s for one batch (usual: 0.2 s)",
    "WARNING dataloader: /scratch reads at 0.{ms} GB/s, expected 1.7 GB/s",
    "WARNING step waited for this rank: {x:.2f} s behind the fastest",
)


def slow_node(node: int) -> Incident:
    """Return an incident: one node loads its data slowly and logs a warning every few seconds."""

    def lines(run: RunFacts, run_ns: int, training_curves: TrainingCurves) -> Sequence[LineSource]:
        return [
            unrelated_lines(
                run,
                run_ns,
                training_curves,
                node=node,
                level="WARNING",
                period_s=11.0,
                says=SLOW_WORDS,
                salt=9,
            )
        ]

    return lines


def loss_is_nan(run: RunFacts, run_ns: int, training_curves: TrainingCurves) -> Sequence[LineSource]:
    """Return warnings about clipped gradients, then about inf/nan gradients once the loss is NaN."""
    first = training_curves.nan_from or 0

    def say(step: int) -> str:
        if step < first:
            return f"gradient norm {training_curves.grad_norm(step):.2f}, clipped to 1.0"
        return "WARNING: found inf/nan in gradients, optimizer step skipped"

    return [StepLines(node_name(0), "WARNING", run_ns, training_curves.pace, say, every=25, delay_ns=10**8)]


def memory_leaks(run: RunFacts, run_ns: int, training_curves: TrainingCurves) -> Sequence[LineSource]:
    """Return allocator warnings about memory that is never released."""
    says = ("WARNING allocator: {count} MiB in {ms} cached blocks not released, call {n}",)
    return [
        unrelated_lines(
            run, run_ns, training_curves, node=0, level="WARNING", period_s=40.0, says=says, salt=4
        )
    ]


def disk_fills(run: RunFacts, run_ns: int, training_curves: TrainingCurves) -> Sequence[LineSource]:
    says = ("WARNING scratch disk is filling up: previews written to /scratch/samples/{n:05}.png",)
    return [
        unrelated_lines(
            run, run_ns, training_curves, node=0, level="WARNING", period_s=30.0, says=says, salt=5
        )
    ]


def hangs(run: RunFacts, run_ns: int, training_curves: TrainingCurves) -> Sequence[LineSource]:
    """Return the watchdog's last line if the script ends the hang."""
    if run.end_ns is None or training_curves.pace.halts_after_s is None:
        return []
    text = (
        "[rank11]:[E ProcessGroupNCCL.cpp:629] [Rank 11] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=88214, OpType=ALLREDUCE, NumelIn=134217728, Timeout(ms)=5400000)"
    )
    return [fixed_lines(node_name(run.node_count - 1), "ERROR", run.end_ns, [(-4.0, text)])]


def out_of_memory(run: RunFacts, run_ns: int, training_curves: TrainingCurves) -> Sequence[LineSource]:
    if run.end_ns is None:
        return []
    text = (
        "Traceback (most recent call last):\n"
        '  File "/b10/workspace/train.py", line 214, in <module>\n'
        "    trainer.train()\n"
        '  File "/usr/local/lib/python3.11/site-packages/transformers/trainer.py", line 2241, in train\n'
        "    return inner_training_loop(\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.91 GiB. GPU 5 has a total capacity "
        "of 79.10 GiB of which 2.44 GiB is free."
    )
    after = "torch.distributed.elastic: worker 5 failed with exit code 1, stopping the others"
    return [
        fixed_lines(node_name(0), "ERROR", run.end_ns, [(-6.0, text)]),
        *(
            fixed_lines(node_name(node), "ERROR", run.end_ns, [(-4.0, after)])
            for node in range(run.node_count)
        ),
    ]


def import_fails(run: RunFacts, run_ns: int, training_curves: TrainingCurves) -> Sequence[LineSource]:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/b10/workspace/evaluate.py", line 9, in <module>\n'
        "    import lm_eval\n"
        "ModuleNotFoundError: No module named 'lm_eval'"
    )
    return [fixed_lines(node_name(0), "ERROR", run_ns, [(3.5, text)])]


def lost_connection(run: RunFacts, run_ns: int, training_curves: TrainingCurves) -> Sequence[LineSource]:
    if run.end_ns is None:
        return []
    text = "ERROR huggingface_hub: 3 of 3 attempts failed: ConnectionError(ReadTimeout, datasets-server)"
    return [
        fixed_lines(
            node_name(0),
            "WARNING",
            run_ns,
            [((run.end_ns - run_ns) / NS_PER_S - 40.0, "read timed out, retry 1 of 3")],
        ),
        fixed_lines(node_name(0), "ERROR", run.end_ns, [(-5.0, text)]),
    ]


def image_is_missing(run: RunFacts, run_ns: int, training_curves: TrainingCurves) -> Sequence[LineSource]:
    """Return the errors of an image that cannot be pulled, logged while deploying."""
    image = "registry.demo.example/research/trainer:2.7-cu129"
    return [
        fixed_lines(
            node_name(0),
            "ERROR",
            run_ns,
            [
                (20.0, f'Failed to pull image "{image}": manifest unknown'),
                (50.0, f'Back-off pulling image "{image}" (ErrImagePull)'),
            ],
        )
    ]


def disk_is_full(run: RunFacts, run_ns: int, training_curves: TrainingCurves) -> Sequence[LineSource]:
    if run.end_ns is None:
        return []
    text = "OSError: [Errno 28] No space left on device: '/scratch/samples/06120.png'"
    return [fixed_lines(node_name(0), "ERROR", run.end_ns, [(-3.0, text)])]


MAX_RESTARTS_LOGGED = 12
_CRASH_MESSAGE = (
    "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error"
)


@dataclass(frozen=True, slots=True)
class Restarting:
    """The log of another generator, restarted every ``attempt_s`` seconds.

    Each attempt fails ``break_s`` before the next one starts.
    """

    log_generator: LogGenerator
    attempt_s: float
    break_s: float
    save_every: int

    def lines(self, run: RunFacts, run_ns: int, training_curves: TrainingCurves) -> Sequence[LineSource]:
        return list(self._lines(run, run_ns, training_curves))

    def _lines(self, run: RunFacts, run_ns: int, training_curves: TrainingCurves) -> Iterator[LineSource]:
        first_step = 0
        for attempt in range(MAX_RESTARTS_LOGGED):
            start_ns = run_ns + int(attempt * self.attempt_s * NS_PER_S)
            until_ns = start_ns + int((self.attempt_s - self.break_s) * NS_PER_S)
            pace = replace(training_curves.pace, first_step=first_step)
            for source in self.log_generator.lines(run, start_ns, replace(training_curves, pace=pace)):
                yield TruncatedLines(source, until_ns)
            yield fixed_lines(node_name(0), "ERROR", until_ns, [(0.1, _CRASH_MESSAGE)])
            again = f"torchrun: worker group restarting, restart_count={attempt + 1}"
            yield fixed_lines(node_name(0), "WARNING", until_ns, [(self.break_s / 2, again)])
            reached = pace.steps_done(until_ns - start_ns)
            if reached >= training_curves.pace.total_steps:
                return
            first_step = reached // self.save_every * self.save_every
