"""``bt-tui progress``: Show training progress from the log: step, loss, speed, ETA.

``--file`` reads a saved log or a recording: to find out why a trainer's lines are misread or ignored, or to
try a custom pattern. A saved log needs no job and no account.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from api_client.client import TrainingClient
from api_client.models import TrainingJob
from api_client.models.logs import NS_PER_S, LogLine
from api_client.recordings.reading import Recording, is_recording
from tui.analysis.checkpoints.facts import LastCheckpoint, last_checkpoint
from tui.analysis.export import csv_lines, json_number
from tui.analysis.health.judge import judged
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.lines.reader import Reader
from tui.analysis.progress.lines.reading import ParsedMetrics, counted_from_zero, merged
from tui.analysis.progress.metrics import curves_of
from tui.analysis.progress.points import MAX_POINTS
from tui.analysis.progress.snapshot import ProgressSnapshot, loss_trend
from tui.analysis.progress.stream import Stream
from tui.analysis.run.resumed import joined, predecessor
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.series import latest
from tui.analysis.status import status_view
from tui.commands.jobs.curves import chosen_curves, point_records, print_curves
from tui.commands.support.options import (
    CommandSettings,
    JobChoice,
    examples,
    format_option,
    job_argument_and_options,
    remote_option,
    resolve_since,
    since_option,
)
from tui.commands.support.output import (
    CSV,
    JSON,
    NDJSON,
    TABLE,
    CommandFailed,
    CommandOutput,
    ExitCode,
    known_names_text,
    not_in_job_error,
    refuse_if,
)
from tui.commands.support.progress_line import ProgressLine
from tui.commands.support.remotes import run_settings
from tui.commands.support.run_reading import read_with_progress_line
from tui.commands.support.session import run_on_remote
from tui.commands.support.tables import Cell, facts_text, table_text
from tui.readers.watcher import LoadedRun
from tui.tables.column import Column, text_column
from tui.text.times import iso_time
from tui.text.units import age, count, counted, duration, number, percent, rate


def _progress_document(loaded_run: LoadedRun) -> dict[str, Any]:
    """Return all values read from the log, by their documented JSON names."""
    run, progress = loaded_run.run, loaded_run.run.progress or ProgressSnapshot()
    low_s, left_s, high_s = run.left_s or (None, None, None)
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
        "eta_s": json_number(left_s),
        "eta_low_s": json_number(low_s),
        "eta_high_s": json_number(high_s),
        "last_step_at": _iso_time_of(progress.last_step_at_ns),
        "last_line_at": _iso_time_of(progress.last_line_at_ns),
        "last_checkpoint": checkpoint.name if checkpoint else None,
        "last_checkpoint_at": iso_time(checkpoint.at.timestamp()) if checkpoint and checkpoint.at else None,
        "last_checkpoint_where": checkpoint.where if checkpoint else None,
        "error_lines": progress.errors.count,
        "log_lines": loaded_run.line_count,
        "log_gaps": loaded_run.gap_count,
        "stream": progress.stream,
        "metrics": {name: json_number(latest(series)) for name, series in progress.metrics.items()},
        "restarts": [iso_time(time) for time in progress.restarts],
        "checkpoints": [{"name": name, "time": _iso_time_of(at_ns)} for name, at_ns in progress.saves],
        "streams": [
            {"stream": view.key, "node": view.replica, "rank": view.rank, "step": view.step}
            for view in progress.streams
        ],
    }


def _progress_facts(loaded_run: LoadedRun) -> list[tuple[str, Cell]]:
    """Return the values read from the log as texts for the terminal; unknown values have an empty text."""
    run, progress = loaded_run.run, loaded_run.run.progress or ProgressSnapshot()
    status = status_view(run.job.current_status)
    checkpoint = last_checkpoint(run)
    errors = counted(progress.errors.count, "line") if progress.errors.count else ""
    newest = progress.errors.newest
    streams = counted(len(progress.streams), "stream")
    facts = [
        ("job", f"{run.job.name or run.job.id} ({run.job.id})", "strong"),
        ("status", f"{status.sign} {status.word}", status.tone),
        ("step", _value_of_total(progress.step, progress.total_steps, count, progress.fraction), "strong"),
        ("epoch", _value_of_total(progress.epoch, progress.total_epochs, number), None),
        ("ETA", _eta_text(run), None),
        ("speed", _speed_text(progress), None),
        ("loss", f"{_value_or_empty(progress.loss, number)} {loss_trend(progress)}".strip(), "strong"),
        ("eval loss", _value_or_empty(progress.eval_loss, number), None),
        ("learning rate", _value_or_empty(progress.learning_rate, number), None),
        ("grad norm", _value_or_empty(progress.grad_norm, number), None),
        ("tokens", _value_or_empty(progress.tokens_per_s, number, " tok/s"), None),
        ("samples", _value_or_empty(progress.samples_per_s, number, " samples/s"), None),
        ("metrics", known_names_text(progress.metrics) if progress.metrics else "", None),
        ("last checkpoint", _checkpoint_text(checkpoint, run.at) if checkpoint is not None else "", None),
        ("restarts", count(len(progress.restarts)) if progress.restarts else "", "caution"),
        ("error lines", f"{errors}: {newest.text}" if newest else errors, "bad"),
        ("source", f"{progress.stream} (of {streams})" if len(progress.streams) > 1 else "", "muted"),
    ]
    return [(title, Cell(text, tone)) for title, text, tone in facts]


def _value_or_empty(value: float | None, format_value: Callable[[float | None], str], unit: str = "") -> str:
    return "" if value is None else format_value(value) + unit


def _value_of_total(
    value: float | None,
    total: float | None,
    format_value: Callable[[float | None], str],
    fraction: float | None = None,
) -> str:
    fraction_text = "" if fraction is None else f", {percent(fraction)}"
    return _value_or_empty(value, format_value, f" of {format_value(total)}{fraction_text}" if total else "")


def _eta_text(run: RunSnapshot) -> str:
    low_s, left_s, high_s = run.left_s or (0.0, 0.0, 0.0)
    if left_s < 1:
        return ""
    return duration(left_s) + (f" ({duration(low_s)}–{duration(high_s)})" if low_s < high_s else "")


def _speed_text(progress: ProgressSnapshot) -> str:
    if progress.rate_steps_per_s is None:
        return ""
    overall = progress.rate_overall
    return f"{rate(progress.rate_steps_per_s, like=overall)} now, {rate(overall)} over the run"


def _checkpoint_text(checkpoint: LastCheckpoint, now: datetime) -> str:
    ago = f"{age((now - checkpoint.at).total_seconds())} ago" if checkpoint.at else ""
    return ", ".join(filter(None, (checkpoint.name, ago, checkpoint.remark)))


def _iso_time_of(at_ns: int | None) -> str | None:
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
@job_argument_and_options
@since_option("Read the log only from this time: 2h ago, or a time.")
@click.option(
    "--series", "with_series", is_flag=True, help="Include the curves: loss, learning rate, speed, metrics …"
)
@click.option(
    "--metric", "metrics", metavar="METRIC", multiple=True, help="Print only this curve of the log."
)
@click.option(
    "--with-earlier",
    is_flag=True,
    help="Begin the curves with those of the runs that this run resumed: llama for llama-r2.",
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
    help="With --file: show the values read in each line; lines are numbered from 0.",
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
    with_earlier: bool,
) -> ExitCode | None:
    """Show the training progress found in a job's log.

    Values missing from the log are null in JSON, empty in CSV and left out of the table. Non-finite numbers
    ("NaN", "Infinity", "-Infinity") are strings in JSON. With --series, JSON has an object "series" whose
    lists hold time, step and value, and CSV has one line per reading: series, time, step, value, unit.
    With --metric nothing else is printed: NDJSON has one object per reading, JSON an object of lists.
    """
    refuse_if(path is not None and choice != JobChoice(None, None), "give a job or --file, not both")
    refuse_if(each_line and path is None, "--each-line needs --file PATH")
    refuse_if(each_line and metrics, "--each-line shows all metrics; omit --metric")
    if path is not None:
        context = click.get_current_context()
        recording = context.with_resource(Recording(path)) if is_recording(path) else None
        if recording is None or each_line:
            lines = lines_of_file(path) if recording is None else lines_of_recording(recording)
            show_lines(settings.output, lines, each_line=each_line, metrics=metrics)
            return None
        settings = replace(settings, recording=recording)
        choice = JobChoice(recording.job.id, None)

    async def show(client: TrainingClient, output: CommandOutput) -> None:
        job = await choice.find(client)
        loaded_run = await read_with_progress_line(
            client,
            job,
            output,
            since=resolve_since(since, client.clock.now()),
            with_health_metrics=True,
            stream=stream,
        )
        loaded_run = replace(
            loaded_run, run=judged(loaded_run.run, run_settings().rules)
        )  # a stuck run has no ETA
        progress = loaded_run.run.progress or ProgressSnapshot()
        streams = [view.key for view in progress.streams]
        if stream is not None and streams and stream not in streams:
            raise not_in_job_error(job.id, "stream", stream, streams)
        if progress.step is None and progress.loss is None:
            output.print_message("no training progress found in the log")
        if with_earlier:
            progress = await _with_earlier_runs(client, output, job, progress)
        curves = curves_of(progress)
        if metrics:
            print_curves(output, chosen_curves(progress, metrics, f"job {job.id}"), progress)
        elif with_series and output.format == CSV:
            print_curves(output, curves, progress)
        else:
            document = _progress_document(loaded_run)
            if with_series:
                document["series"] = {curve.name: point_records(curve, progress) for curve in curves}
            print_document(output, document, _progress_facts(loaded_run))
            if with_series and output.format == TABLE:
                output.write_text("\n")
                print_curves(output, curves, progress)

    return run_on_remote(settings, show)


async def _with_earlier_runs(
    client: TrainingClient, output: CommandOutput, job: TrainingJob, progress: ProgressSnapshot
) -> ProgressSnapshot:
    """Return the progress with its curves extended by those of the earlier runs that this run resumed."""
    jobs = await client.jobs.list(job.project_id)
    while (earlier_job := predecessor(job, jobs)) is not None:
        reading = await read_with_progress_line(client, earlier_job, output)
        progress = joined(reading.run.progress or ProgressSnapshot(), progress)
        job = earlier_job
    return progress


_INTERNAL_FIELDS = ("from_bar", "is_epoch_0", "loss_name", "step_name", "metrics")
_LINE_FIELDS = tuple(name for name in ParsedMetrics._fields if name not in _INTERNAL_FIELDS)
_SUMMARY_FIELDS = (
    "step",
    "total_steps",
    "epoch",
    "total_epochs",
    "loss",
    "eval_loss",
    "learning_rate",
    "grad_norm",
    "tokens_per_s",
    "samples_per_s",
)
_LINES_PER_UPDATE = 1_000

Record = dict[str, Any]


def print_document(output: CommandOutput, document: Record, facts: Sequence[tuple[str, Cell]]) -> None:
    """Print values by name: as JSON, as CSV without lists and objects, or as facts."""
    scalars = {name: value for name, value in document.items() if not isinstance(value, list | dict)}
    output.print_result(
        document, facts_text(facts, output), csv_lines([tuple(scalars), tuple(scalars.values())])
    )


def lines_of_file(path: Path) -> list[LogLine]:
    """Read a saved log: plain text, or the output of ``logs -o ndjson``. Raises CommandFailed."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return [_log_line(number, line.rstrip("\n")) for number, line in enumerate(file)]
    except OSError as error:
        code = ExitCode.NOT_FOUND if isinstance(error, FileNotFoundError) else ExitCode.USAGE
        raise CommandFailed(f"can't read {path}: {error.strerror}", code) from error


