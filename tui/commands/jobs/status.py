"""``bt-tui status``: Print one line for tmux or a prompt."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from api_client import LogLine, TrainingClient
from api_client.models import JobStatus, TrainingJob
from tui.analysis.run.finding import attention, by_severity
from tui.analysis.status import status_view
from tui.commands.support.options import active_jobs, examples, format_option, job_named
from tui.commands.support.output import JSON, TEXT, CommandFailed, ExitCode, Output
from tui.commands.support.remotes import run_settings
from tui.commands.support.session import client_command
from tui.readers.kept_health import KeptHealth, kept_health
from tui.text.sanitize import sanitize
from tui.text.units import age, count, duration, number, percent

REFRESH_S = 300.0
"""Reading the logs of a big fleet takes seconds of CPU time, and tmux asks every 15 s."""

if TYPE_CHECKING:
    from tui.analysis.progress.snapshot import ProgressSnapshot


@examples(
    "set -g status-right '#(bt-tui status --health)'        in tmux.conf",
    "bt-tui status                                          at once, for a prompt",
    "bt-tui status abc1234",
)
@click.command()
@click.argument("job_id", metavar="[JOB_ID]", required=False)
@click.option(
    "--health",
    "checks",
    is_flag=True,
    help="Read the logs of running jobs, which takes seconds, unless that was done less than 5 minutes ago.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, 60),
    help="Give up after this many seconds (default: 2); with --health, print what is known (default: 30).",
)
@format_option(TEXT, JSON)
@client_command
async def status(
    client: TrainingClient,
    output: Output,
    job_id: str | None,
    checks: bool,
    timeout: float | None,
) -> None:
    """Print one line: how many jobs need attention, run and wait, or the status and progress of one job.

    The progress is that of the newest page of the log. Which jobs need attention is what the dashboard,
    "bt-tui top" or --health has found in the last quarter of an hour; problems of one job are listed by
    "bt-tui health".
    """
    try:
        async with asyncio.timeout(timeout or 2.0):
            if job_id is not None:
                record, text = await _of_job(client, await job_named(client, job_id))
            else:
                jobs = await active_jobs(client)
                record, text = _of_jobs(jobs)
    except TimeoutError:
        raise CommandFailed(f"no answer within {timeout or 2.0:g} s", ExitCode.UNREACHABLE) from None
    if job_id is None:
        running = {job.id for job in jobs if job.current_status == JobStatus.RUNNING}
        now_s = client.clock.now().timestamp()
        kept = kept_health(client.remote.api_url, running, now_s)
        if checks:
            kept |= await _read_health(client, output, jobs, kept, timeout or 30.0)
        words = attention(by_severity(health.sign for health in kept.values()))
        if kept and kept.keys() == running:
            words = words or "no problems"
        if words:
            age_s = max(now_s - health.at_s for health in kept.values())
            record["alarmed"] = [job_id for job_id, health in kept.items() if health.sign]
            text = f"{words}{f' ({age(age_s)} ago)' if age_s >= 60 else ''} · {text}"
    output.answer(record, f"{escaped_for_tmux(text, os.environ)}\n")


def escaped_for_tmux(text: str, environ: Mapping[str, str]) -> str:
    """Double each ``#`` in a status line of tmux, which would expand formats in the output of ``#(…)``.

    Only there does ``TMUX`` end with session -1; in a pane, as in a shell prompt, it has a real session.
    """
    is_in_status_line = environ.get("TMUX", "").endswith(",-1")
    return text.replace("#", "##") if is_in_status_line else text


async def _read_health(
    client: TrainingClient,
    output: Output,
    jobs: list[TrainingJob],
    kept: Mapping[str, KeptHealth],
    timeout_s: float,
) -> dict[str, KeptHealth]:
    """Return what needs attention of the running jobs that were not read just now, if known in time."""
    from tui.analysis.fleet.snapshot import previewed_jobs  # not for a prompt, which is to be fast
    from tui.commands.jobs.top import read_fleet

    since_s = client.clock.now().timestamp() - REFRESH_S
    running = previewed_jobs(job for job in jobs if job.current_status == JobStatus.RUNNING)
    due = {job.id for job in running if job.id not in kept or kept[job.id].at_s <= since_s}
    if not due:
        return {}
    fleet = await read_fleet(client, output, due, timeout_s)
    checked = [row for row in fleet.jobs if row.id in due and (row.alarmed or row.preview.log_read)]
    return {row.id: KeptHealth(row.preview.at_s, row.sign if row.alarmed else "") for row in checked}


def _of_jobs(jobs: list[TrainingJob]) -> tuple[dict[str, Any], str]:
    counts = Counter(job.current_status for job in jobs)
    views = sorted(
        ((status_view(status), count) for status, count in counts.items()),
        key=lambda counted_view: counted_view[0].order,
    )
    text = " ".join(f"{view.sign} {count} {view.word}" for view, count in views)
    return {"active": counts.total(), "statuses": dict(counts)}, text or "no active jobs"


async def _of_job(client: TrainingClient, job: TrainingJob) -> tuple[dict[str, Any], str]:
    view = status_view(job.current_status)
    name = f"{view.sign} {sanitize(job.name or job.id)}"
    record: dict[str, Any] = {"job_id": job.id, "name": job.name, "current_status": job.current_status}
    if job.current_status != JobStatus.RUNNING:
        return record, f"{name} {view.word}"
    from tui.analysis.run.snapshot import seconds_left  # a third of the start of the line for all jobs

    progress = await _newest_progress(client, job)
    left_s = seconds_left(progress, datetime.now(UTC))
    record |= {
        "step": progress.step,
        "total_steps": progress.total_steps,
        "loss": progress.loss,
        "eta_seconds": left_s,
    }
    step = f"step {count(progress.step)}" if progress.fraction is None else percent(progress.fraction)
    parts = [
        step if progress.step is not None else "",
        f"loss {number(progress.loss)}" if progress.loss is not None else "",
        f"{duration(left_s)} left" if left_s is not None and left_s >= 1 else "",
    ]
    return record, f"{name} {' '.join(filter(None, parts)) or view.word}"


async def _newest_progress(client: TrainingClient, job: TrainingJob) -> ProgressSnapshot:
    from tui.analysis.progress.fold import ProgressFold

    fold = ProgressFold(patterns=run_settings().patterns)
    start = job.earliest_time(datetime.now(UTC))
    history = client.logs.history(job.project_id, job.id, start=start, newest_first=True)
    async with aclosing(history) as batches:
        async for batch in batches:
            fold.add([entry for entry in batch.entries if isinstance(entry, LogLine)])
            break
    return fold.snapshot()
