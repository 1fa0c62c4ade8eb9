"""Read a run, with a progress line while its log is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from api_client.client import TrainingClient
from api_client.models import Checkpoint, TrainingJob
from tui.commands.support.output import CommandOutput
from tui.commands.support.progress_line import ProgressLine, lines_note
from tui.commands.support.remotes import run_settings
from tui.readers.watcher import CheckedRun, LoadedRun, read_checked_run, read_run
from tui.text.units import counted


async def read_with_progress_line(
    client: TrainingClient,
    job: TrainingJob,
    output: CommandOutput,
    *,
    since: datetime | None = None,
    prices: Mapping[str, float] | None = None,
    with_health_metrics: bool = False,
    stream: str | None = None,
    prefix: str = "",
) -> LoadedRun:
    """Read a run with a progress line that starts with ``prefix``; print which data could not be read.

    Raises RequestError.
    """
    with ProgressLine() as line:
        loaded_run = await read_run(
            client,
            job,
            run_settings(),
            since=since,
            prices=prices,
            with_health_metrics=with_health_metrics,
            on_log_progress=_progress_callback(line, job, prefix),
            stream=stream,
        )
    if loaded_run.gap_count:
        output.print_message(
            f"{counted(loaded_run.gap_count, 'part')} of the log of {job.id} could not be read"
        )
    for data_name, error in loaded_run.read_errors.items():
        output.print_message(f"the {data_name} of {job.id} could not be read: {error}")
    return loaded_run


async def read_evidence(
    client: TrainingClient, job: TrainingJob, checkpoints: Sequence[Checkpoint]
) -> CheckedRun:
    with ProgressLine() as line:
        return await read_checked_run(
            client, job, checkpoints, run_settings(), on_log_progress=_progress_callback(line, job)
        )


def _progress_callback(
    line: ProgressLine, job: TrainingJob, prefix: str = ""
) -> Callable[[float | None, int], None]:
    label = f"{prefix}reading the log of {job.id}"
    line.show(label)
    return lambda fraction, count: line.show(label, note=lines_note(fraction, count))