def _log_line(line_number: int, text: str) -> LogLine:
    record: Any = None
    if text.startswith("{") and '"message"' in text:
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            record = None
    if not isinstance(record, dict) or not isinstance(record.get("message"), str):
        return LogLine(line_number * NS_PER_S, text, None, None)
    stamp, replica = str(record.get("timestamp")), record.get("replica")
    # epoch times in nanoseconds have 19 digits up to the year 2286
    is_time = stamp.isascii() and stamp.isdigit() and len(stamp) <= 19
    at_ns = int(stamp) if is_time else line_number * NS_PER_S
    return LogLine(at_ns, record["message"], replica if isinstance(replica, str) else None, None)


def lines_of_recording(recording: Recording) -> list[LogLine]:
    """Return the lines of a recording, in the order in which they arrived."""
    return [entry for entry in recording.log.entries() if isinstance(entry, LogLine)]


def show_lines(
    output: CommandOutput, lines: Sequence[LogLine], *, each_line: bool, metrics: Sequence[str]
) -> None:
    """Print what the reader finds in log lines: for each line, or in total."""
    patterns = run_settings().patterns
    if each_line:
        _print_each_line(output, lines, _parse_lines(lines, Reader(patterns)))
        return
    fold = ProgressFold(patterns=patterns)
    fold.add(_with_progress_line(lines))
    progress = fold.snapshot()
    if metrics:
        print_curves(output, chosen_curves(progress, metrics, "the log"), progress)
        return
    document = _summary(progress, len(lines), fold.lines_read)
    facts = [(name.replace("_", " "), Cell(_value_text(value))) for name, value in document.items()]
    print_document(output, document, facts)


