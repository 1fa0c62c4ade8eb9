"""``bt-tui health``: Report problems of a job, also as the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from api_client.client import TrainingClient
from api_client.errors import RequestError
from api_client.models import WAITING_STATUSES, JobStatus
from tui.analysis.health.judge import judged
from tui.analysis.run.finding import SIGNS, TONES, finding_record, lost_usd
from tui.analysis.run.verdict import verdict
from tui.analysis.status import status_view
from tui.commands.support.options import (
    active_jobs,
    examples,
    format_option,
    given_recording,
    job_named,
    recorded_job_id,
    recording_option,
)
from tui.commands.support.output import (
    EXIT_CODE_OF_SEVERITY,
    EXIT_CODES_WORST_FIRST,
    JSON,
    TABLE,
    CommandOutput,
    ExitCode,
    explain,
    outcome_exit_code,
    worst_code,
)
from tui.commands.support.progress_line import ProgressLine
from tui.commands.support.remotes import run_settings
from tui.commands.support.run_reading import read_with_progress_line
from tui.commands.support.session import client_command
from tui.commands.support.tables import table_text
from tui.readers.session import listed_prices
from tui.readers.watcher import LoadedRun
from tui.settings.runs import RunSettings
from tui.tables.column import Column, Span, text_column
from tui.text.sanitize import sanitize
from tui.text.times import iso_time, local_time
from tui.text.units import age, counted, duration, percent

if TYPE_CHECKING:
    from tui.readers.recorded_index import FindingPeriod

COUNTED_VERDICTS = (*EXIT_CODE_OF_SEVERITY, "unknown", "checking", "healthy", "waiting", "finished")
"""Verdicts in the order in which they are printed and counted."""


@examples(
    "bt-tui health abc1234 || notify-send 'check the run'",
    "bt-tui health                        all running and queued jobs",
    "bt-tui health abc1234 -o json | jq -r '.[].findings[].text'",
)
@click.command()
@click.argument("job_ids", metavar="[JOB_ID]…", nargs=-1)
@click.option(
    "--timeline",
    is_flag=True,
    help="With --file: all findings over the whole run, each with its first and last appearance.",
)
@recording_option
@format_option(TABLE, JSON)
@client_command
async def health(
    client: TrainingClient, output: CommandOutput, job_ids: tuple[str, ...], timeline: bool
) -> ExitCode:
    """Check the health of jobs by their log, metrics, checkpoints and queue.

    Reports stalls, NaN, idle GPUs, slow or missing nodes, leaks, full disks, overdue checkpoints and errors.

    The exit code is 0 for healthy, 10 for warnings, 11 for critical findings (stalled, NaN …). An ended job
    returns the code of its outcome: 0 completed, 3 failed, 4 stopped, preempted or expired, 5 deploy failed.
    For several jobs the worst code counts, in this order: 11, 3, 5, 4, 10, 0. A run that has just started is
    reported as checking (code 0) until there is enough to judge. If nothing is found but the metrics could
    not be read, the code is 6 (refused), 8 or 1. A job without metrics so far is reported as unknown; its
    exit code is 0.

    Without JOB_ID, all running and queued jobs are checked and printed worst first. A count of each
    verdict goes to stderr.

    With --file and --timeline a recorded run is judged as by a dashboard that checks every 30 seconds; the
    exit code is 0.
    """
    settings = run_settings()
    if timeline:
        print_timeline(output, settings)
        return ExitCode.OK
    recorded_id = recorded_job_id()
    ids = dict.fromkeys(job_ids) if recorded_id is None else [recorded_id]
    jobs = [await job_named(client, job_id) for job_id in ids] if ids else await active_jobs(client)
    prices: dict[str, float] = {}
    with suppress(RequestError):  # findings are worth printing without their cost
        prices = await listed_prices(client)
    loaded_runs: list[LoadedRun] = []
    for number, job in enumerate(jobs, start=1):
        prefix = f"job {number} of {len(jobs)}: " if len(jobs) > 1 else ""
        loaded_run = await read_with_progress_line(
            client, job, output, with_health_metrics=True, prices=prices, prefix=prefix
        )
        loaded_runs.append(replace(loaded_run, run=judged(loaded_run.run, settings.rules)))
    if not job_ids:
        loaded_runs.sort(
            key=lambda loaded_run: (
                EXIT_CODES_WORST_FIRST.index(_exit_code(loaded_run)),
                COUNTED_VERDICTS.index(_counted_verdict(loaded_run)),
            )
        )
    text = "".join(_job_text(output, loaded_run) for loaded_run in loaded_runs)
    output.print_result([_health_record(loaded_run) for loaded_run in loaded_runs], text)
    output.print_message(_counts_text(list(map(_counted_verdict, loaded_runs))))
    return worst_code(map(_exit_code, loaded_runs))


def _counted_verdict(loaded_run: LoadedRun) -> str:
    """Return the verdict to count: a queued job without findings counts as waiting, not healthy."""
    verdict = _verdict(loaded_run)
    is_waiting = verdict == "healthy" and loaded_run.run.job.current_status in WAITING_STATUSES
    return "waiting" if is_waiting else verdict


def _counts_text(verdicts: Sequence[str]) -> str:
    if not verdicts:
        return "no running or queued jobs"
    counts = Counter(verdicts)
    counts_by_verdict = ", ".join(
        f"{counts[verdict_word]} {verdict_word}" for verdict_word in COUNTED_VERDICTS if counts[verdict_word]
    )
    return f"{counted(len(verdicts), 'job')}: {counts_by_verdict}"


def _exit_code(loaded_run: LoadedRun) -> ExitCode:
    if loaded_run.run.job.is_finished:
        return outcome_exit_code(loaded_run.run.job.current_status)
    unread = (explain(error)[1] for error in loaded_run.read_errors.values())
    return EXIT_CODE_OF_SEVERITY.get(_verdict(loaded_run)) or worst_code(unread)


def _verdict(loaded_run: LoadedRun) -> str:
    """Return the worst severity, or ``healthy``, ``finished``, ``checking``, or ``unknown`` without data."""
    run = loaded_run.run
    if run.job.is_finished:
        return "finished"
    severity = next((finding.severity for finding in run.findings), "")
    if severity in EXIT_CODE_OF_SEVERITY:
        return severity
    state = "healthy" if run.job.current_status in WAITING_STATUSES else verdict(run).state
    return state if state in ("healthy", "checking") else "unknown"


def _health_record(loaded_run: LoadedRun) -> dict[str, Any]:
    run, job = loaded_run.run, loaded_run.run.job
    return {
        "job_id": job.id,
        "name": job.name,
        "current_status": job.current_status,
        "verdict": _verdict(loaded_run),
        "log_gaps": loaded_run.gap_count,
        "unread": sorted(loaded_run.read_errors),
        "findings": [
            finding_record(finding)
            | {
                "text": finding.text,
                "short": finding.short,
                "lost_usd": round(lost_usd(finding, run.usd_per_hour, run.end_or_now), 2) or None,
            }
            for finding in run.findings
        ],
    }


def _job_text(output: CommandOutput, loaded_run: LoadedRun) -> str:
    job = loaded_run.run.job
    name = f"  {sanitize(job.name)}" if job.name else ""
    lines = [f"{output.paint(sanitize(job.id), 'strong')}{name}  {output.paint(*_verdict_cell(loaded_run))}"]
    for finding in loaded_run.run.findings:
        age_s = (loaded_run.run.server_now - finding.since).total_seconds() if finding.since else 0.0
        since = f" (for {age(age_s)})" if finding.since and not finding.kind.states_duration else ""
        kind = output.paint(f"{SIGNS[finding.severity]} {finding.kind}", TONES[finding.severity])
        lines.append(f"  {kind}  {sanitize(finding.sentence)}{since}")
    if job.is_finished and job.error_message:
        lines.append(f"  {sanitize(job.error_message)}")
    return "".join(f"{line}\n" for line in lines)


def _verdict_cell(loaded_run: LoadedRun) -> Span:
    job, verdict_word = loaded_run.run.job, _verdict(loaded_run)
    if verdict_word in EXIT_CODE_OF_SEVERITY:
        return f"{SIGNS[verdict_word]} {verdict_word}", TONES[verdict_word]
    if verdict_word == "finished" or (verdict_word == "healthy" and job.current_status != JobStatus.RUNNING):
        view = status_view(job.current_status)
        return f"{view.sign} {view.word}", view.tone
    if verdict_word == "healthy":
        return "✓ healthy", "good"
    reason = verdict(loaded_run.run).words
    return (f"… {reason}", "muted") if verdict_word == "checking" else (f"? unknown: {reason}", "caution")


def print_timeline(output: CommandOutput, settings: RunSettings) -> None:
    """Print the findings over time of the recording given by ``--file``. Raises UsageError without one."""
    from tui.readers.recorded_index import Timeline  # slow to import; only --timeline needs it

    recording = given_recording()
    if recording is None:
        raise click.UsageError("--timeline needs a recording: --file FILE")
    timeline = Timeline(recording, settings)
    duration_s = (recording.until - recording.begin).total_seconds() or 1.0
    with ProgressLine() as line:
        while not timeline.is_done:
            fraction = (timeline.at - recording.begin).total_seconds() / duration_s
            line.show(f"judging {recording.name}", note=percent(fraction))
            timeline.advance()
    periods = timeline.findings
    output.print_result(list(map(_period_record, periods)), table_text(_COLUMNS, periods, output))


def _period_record(period: FindingPeriod) -> dict[str, Any]:
    return finding_record(period.finding) | {
        "first_seen": iso_time(period.first_seen),
        "last_seen": iso_time(period.last_seen),
        "message": period.finding.text,
    }


_COLUMNS: tuple[Column[FindingPeriod], ...] = (
    text_column("FIRST SEEN", lambda period: local_time(period.first_seen)),
    text_column(
        "FOR",
        lambda period: duration((period.last_seen - period.first_seen).total_seconds()),
        right_aligned=True,
    ),
    text_column("SEVERITY", lambda period: period.finding.severity),
    text_column("FINDING", lambda period: str(period.finding.kind), "strong"),
    text_column("TEXT", lambda period: period.finding.text, shrinks=True),
)
