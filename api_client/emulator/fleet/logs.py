"""Logs of the simulated runs: the trainers' formats as templates, what all runs log, and incidents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from api_client.emulator.fleet.clock import NS_PER_S
from api_client.emulator.fleet.log_lines import LineSource, fixed_lines, periodic_lines, step_lines
from api_client.emulator.fleet.plans import SimRun
from api_client.emulator.fleet.training import mix, smooth, uniform
from api_client.models import JobStatus

DEMO_MARK = "[demo data]"
FIRST_DELAY_NS, DELAY_NS = 40_000_000, 15_000_000
"""Delays of the lines after their step: of the first format, and of each further one."""
SAVE_DELAY_NS, EVALUATION_DELAY_NS = 300_000_000, 900_000_000
_EIGHTHS = " ▏▎▍▌▋▊▉"
_BAR_CELLS = 10

RunLog = Callable[[SimRun], Sequence[LineSource]]
"""Lines of a run: those of its trainer, or of an incident."""


class Values(dict[str, Any]):
    """Values for the template of a step's line, as in ``{loss:.4f}``; computed when it names them."""

    def __init__(self, run: SimRun, step: int) -> None:
        super().__init__(run=run, step=step)
        self.run, self.pace = run, run.curves.pace
        self.step = step

    def __missing__(self, name: str) -> Any:
        return VALUES[name](self)


def _step_s(of: Values) -> float:
    done_ns = of.pace.finished_ns
    return (done_ns(of.step) - done_ns(of.step - 1)) / NS_PER_S


def _speed(of: Values) -> float:
    """Return the measured speed as a share of the usual one."""
    return 0.98 + 0.04 * uniform(of.run.seed, of.step)


def _elapsed_s(of: Values) -> float:
    return of.pace.finished_ns(of.step) / NS_PER_S - of.pace.warmup_s


def _bar(of: Values) -> str:
    """Return a bar like tqdm's, without its end: `` 46%|████▌  | 4120/9000 [6:12:03<7:10:44, 5.30s/it``."""
    step, total, elapsed_s = of.step, of.pace.total_steps, _elapsed_s(of)
    full, part = divmod(int(step / total * _BAR_CELLS * 8), 8)
    cells = ("█" * full + (_EIGHTHS[part] if part else "")).ljust(_BAR_CELLS)
    step_s = elapsed_s / step
    rate = f"{step_s:5.2f}s/it" if step_s >= 1 else f"{1 / step_s:5.2f}it/s"
    times = f"{_duration(elapsed_s)}<{_duration(step_s * (total - step))}, {rate}"
    return f"{step / total * 100:3.0f}%|{cells}| {step}/{total} [{times}"