def _parse_lines(lines: Sequence[LogLine], reader: Reader) -> dict[int, Record]:
    """Return the values read in each line, by line number, including values that later lines confirmed."""
    metrics_by_line: dict[int, ParsedMetrics] = {}
    index_of_time: dict[int, int] = {}
    streams: defaultdict[str, Stream] = defaultdict(lambda: Stream(MAX_POINTS))
    at_ns = 0
    for index, line in enumerate(_with_progress_line(lines)):
        at_ns = max(line.timestamp_ns, at_ns + 1)  # distinct, because times identify lines below
        index_of_time[at_ns] = index
        for earlier_ns, replica, reading in reader.read(line.message, line.replica or "", at_ns):
            earlier_index = index_of_time[earlier_ns]
            metrics_by_line[earlier_index] = (
                merged(metrics_by_line[earlier_index], reading)
                if earlier_index in metrics_by_line
                else reading
            )
            streams[replica].add(earlier_ns / NS_PER_S, reading)
    times = {index: at_ns / NS_PER_S for at_ns, index in index_of_time.items()}
    records: dict[int, Record] = {}
    for index in sorted(metrics_by_line):
        stream = streams[lines[index].replica or ""]
        reading = (
            counted_from_zero(metrics_by_line[index]) if stream.counts_from_zero else metrics_by_line[index]
        )
        if not stream.counts_other_work(times[index], reading):
            records[index] = _line_record(index, reading)
    return records


