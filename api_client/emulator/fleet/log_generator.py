"""Helpers shared by the logs of all scripted runs: building lines, first lines, last lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from api_client.emulator.fleet.clock import NS_PER_S
from api_client.emulator.fleet.log_lines import FixedLines, LineSource, PeriodicLines
from api_client.emulator.fleet.plans import RunFacts
from api_client.emulator.fleet.training import TrainingCurves, mix, uniform
from api_client.models import JobStatus

DEMO_MARK = "[demo data]"
BAR_CELLS = 10
_EIGHTHS = " ▏▎▍▌▋▊▉"


def node_name(node: int) -> str:
    return f"node-{node}"


def fixed_lines(
    replica: str | None, level: str | None, start_ns: int, lines: Iterable[tuple[float, str]]
) -> FixedLines:
    """Build a source from lines given in ascending order, as seconds after ``start_ns``."""
    placed = [(start_ns + int(after_s * NS_PER_S), text) for after_s, text in lines]
    return FixedLines(replica, level, tuple(at for at, _ in placed), tuple(text for _, text in placed))


def unrelated_lines(
    run: RunFacts,
    run_ns: int,
    training_curves: TrainingCurves,
    *,
    node: int,
    level: str | None,
    period_s: float,
    says: Sequence[str],
    salt: int = 0,
) -> PeriodicLines:
    """Build background log lines of one node while it trains, from the templates in ``says``.

    A template may use ``{n}`` (the line's number), ``{x}`` (0 to 1), ``{rank}`` (a rank on the node),
    ``{local}`` (its index on the node), ``{ms}`` and ``{count}``. Each line always gets the same values.
    """
    seed = mix(run.seed, 1_000 * salt + node)
    gpus = max(1, run.machine.gpu_count)

    def say(index: int) -> str:
        x = uniform(seed + 1, index)
        local = int(gpus * x)
        return says[mix(seed, index) % len(says)].format(
            n=index,
            x=x,
            rank=node * gpus + local,
            local=local,
            ms=int(40 + 300 * x),
            count=int(1000 + 9000 * x),
        )

    start_ns = run_ns + int(training_curves.pace.warmup_s * NS_PER_S)
    return PeriodicLines(
        node_name(node),
        level,
        start_ns,
        last_line_ns(run, run_ns, training_curves),
        int(period_s * NS_PER_S),
        seed,
        say,
    )


def unrelated_lines_everywhere(
    run: RunFacts,
    run_ns: int,
    training_curves: TrainingCurves,
    *,
    level: str | None,
    period_s: float,
    says: Sequence[str],
    salt: int = 0,
) -> list[LineSource]:
    """Build background log lines for every node, each with its own timing."""
    return [
        unrelated_lines(
            run, run_ns, training_curves, node=node, level=level, period_s=period_s, says=says, salt=salt
        )
        for node in range(run.node_count)
    ]


def last_line_ns(run: RunFacts, run_ns: int, training_curves: TrainingCurves) -> int:
    """Return when a run stops logging: at its last step, when it hangs, or when the script ends it."""
    pace = training_curves.pace
    last_ns = run_ns + pace.finished_ns(pace.total_steps)
    if pace.halts_after_s is not None:
        last_ns = min(last_ns, run_ns + int(pace.halts_after_s * NS_PER_S))
    return last_ns if run.end_ns is None else min(last_ns, run.end_ns)


def duration(seconds: float) -> str:
    """Format ``22323`` as ``6:12:03`` and ``63`` as ``01:03``, as progress bars do."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"


def progress_bar(done: int, total: int, elapsed_s: float, *, unit: str = "it", extra: str = "") -> str:
    """Format a progress bar like tqdm: `` 46%|████▌     | 4120/9000 [6:12:03<7:10:44,  5.30s/it]``."""
    share = done / total if total else 0.0
    eighths = int(share * BAR_CELLS * 8)
    full, part = divmod(eighths, 8)
    bar = ("█" * full + (_EIGHTHS[part] if part else "")).ljust(BAR_CELLS)
    pace_s = elapsed_s / done if done else 0.0
    rate = f"{pace_s:5.2f}s/{unit}" if pace_s >= 1 else f"{1 / pace_s if pace_s else 0:5.2f}{unit}/s"
    left = duration(pace_s * (total - done))
    return f"{share * 100:3.0f}%|{bar}| {done}/{total} [{duration(elapsed_s)}<{left}, {rate}{extra}]"


def deploy_lines(run: RunFacts, scenario: str) -> list[LineSource]:
    """Return the first lines of every job: the demo notice and the start of its nodes."""
    gpus = f"{run.machine.gpu_count}x {run.machine.gpu_type}" if run.machine.gpu_count else "CPU only"
    mark = f"{DEMO_MARK} scripted run '{scenario}' of {run.title}: nothing is really computed"
    ready_s = 0.25 if run.run_ns is None else (run.run_ns - run.deploy_ns) / NS_PER_S
    image = "pytorch/pytorch:2.7.0-cuda12.8-cudnn9-runtime"
    sources: list[LineSource] = [fixed_lines("node-0", "INFO", run.deploy_ns, [(0.0, mark)])]
    for node in range(run.node_count):
        steps = [(0.02, f"Provisioning {run.machine.name} ({gpus})"), (0.1, f"Pulling image {image}")]
        if run.run_ns is not None:
            steps += [
                (0.6, "Image pulled"),
                (0.8, "Weights placed at /app/models from the node-local cache"),
                (0.97, f"Node {node} of {run.node_count} ready, leader is node-0"),
            ]
        late = 0.02 * uniform(run.seed, node)
        sources.append(
            fixed_lines(
                node_name(node),
                "INFO",
                run.deploy_ns,
                [(ready_s * (share + late), text) for share, text in steps],
            )
        )
    return sources


def closing_lines(run: RunFacts) -> list[LineSource]:
    """Return the last lines of a job that the script ends."""
    if run.run_ns is None or run.end_ns is None:
        return []
    if run.outcome == JobStatus.COMPLETED:
        return [
            fixed_lines(
                node_name(node),
                "INFO",
                run.end_ns,
                [(-2.0 + 0.1 * node, "start_commands exited with code 0")],
            )
            for node in range(run.node_count)
        ]
    if run.outcome == JobStatus.PREEMPTED:
        return [
            fixed_lines(
                node_name(node),
                "WARNING",
                run.end_ns,
                [
                    (-30.0, "Spot capacity is being reclaimed: 30 s to save"),
                    (-1.0, "Received SIGTERM, exiting"),
                ],
            )
            for node in range(run.node_count)
        ]
    return []


def stop_lines(run: RunFacts, stopped_ns: int) -> list[LineSource]:
    """Return the lines logged when a user stops the job at ``stopped_ns``.

    The caller clips the script's own lines at that moment.
    """
    return [
        fixed_lines(
            node_name(node), "WARNING", stopped_ns, [(0.05 + 0.01 * node, "Received SIGTERM, exiting")]
        )
        for node in range(run.node_count)
    ]