def _duration(seconds: float) -> str:
    """Format ``22323`` as ``6:12:03`` and ``63`` as ``01:03``, as progress bars do."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"


VALUES: Mapping[str, Callable[[Values], Any]] = {
    "total": lambda of: of.pace.total_steps,
    "nodes": lambda of: of.run.plan.nodes,
    "ranks": lambda of: of.run.plan.nodes * max(1, of.run.machine.gpu_count),
    "examples": lambda of: of.run.curves.steps_per_epoch * of["ranks"],
    "samples": lambda of: of.step * 256,
    "loss": lambda of: of.run.curves.loss(of.step),
    "eval_loss": lambda of: of.run.curves.eval_loss(of.step),
    "word_errors": lambda of: 10 + 12 * of["eval_loss"],
    "grad_norm": lambda of: of.run.curves.grad_norm(of.step),
    "lr": lambda of: of.run.curves.learning_rate(of.step),
    "epoch": lambda of: of.run.curves.epoch(of.step),
    "time": lambda of: of.run.wall(of.run.start_ns + of.pace.finished_ns(of.step)),
    "ms": lambda of: of["time"].microsecond // 1000,
    "elapsed_s": _elapsed_s,
    "step_s": _step_s,
    "step_ms": lambda of: 1000 * _step_s(of),
    "tokens_per_s": lambda of: 8192 / of.pace.step_s * _speed(of),
    "tflops": lambda of: 412.0 * _speed(of),
    "mfu": lambda of: of["tflops"] / 989.0,  # dense bf16 peak of an H100 or H200
    "length": lambda of: 412 + 1.1 * of.step + 30 * smooth(of.run.seed + 1, of.step / 9),
    "reward": lambda of: 0.86 - 0.55 / (1 + of.step / 200) + 0.02 * smooth(of.run.seed, of.step / 6),
    "entropy": lambda of: of["loss"] / 4,
    "throughput": lambda of: 1900 * _speed(of),
    "kl": lambda of: 0.0004 * of.step**0.5,
    "drift": lambda of: 0.03 * smooth(of.run.seed + 2, of.step / 3),
    "bar": _bar,
}


Background = tuple[str, float, tuple[str, ...]]
"""Level, period in seconds, and templates of the lines that every node logs beside the training."""


@dataclass(frozen=True, slots=True)
class TrainerLog:
    """The log format of a trainer as templates (see ``VALUES``); calling it gives the lines of a run."""

    opening: tuple[tuple[float, str], ...]
    """First lines, each with its share of the warm-up."""
    steps: tuple[str, ...]
    """Lines after every ``every``-th step."""
    background: tuple[Background, ...]
    every: int = 1
    level: str | None = None
    saving: str | None = None
    """Line after a checkpoint."""
    evaluation: str | None = None
    """Line after the evaluation that follows a checkpoint."""
    closing: str | None = None

    def __call__(self, run: SimRun) -> Sequence[LineSource]:
        pace, start_ns, saves = run.curves.pace, run.start_ns, run.plan.scenario.saves

        def after_steps(template: str, level: str | None, every: int, delay_ns: int) -> LineSource:
            def text(step: int) -> str:
                return template.format_map(Values(run, step))

            return step_lines(level, start_ns, pace, text, every, delay_ns)

        opening = [(share * pace.warmup_s, text.format_map(Values(run, 0))) for share, text in self.opening]
        sources = [fixed_lines(0, self.level or "INFO", start_ns, opening)]
        for number, template in enumerate(self.steps):
            delay_ns = FIRST_DELAY_NS + number * DELAY_NS
            sources.append(after_steps(template, self.level, self.every, delay_ns))
        if saves is not None and self.saving is not None:
            source = after_steps(self.saving, "INFO", saves.every, SAVE_DELAY_NS)
            until_s = saves.until_s
            sources.append(source if until_s is None else source.until(start_ns + int(until_s * NS_PER_S)))
        if saves is not None and self.evaluation is not None:
            sources.append(after_steps(self.evaluation, None, saves.every, EVALUATION_DELAY_NS))
        for salt, (level, period_s, templates) in enumerate(self.background):
            sources += [noise(run, node, level, period_s, templates, salt) for node in run.nodes]
        if self.closing is not None and run.outcome == JobStatus.COMPLETED and run.end_ns is not None:
            summary = self.closing.format_map(Values(run, pace.total_steps))
            sources.append(
                fixed_lines(0, None, run.end_ns, [(-12.0, "Training completed."), (-11.9, summary)])
            )
        return sources


_NCCL: Background = (
    "INFO",
    7.0,
    (
        "NCCL INFO comm 0x7f3a{count} rank {rank} nranks 8 - collective {n} ok",
        "[rank{rank}]: data loader at sample {n}, {ms} ms behind the step",
        "[rank{rank}]: garbage collection took {x:.2f} s",
    ),
)
_TITAN = "[rank0]:[titan] {time:%Y-%m-%d %H:%M:%S},{ms:03} - root - INFO - "
TORCHTITAN = TrainerLog(
    opening=(
        (0.01, "[titan] - root - INFO - Starting job"),
        (0.3, "[titan] - root - INFO - Applied FSDP to the model, torch.compile on"),
        (0.9, "[titan] - root - INFO - Training starts, {total} steps"),
    ),
    steps=(
        _TITAN + "step: {step:2}  loss: {loss:7.4f}  grad_norm: {grad_norm:7.4f}  "
        "memory: 62.30GiB(78.68%)  tps: {tokens_per_s:,.0f}  tflops: {tflops:,.2f}  mfu: {mfu:.2%}",
    ),
    level="INFO",
    saving=_TITAN + "Saving the checkpoint at step {step} (async).",
    background=(_NCCL,),
)
MEGATRON = TrainerLog(
    opening=(
        (0.01, "using world size: 8, data-parallel size: 2, tensor-model-parallel size: 4"),
        (0.5, "> building train, validation, and test datasets ..."),
        (0.9, "training ..."),
    ),
    steps=(
        " [{time:%Y-%m-%d %H:%M:%S}] iteration {step:8}/{total:8} | consumed samples: {samples:12} | "
        "elapsed time per iteration (ms): {step_ms:.1f} | learning rate: {lr:.6E} | "
        "global batch size:   256 | lm loss: {loss:.6E} | loss scale: 1.0 | "
        "grad norm: {grad_norm:.3f} | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |",
    ),
    saving="saving checkpoint at iteration {step:7} to /mnt/ckpts in torch_dist format",
    background=(_NCCL,),
)
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
    steps=(
        "step:{step} - actor/entropy_loss:{entropy:.4f} - actor/pg_loss:{drift:.4f} - "
        "actor/kl_loss:{kl:.4f} - actor/grad_norm:{grad_norm:.4f} - actor/lr:{lr:.1e} - "
        "critic/rewards/mean:{reward:.4f} - response_length/mean:{length:.1f} - "
        "timing_s/step:{step_s:.2f} - perf/throughput:{throughput:.1f}",
        "Training Progress: {bar}]",
    ),
    saving="(TaskRunner pid=2114) local_global_step_folder: /mnt/ckpts/global_step_{step}",
    background=(("INFO", 4.0, _RAY),),
)

_PLAIN = ("worker {rank}: {count} items in the last minute", "heartbeat {n} ok")


def progress_bar(
    label: str, opening: str, *templates: str, every: int = 1, has_loss: bool = False
) -> TrainerLog:
    """A single tqdm bar: ``Steps:  31%|███▏      | 310/1000 [12:03<26:50,  2.33s/it, loss=0.0912]``."""
    end = ", loss={loss:.4f}, lr={lr:.3g}]" if has_loss else "]"
    return TrainerLog(
        opening=((0.02, opening), (0.9, "Ready")),
        steps=(f"{label}: {{bar}}{end}",),
        every=every,
        saving="Saved state to /mnt/ckpts/checkpoint-{step}",
        background=(("INFO", 5.0, templates or _PLAIN),),
    )


def json_lines(every: int) -> TrainerLog:
    """JSON lines: ``{"step": 310, "total_steps": 1000, "loss": 0.41, "lr": 1e-05}``."""
    return TrainerLog(
        opening=((0.03, "contrastive training, in-batch negatives, batch 2048"),),
        steps=(
            '{{"step": {step}, "total_steps": {total}, "loss": {loss:.4f}, "lr": {lr:.4g}, '
            '"grad_norm": {grad_norm:.3f}}}',
        ),
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


def transformers(
    model: str, *, every: int = 1, evaluates: bool = False, metric: str = "", noise_s: float = 8.0
) -> TrainerLog:
    """The Trainer's log: a bar and a dict every few steps, with evaluations and saves in between."""
    extra = f"'{metric}': {{word_errors:.3f}}, " if metric else ""
    rates = "'eval_runtime': 41.7, 'eval_samples_per_second': 96.1, 'epoch': {epoch:.2f}}}"
    return TrainerLog(
        opening=(
            (0.01, "torchrun: {nodes} nodes, {ranks} ranks, rendezvous at node-0:29500"),
            (0.12, f"Loading {model} from /app/models"),
            (0.68, "Loading checkpoint shards: 100%|██████████| 30/30"),
            (0.8, "***** Running training *****"),
            (0.8, "  Num examples = {examples:,}"),
            (0.8, "  Total optimization steps = {total:,}"),
        ),
        steps=(
            "{bar}]",
            "{{'loss': {loss:.4f}, 'grad_norm': {grad_norm:.4f}, 'learning_rate': {lr:.4g}, "
            "'epoch': {epoch:.2f}}}",
        ),
        every=every,
        saving="Saving model checkpoint to /mnt/ckpts/checkpoint-{step}",
        evaluation="{{'eval_loss': {eval_loss:.4f}, " + extra + rates if evaluates else None,
        closing="{{'train_runtime': {elapsed_s:.1f}, 'train_loss': {eval_loss:.4f}, 'epoch': {epoch}}}",
        background=(("INFO", noise_s, _RANKS), ("WARNING", 260.0, _WARNINGS), ("DEBUG", 45.0, _HEARTBEATS)),
    )


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


def nan_loss(run: SimRun) -> list[LineSource]:
    """Return warnings about clipped gradients, then about inf/nan gradients once the loss is NaN."""

    def message_of(step: int) -> str:
        if step < run.curves.nan_from:
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
        sources: list[LineSource] = []
        pace = run.curves.pace
        for attempt in range(MAX_RESTARTS_LOGGED):
            start_ns = run.start_ns + int(attempt * attempt_s * NS_PER_S)
            until_ns = start_ns + int((attempt_s - break_s) * NS_PER_S)
            resumed = replace(run, run_ns=start_ns, curves=replace(run.curves, pace=pace))
            again = f"torchrun: worker group restarting, restart_count={attempt + 1}"
            sources += [source.until(until_ns) for source in log(resumed)]
            sources.append(fixed_lines(0, "ERROR", until_ns, [(0.1, _CRASH)]))
            sources.append(fixed_lines(0, "WARNING", until_ns, [(break_s / 2, again)]))
            reached = pace.steps_done(until_ns - start_ns)
            if reached >= pace.total_steps:
                break
            pace = replace(pace, first_step=reached // save_every * save_every)
        return sources

    return lines
