"""``bt-tui progress``: Show training progress from the log: step, loss, speed, ETA."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from api_client.client import TrainingClient
from api_client.models.logs import NS_PER_S
from api_client.recordings.reading import Recording, is_recording
from tui.analysis.checkpoints.facts import last_checkpoint
from tui.analysis.export import csv_lines, json_number
from tui.analysis.progress.metrics import curves_of
from tui.analysis.progress.snapshot import ProgressSnapshot, loss_trend
from tui.analysis.run.snapshot import seconds_left, seconds_left_range
from tui.analysis.series import latest
from tui.analysis.status import status_view
from tui.commands.jobs.curves import chosen_curves, points_of, print_curves
from tui.commands.jobs.progress_file import lines_of_file, lines_of_recording, show_lines
from tui.commands.support.exit_codes import ExitCode, known_names, not_in_job
from tui.commands.support.lookups import JobChoice
from tui.commands.support.options import (
    CSV,
    JSON,
    NDJSON,
    TABLE,
    CommandSettings,
    examples,
    format_option,
    job_options,
    remote_option,
)
from tui.commands.support.output import Output, ascii_json
from tui.commands.support.run_options import read_with_line, resolve_since, since_option
from tui.commands.support.session import run_on_remote, run_settings
from tui.commands.support.tables import Cell, print_facts
from tui.readers.run import LoadedRun
from tui.text.times import iso_time
from tui.text.units import age, count, counted, duration, number, percent, rate


def _document(reading: LoadedRun, with_series: bool) -> dict[str, Any]:
    document = facts(reading)
    if with_series:
        progress = reading.run.progress or ProgressSnapshot()
        document["series"] = {curve.name: points_of(curve, progress) for curve in curves_of(progress)}
    return document


def print_csv(output: Output, reading: LoadedRun, with_series: bool) -> None:
    if not with_series:
        flat = {name: value for name, value in facts(reading).items() if not isinstance(value, list | dict)}
        output.data(csv_lines([tuple(flat), tuple(flat.values())]))
        return
    progress = reading.run.progress or ProgressSnapshot()
    print_curves(output, curves_of(progress), progress, CSV)


def print_words(output: Output, reading: LoadedRun, with_series: bool) -> None:
    print_facts(output, _words(reading))
    if with_series:
        progress = reading.run.progress or ProgressSnapshot()
        output.data("\n")
        print_curves(output, curves_of(progress), progress, TABLE)


def facts(reading: LoadedRun) -> dict[str, Any]:
    """Return everything known from the log, under stable names."""
    run, progress = reading.run, reading.run.progress or ProgressSnapshot()
    left, between = seconds_left(progress, run.server_now), seconds_left_range(progress, run.server_now)
    if run.job.is_finished:
        left = between = None
    checkpoint = last_checkpoint(run)
    return {
        "job_id": run.job.id,
        "name": run.job.name,
        "current_status": run.job.current_status,
        "step": progress.step,
        "total_steps": progress.total_steps,
        "fraction": json_number(progress.fraction),
        "epoch": json_number(progress.epoch),
        "total_epochs": json_number(progress.total_epochs),
        "loss": json_number(progress.loss),
        "loss_trend": {"↓": "falling", "↑": "rising", "→": "steady"}.get(loss_trend(progress)),
        "eval_loss": json_number(progress.eval_loss),
        "learning_rate": json_number(progress.learning_rate),
        "grad_norm": json_number(progress.grad_norm),
        "tokens_per_s": json_number(progress.tokens_per_s),
        "samples_per_s": json_number(progress.samples_per_s),
        "steps_per_s": json_number(progress.rate_steps_per_s),
        "steps_per_s_overall": json_number(progress.rate_overall),
        "eta_s": json_number(left),
        "eta_low_s": json_number(between[0]) if between else None,
        "eta_high_s": json_number(between[1]) if between else None,
        "last_step_at": _stamp(progress.last_step_at_ns),
        "last_line_at": _stamp(progress.last_line_at_ns),
        "last_checkpoint": checkpoint.name if checkpoint else None,
        "last_checkpoint_at": iso_time(checkpoint.at.timestamp()) if checkpoint and checkpoint.at else None,
        "last_checkpoint_where": checkpoint.where if checkpoint else None,
        "error_lines": progress.errors.count,
        "log_lines": reading.line_count,
        "log_gaps": reading.gap_count,
        "stream": progress.stream,
        "metrics": {name: json_number(latest(series)) for name, series in progress.metrics.items()},
        "restarts": [iso_time(time) for time in progress.restarts],
        "checkpoints": [{"name": name, "time": _stamp(at_ns)} for name, at_ns in progress.saves],
        "streams": [
            {"stream": view.key, "node": view.replica, "rank": view.rank, "step": view.step}
            for view in progress.streams
        ],
    }


def _words(reading: LoadedRun) -> list[tuple[str, Cell]]:
    run, progress = reading.run, reading.run.progress or ProgressSnapshot()
    view = status_view(run.job.current_status)
    rows: list[tuple[str, Cell]] = [
        ("job", Cell(f"{run.job.name or run.job.id} ({run.job.id})", "strong")),
        ("status", Cell(f"{view.sign} {view.word}", view.tone)),
    ]
    if progress.step is not None:
        of = (
            f" of {count(progress.total_steps)}, {percent(progress.fraction)}" if progress.total_steps else ""
        )
        rows.append(("step", Cell(count(progress.step) + of, "strong")))
    if progress.epoch is not None:
        of = f" of {number(progress.total_epochs)}" if progress.total_epochs else ""
        rows.append(("epoch", Cell(number(progress.epoch) + of)))
    left, between = seconds_left(progress, run.server_now), seconds_left_range(progress, run.server_now)
    if left is not None and left >= 1 and not run.job.is_finished:
        span = f" ({duration(between[0])}–{duration(between[1])})" if between else ""
        rows.append(("ETA", Cell(duration(left) + span)))
    if progress.rate_steps_per_s is not None:
        overall = progress.rate_overall
        now = rate(progress.rate_steps_per_s, like=overall)
        rows.append(("speed", Cell(f"{now} now, {rate(overall)} over the run")))
    if progress.loss is not None:
        rows.append(("loss", Cell(f"{number(progress.loss)} {loss_trend(progress)}".rstrip(), "strong")))
    for title, value, unit in (
        ("eval loss", progress.eval_loss, ""),
        ("learning rate", progress.learning_rate, ""),
        ("grad norm", progress.grad_norm, ""),
        ("tokens", progress.tokens_per_s, " tok/s"),
        ("samples", progress.samples_per_s, " samples/s"),
    ):
        if value is not None:
            rows.append((title, Cell(number(value) + unit)))
    if progress.metrics:
        rows.append(("metrics", Cell(known_names(progress.metrics))))
    checkpoint = last_checkpoint(run)
    if checkpoint is not None:
        ago = f"{age((run.at - checkpoint.at).total_seconds())} ago" if checkpoint.at else ""
        parts = [part for part in (checkpoint.name, ago, checkpoint.remark) if part]
        rows.append(("last checkpoint", Cell(", ".join(parts))))
    if progress.restarts:
        rows.append(("restarts", Cell(count(len(progress.restarts)), "caution")))
    if progress.errors.count:
        newest = progress.errors.newest
        text = f": {newest.text}" if newest else ""
        rows.append(("error lines", Cell(count(progress.errors.count) + text, "bad")))
    if len(progress.streams) > 1:
        streams = counted(len(progress.streams), "stream")
        rows.append(("source", Cell(f"{progress.stream} (of {streams})", "muted")))
    return rows


def _stamp(at_ns: int | None) -> str | None:
    return None if at_ns is None else iso_time(at_ns / NS_PER_S)


@examples(
    "bt-tui progress abc1234",
    "bt-tui progress abc1234 -o json | jq .eta_s",
    "bt-tui progress abc1234 --since 6h           only the end of a long log",
    "bt-tui progress abc1234 --series -o csv > curves.csv",
    "bt-tui progress abc1234 --metric reward -o csv    one curve; 'bt-tui metrics --list' names them",
    "bt-tui progress --file train.log --each-line    what is read in each line of a saved log",
)
@click.command()
@click.argument("job", metavar="[JOB_ID]", required=False)
@job_options
@since_option("Read the log only from this time: 2h ago, or a time.")
@click.option(
    "--series", "with_series", is_flag=True, help="Include the curves: loss, learning rate, speed, metrics …"
)
@click.option(
    "--metric", "metrics", metavar="METRIC", multiple=True, help="Print only this curve of the log."
)
@click.option("--stream", metavar="NODE", help="Use this node's log lines if several nodes print progress.")
@click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path),
    help="Read a recording or a saved log instead of a job: plain text or 'logs -o ndjson'.",
)
@click.option(
    "--each-line",
    is_flag=True,
    help="With --file: show what is read in each line; lines are numbered from 0.",
)
@format_option(TABLE, JSON, CSV, NDJSON)
@remote_option
@click.pass_obj
def progress(
    settings: CommandSettings,
    choice: JobChoice,
    since: str | None,
    with_series: bool,
    metrics: tuple[str, ...],
    stream: str | None,
    path: Path | None,
    each_line: bool,
    output_format: str,
) -> ExitCode | None:
    """Show the training progress found in a job's log.

    Values missing from the log are null in JSON, empty in CSV and left out of the table. Non-finite numbers
    ("NaN", "Infinity", "-Infinity") are strings in JSON. With --series, JSON has an object "series" whose
    lists hold time, step and value, and CSV has one line per reading: series, time, step, value, unit.
    With --metric nothing else is printed: NDJSON has one object per reading, JSON an object of lists.
    """
    if each_line and path is None:
        raise click.UsageError("--each-line needs --file PATH")
    if each_line and metrics:
        raise click.UsageError("--each-line shows all metrics; omit --metric")
    if path is not None:
        context = click.get_current_context()
        recording = context.with_resource(Recording(path)) if is_recording(path) else None
        if recording is None or each_line:
            patterns = run_settings().patterns
            lines = lines_of_file(path) if recording is None else lines_of_recording(recording)
            return show_lines(
                settings.output, lines, output_format, each_line=each_line, metrics=metrics, patterns=patterns
            )
        settings = replace(settings, recording=recording)
        choice = JobChoice(recording.job.id, None)

    async def show(client: TrainingClient, output: Output) -> ExitCode:
        job = await choice.find(client)
        reading = await read_with_line(
            client, job, output, since=resolve_since(since, client.clock.now()), stream=stream
        )
        progress = reading.run.progress
        streams = [view.key for view in progress.streams] if progress is not None else []
        if stream is not None and streams and stream not in streams:
            raise not_in_job(job.id, "stream", stream, streams)
        if progress is None or (progress.step is None and progress.loss is None):
            output.remark("no training progress found in the log")
        if metrics:
            curves = chosen_curves(progress or ProgressSnapshot(), metrics, f"job {job.id}")
            print_curves(output, curves, progress or ProgressSnapshot(), output_format)
        elif output_format == JSON:
            output.json(_document(reading, with_series))
        elif output_format == NDJSON:
            output.data(ascii_json(_document(reading, with_series)) + "\n")
        elif output_format == CSV:
            print_csv(output, reading, with_series)
        else:
            print_words(output, reading, with_series)
        return ExitCode.OK

    return run_on_remote(settings, show)