def _with_progress_line(lines: Sequence[LogLine]) -> Iterator[LogLine]:
    """Yield the lines; on a terminal, show which percentage has been read."""
    with ProgressLine() as progress:
        for start in range(0, len(lines), _LINES_PER_UPDATE):
            progress.show("reading", note=percent(start / len(lines)))
            yield from lines[start : start + _LINES_PER_UPDATE]


def _line_record(line_number: int, reading: ParsedMetrics) -> Record:
    values = {"line": line_number, **{name: getattr(reading, name) for name in _LINE_FIELDS}}
    values["metrics"] = {name: json_number(value) for name, value in reading.metrics} or None
    return {name: _json_value(value) for name, value in values.items() if value is not None}


def _print_each_line(output: CommandOutput, lines: Sequence[LogLine], records: Mapping[int, Record]) -> None:
    field_names = ("line", *_LINE_FIELDS)
    rows = (tuple(record.get(name) for name in field_names) for record in records.values())
    columns: tuple[Column[int], ...] = (
        text_column("LINE", str, right_aligned=True),
        Column("READ", "READ", lambda line: [_parsed_values_cell(records.get(line))], shrinks=True),
        text_column("TEXT", lambda line: lines[line].message, "muted", shrinks=True),
    )
    output.print_result(
        list(records.values()),
        lambda: table_text(columns, range(len(lines)), output),
        lambda: csv_lines([field_names, *rows]),
    )


def _parsed_values_cell(record: Record | None) -> tuple[str, str]:
    if record is None:
        return "–", "muted"
    values = {**record.get("metrics", {}), **record}
    values_text = (
        f"{name} {_value_text(value)}" for name, value in values.items() if name not in ("line", "metrics")
    )
    return ", ".join(values_text), "strong"


def _summary(progress: ProgressSnapshot, line_count: int, parsed_line_count: int) -> Record:
    return {
        "log_lines": line_count,
        "lines_read": parsed_line_count,
        **{name: _json_value(getattr(progress, name)) for name in _SUMMARY_FIELDS},
        "losses_read": len(progress.loss_series),
        "metrics": list(progress.metrics),
        "checkpoints": [name for name, _ in progress.saves],
    }


def _json_value(value: Any) -> Any:
    return json_number(value) if isinstance(value, float) else value


def _value_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    if isinstance(value, float):
        return number(value)
    return count(value) if isinstance(value, int) else str(value or "")
