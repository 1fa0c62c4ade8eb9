"""``bt-tui status``: Print one line for tmux or a prompt."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from api_client import TrainingClient
from api_client.models import JobStatus, TrainingJob
from tui.analysis.export import json_number
from tui.analysis.run.finding import attention, by_severity, finding_record, is_stuck
from tui.analysis.status import status_view
from tui.commands.support.options import active_jobs, examples, format_option, job_named
from tui.commands.support.output import JSON, TEXT, CommandFailed, CommandOutput, ExitCode
from tui.commands.support.remotes import run_settings
from tui.commands.support.session import client_command
from tui.readers.stored_health import StoredHealth, stored_health
from tui.text.sanitize import sanitize
from tui.text.units import age, count, duration, number, percent

REFRESH_S = 300.0
"""Age in seconds at which the stored health of a run is outdated and is read again.

Reading the logs of a big fleet takes seconds of CPU time, and tmux runs the command every 15 s.
"""

if TYPE_CHECKING:
    from tui.analysis.run.snapshot import RunSnapshot


@examples(
    "set -g status-right '#(bt-tui status --health)'        in tmux.conf",
    "bt-tui status                                          at once, for a prompt",
    "bt-tui status abc1234",
)
@click.command()
@click.argument("job_id", metavar="[JOB_ID]", required=False)
@click.option(
    "--health",
    "with_health",
    is_flag=True,
    help="Read the logs of running jobs (takes seconds), unless they were read less than 5 minutes ago.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, 60),
    help="Give up after this many seconds (default: 2); with --health, print what was read (default: 30).",
)
@format_option(TEXT, JSON)
@client_command
async def status(
    client: TrainingClient,
    output: CommandOutput,
    job_id: str | None,
    with_health: bool,
    timeout: float | None,
) -> None:
    """Print one line: how many jobs need attention, run and wait, or the status and progress of one job.

    For one job, progress and the worst problem are read from the newest page of the log, or from the whole
    log with --health or if the run may have stalled; "bt-tui health" lists all problems. Without JOB_ID, the
    jobs that need attention are those that the dashboard, "bt-tui top" or --health found in the last 15
    minutes.
    """
    limit_s = timeout or (30.0 if with_health and job_id is not None else 2.0)
    deadline_s = asyncio.get_running_loop().time() + limit_s
    try:
        async with asyncio.timeout_at(deadline_s):
            if job_id is None:
                jobs = await active_jobs(client)
                record, text = _fleet_line(jobs)
            else:
                job = await job_named(client, job_id)
        if job_id is not None:
            record, text = await _job_line(client, job, deadline_s, reads_whole_log=with_health)
    except TimeoutError:
        raise CommandFailed(f"no response within {limit_s:g} s", ExitCode.UNREACHABLE) from None
    if job_id is None:
        running_ids = {job.id for job in jobs if job.current_status == JobStatus.RUNNING}
        now_s = client.clock.now().timestamp()
        recent_health = stored_health(client.remote.api_url, running_ids, now_s)
        if with_health:
            recent_health |= await _read_health(client, output, jobs, recent_health, timeout or 30.0)
        attention_text = attention(by_severity(health.sign for health in recent_health.values()))
        if recent_health and recent_health.keys() == running_ids:
            attention_text = attention_text or "no problems"
        if attention_text:
            age_s = max(now_s - health.at_s for health in recent_health.values())
            record["alarmed"] = [job_id for job_id, health in recent_health.items() if health.sign]
            text = f"{attention_text}{f' ({age(age_s)} ago)' if age_s >= 60 else ''} · {text}"
    output.print_result(record, f"{escaped_for_tmux(text, os.environ)}\n")


def escaped_for_tmux(text: str, environ: Mapping[str, str]) -> str:
    """Double each ``#`` in a status line of tmux, which would expand formats in the output of ``#(…)``.

    In a status line, ``TMUX`` ends with session -1; in a pane, as for a shell prompt, with a real session.
    """
    is_in_status_line = environ.get("TMUX", "").endswith(",-1")
    return text.replace("#", "##") if is_in_status_line else text


async def _read_health(
    client: TrainingClient,
    output: CommandOutput,
    jobs: list[TrainingJob],
    recent_health: Mapping[str, StoredHealth],
    timeout_s: float,
) -> dict[str, StoredHealth]:
    """Return the health of running jobs whose stored health is missing or old; omit jobs not read in time."""
    from tui.analysis.fleet.snapshot import previewed_jobs  # slow to import; a prompt must be fast
    from tui.commands.jobs.top import read_fleet

    since_s = client.clock.now().timestamp() - REFRESH_S
    running_jobs = previewed_jobs(job for job in jobs if job.current_status == JobStatus.RUNNING)
    outdated_ids = {
        job.id for job in running_jobs if job.id not in recent_health or recent_health[job.id].at_s <= since_s
    }
    if not outdated_ids:
        return {}
    fleet = await read_fleet(client, output, outdated_ids, timeout_s)
    rows = [row for row in fleet.jobs if row.id in outdated_ids and (row.alarmed or row.preview.log_read)]
    return {row.id: StoredHealth(row.preview.at_s, row.sign if row.alarmed else "") for row in rows}


def _fleet_line(jobs: list[TrainingJob]) -> tuple[dict[str, Any], str]:
    counts = Counter(job.current_status for job in jobs)
    views = sorted(
        ((status_view(status), count) for status, count in counts.items()),
        key=lambda counted_view: counted_view[0].order,
    )
    text = " ".join(f"{view.sign} {count} {view.word}" for view, count in views)
    return {"active": counts.total(), "statuses": dict(counts)}, text or "no active jobs"


async def _job_line(
    client: TrainingClient, job: TrainingJob, deadline_s: float, *, reads_whole_log: bool
) -> tuple[dict[str, Any], str]:
    view = status_view(job.current_status)
    name = f"{view.sign} {sanitize(job.name or job.id)}"
    record: dict[str, Any] = {"job_id": job.id, "name": job.name, "current_status": job.current_status}
    if job.current_status != JobStatus.RUNNING:
        return record, f"{name} {view.word}"
    from tui.analysis.fleet.snapshot import (  # takes a third of the time that the line for all jobs takes
        JobPreview,
        job_row,
    )
    from tui.analysis.progress.snapshot import ProgressSnapshot

    run, left_s = await _read_run(client, job, deadline_s, reads_whole_log=reads_whole_log)
    progress = run.progress or ProgressSnapshot()
    record |= {
        "step": progress.step,
        "total_steps": progress.total_steps,
        "loss": json_number(progress.loss),
        "eta_seconds": left_s,
        "findings": [finding_record(finding) | {"short": finding.short} for finding in run.findings],
    }
    row = job_row(job, JobPreview(progress, findings=run.findings), run.server_now)
    position_text = (
        f"step {count(progress.step)}" if progress.fraction is None else percent(progress.fraction)
    )
    progress_texts = [
        f"{row.note} ·" if row.alarmed else "",
        position_text if progress.step is not None else "",
        f"loss {number(progress.loss)}" if progress.loss is not None else "",
        f"{duration(left_s)} left" if left_s is not None and left_s >= 1 else "",
    ]
    return record, f"{row.sign} {row.name} {' '.join(filter(None, progress_texts)) or view.word}"


async def _read_run(
    client: TrainingClient, job: TrainingJob, deadline_s: float, *, reads_whole_log: bool
) -> tuple[RunSnapshot, float | None]:
    """Return the run, read from the newest page of its log or from the whole log, and the seconds left.

    The whole log is read with ``reads_whole_log``, or if the run may be stuck. Data that is not read in time
    is left out. Raises TimeoutError if not even the newest page of the log is read.
    """
    from tui.analysis.health.judge import judged
    from tui.readers.watcher import RunWatcher

    watcher = RunWatcher(client, job, run_settings(), max_points=2000)

    def judge_run() -> RunSnapshot:
        return judged(replace(watcher.snapshot, log_read=True), watcher.settings.rules)

    async with asyncio.timeout_at(deadline_s):
        await watcher.log.read_newest()
    watcher.update()
    with suppress(TimeoutError):
        async with asyncio.timeout_at(deadline_s):
            await watcher.poll(watcher.log.read_newest)
            await watcher.check()
            if reads_whole_log or is_stuck(judge_run().findings):
                await watcher.poll(watcher.log.read_newest_then_older)
                await watcher.check()
    left_s = judge_run().left_s  # None for a run that may be stuck
    return watcher.snapshot, left_s[1] if left_s is not None else None
