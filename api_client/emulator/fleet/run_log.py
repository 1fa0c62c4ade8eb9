"""The parts that the logs of all runs share: first lines, background lines, incidents, last lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from api_client.emulator.fleet.clock import NS_PER_S
from api_client.emulator.fleet.log_lines import LineSource, fixed_lines, periodic_lines, step_lines
from api_client.emulator.fleet.plans import SimRun
from api_client.emulator.fleet.training import mix, uniform
from api_client.models import JobStatus

DEMO_MARK = "[demo data]"
RunLog = Callable[[SimRun], Sequence[LineSource]]
"""Lines of a run: those of its trainer, or of an incident."""


def noise(
    run: SimRun, node: int, level: str, period_s: float, templates: Sequence[str], salt: int = 0
) -> LineSource:
    """Build background log lines of one node while it trains, from the templates in ``templates``.

    A template may use ``{n}`` (the line's number), ``{x}`` (0 to 1), ``{rank}`` (a rank on the node),
    ``{local}`` (its index on the node), ``{ms}`` and ``{count}``. Each line always gets the same values.
    """
    seed = mix(run.seed, 1_000 * salt + node)
    gpus = max(1, run.machine.gpu_count)

    def message_of(index: int) -> str:
        x = uniform(seed + 1, index)
        local = int(gpus * x)
        return templates[mix(seed, index) % len(templates)].format(
            n=index,
            x=x,
            rank=node * gpus + local,
            local=local,
            ms=int(40 + 300 * x),
            count=int(1000 + 9000 * x),
        )

    start_ns = run.start_ns + int(run.curves.pace.warmup_s * NS_PER_S)
    return periodic_lines(node, level, start_ns, run.last_line_ns, int(period_s * NS_PER_S), seed, message_of)


def deploy_lines(run: SimRun) -> list[LineSource]:
    """Return the first lines of every job: the demo notice and the start of its nodes."""
    plan, machine = run.plan, run.machine
    gpus = f"{machine.gpu_count}x {machine.gpu_type}" if machine.gpu_count else "CPU only"
    mark = f"{DEMO_MARK} simulated run '{plan.scenario.key}' of {plan.name}: nothing is really computed"
    ready_s = 0.25 if run.run_ns is None else (run.run_ns - run.deploy_ns) / NS_PER_S
    sources = [fixed_lines(0, "INFO", run.deploy_ns, [(0.0, mark)])]
    for node in run.nodes:
        steps = [
            (0.02, f"Provisioning {machine.name} ({gpus})"),
            (0.1, "Pulling image pytorch/pytorch:2.7.0-cuda12.8-cudnn9-runtime"),
        ]
        if run.run_ns is not None:
            steps += [
                (0.6, "Image pulled"),
                (0.8, "Weights placed at /app/models from the node-local cache"),
                (0.97, f"Node {node} of {plan.nodes} ready, leader is node-0"),
            ]
        late = 0.02 * uniform(run.seed, node)
        lines = [(ready_s * (share + late), text) for share, text in steps]
        sources.append(fixed_lines(node, "INFO", run.deploy_ns, lines))
    return sources


def closing_lines(run: SimRun) -> list[LineSource]:
    if run.run_ns is None or run.end_ns is None:
        return []
    if run.outcome == JobStatus.COMPLETED:
        message = "start_commands exited with code 0"
        return [fixed_lines(node, "INFO", run.end_ns, [(-2.0 + 0.1 * node, message)]) for node in run.nodes]
    if run.outcome == JobStatus.PREEMPTED:
        lines = [(-30.0, "Spot capacity is being reclaimed: 30 s to save"), (-1.0, SIGTERM)]
        return [fixed_lines(node, "WARNING", run.end_ns, lines) for node in run.nodes]
    return []


SIGTERM = "Received SIGTERM, exiting"


def stop_lines(run: SimRun, stopped_ns: int) -> list[LineSource]:
    return [fixed_lines(node, "WARNING", stopped_ns, [(0.05 + 0.01 * node, SIGTERM)]) for node in run.nodes]


def warns(period_s: float, *templates: str, node: int = 0) -> RunLog:
    """Return an incident: warnings of one node every few seconds while it trains."""
    return lambda run: [noise(run, node, "WARNING", period_s, templates, salt=9)]


def fails(before_end_s: float, text: str, *, node: int = 0) -> RunLog:
    """Return an incident: an error shortly before the script ends the run."""
    return lambda run: (
        [] if run.end_ns is None else [fixed_lines(node, "ERROR", run.end_ns, [(-before_end_s, text)])]
    )


def errs(*lines: tuple[float, str]) -> RunLog:
    """Return an incident: errors of the leader, as seconds after the start."""
    return lambda run: [fixed_lines(0, "ERROR", run.start_ns, lines)]


_OUT_OF_MEMORY = (
    "Traceback (most recent call last):\n"
    '  File "/b10/workspace/train.py", line 214, in <module>\n'
    "    trainer.train()\n"
    '  File "/usr/local/lib/python3.11/site-packages/transformers/trainer.py", line 2241, in train\n'
    "    return inner_training_loop(\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.91 GiB. GPU 5 has a total capacity "
    "of 79.10 GiB of which 2.44 GiB is free."
)


def out_of_memory(run: SimRun) -> list[LineSource]:
    after = "torch.distributed.elastic: worker 5 failed with exit code 1, stopping the others"
    sources = [*fails(6.0, _OUT_OF_MEMORY)(run)]
    return [*sources, *(line for node in run.nodes for line in fails(4.0, after, node=node)(run))]


def loss_is_nan(run: SimRun) -> list[LineSource]:
    """Return warnings about clipped gradients, then about inf/nan gradients once the loss is NaN."""

    def message_of(step: int) -> str:
        if step < (run.curves.nan_from or 0):
            return f"gradient norm {run.curves.grad_norm(step):.2f}, limit 1.0"
        return "WARNING: found inf/nan in gradients, optimizer step skipped"

    return [step_lines("WARNING", run.start_ns, run.curves.pace, message_of, every=25, delay_ns=10**8)]


MAX_RESTARTS_LOGGED = 12
_CRASH = "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error"


def restarting(log: RunLog, *, attempt_s: float, break_s: float, save_every: int) -> RunLog:
    """Return the log restarted every ``attempt_s`` seconds, from the last checkpoint of the attempt before.

    Each attempt fails ``break_s`` before the next one starts.
    """

    def lines(run: SimRun) -> Sequence[LineSource]:
        found: list[LineSource] = []
        pace = run.curves.pace
        for attempt in range(MAX_RESTARTS_LOGGED):
            start_ns = run.start_ns + int(attempt * attempt_s * NS_PER_S)
            until_ns = start_ns + int((attempt_s - break_s) * NS_PER_S)
            resumed = replace(run, run_ns=start_ns, curves=replace(run.curves, pace=pace))
            again = f"torchrun: worker group restarting, restart_count={attempt + 1}"
            found += [source.until(until_ns) for source in log(resumed)]
            found.append(fixed_lines(0, "ERROR", until_ns, [(0.1, _CRASH)]))
            found.append(fixed_lines(0, "WARNING", until_ns, [(break_s / 2, again)]))
            reached = pace.steps_done(until_ns - start_ns)
            if reached >= pace.total_steps:
                break
            pace = replace(pace, first_step=reached // save_every * save_every)
        return found

    return lines
