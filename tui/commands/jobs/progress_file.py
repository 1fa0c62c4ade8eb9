"""Show what the progress reader finds in a saved log or a recording: ``bt-tui progress --file``.

For people whose trainer is read wrongly or not at all, and for trying a pattern of one's own. Needs no job
and no account.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from api_client.models.logs import NS_PER_S, LogLine
from api_client.recordings.reading import Recording
from tui.analysis.export import csv_lines, json_number
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.lines.custom import ProgressPattern
from tui.analysis.progress.lines.reader import Reader
from tui.analysis.progress.lines.reading import ParsedMetrics, merged
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.commands.jobs.curves import chosen_curves, print_curves
from tui.commands.support.exit_codes import CommandFailed, ExitCode
from tui.commands.support.options import CSV, JSON, NDJSON
from tui.commands.support.output import Output, ascii_json
from tui.commands.support.progress_line import ProgressLine
from tui.commands.support.tables import Cell, print_facts, table_of
from tui.tables.column import Column, Span, text_column
from tui.text.units import count, number, percent

_FIELDS = tuple(name for name in ParsedMetrics._fields if name not in ("from_bar", "loss_name", "metrics"))
_SUMMARY = (
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


_LINES_AT_ONCE = 1_000
_NS_DIGITS = 19  # of a time in nanoseconds, up to the year 2286


class _Read(NamedTuple):
    number: int
    line: LogLine
    reading: ParsedMetrics | None


def lines_of_file(path: Path) -> list[LogLine]:
    """Read a file of log lines, plain or as ``logs -o ndjson`` prints them. Raises CommandFailed."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return list(_lines(file))
    except OSError as error:
        raise CommandFailed(f"can't read {path}: {error.strerror}", ExitCode.USAGE) from error


def lines_of_recording(recording: Recording) -> list[LogLine]:
    """Return the lines of a recording, in the order in which they arrived."""
    return [line for entry in recording.log.entries() if isinstance(line := entry.logged, LogLine)]


def show_lines(
    output: Output,
    lines: Sequence[LogLine],
    output_format: str,
    *,
    each_line: bool,
    metrics: Sequence[str] = (),
    patterns: Sequence[ProgressPattern],
) -> ExitCode:
    """Print what is read in log lines: in each of them, or in total."""
    if each_line:
        reads = _reads(lines, patterns)
        _print_each_line(output, reads, output_format)
        return ExitCode.OK
    fold = ProgressFold(patterns=patterns)
    fold.add(_shown_while_read(lines))
    if metrics:
        progress = fold.snapshot()
        print_curves(output, chosen_curves(progress, metrics, "the log"), progress, output_format)
        return ExitCode.OK
    document = _summary(fold.snapshot(), len(lines), fold.lines_read)
    if output_format in (JSON, NDJSON):
        output.json(document)
    elif output_format == CSV:
        flat = {name: value for name, value in document.items() if not isinstance(value, list)}
        output.data(csv_lines([tuple(flat), tuple(flat.values())]))
    else:
        facts = [
            (name.replace("_", " "), Cell(_text(value)))
            for name, value in document.items()
            if value is not None
        ]
        print_facts(output, facts)
    return ExitCode.OK


def _reads(lines: Sequence[LogLine], patterns: Sequence[ProgressPattern]) -> list[_Read]:
    """Return what each line came to mean in the end: what is believed later is taken over."""
    reader = Reader(patterns)
    readings: dict[int, ParsedMetrics] = {}
    for index, line in enumerate(_shown_while_read(lines)):
        for at, _, reading in reader.read(line.message, line.replica or "", index):
            readings[at] = merged(readings[at], reading) if at in readings else reading
    return [_Read(index, line, readings.get(index)) for index, line in enumerate(lines)]


def _shown_while_read(lines: Sequence[LogLine]) -> Iterator[LogLine]:
    """Yield the lines, and show on a terminal how many have been read."""
    with ProgressLine() as progress:
        for start in range(0, len(lines), _LINES_AT_ONCE):
            progress.show("reading", 0, 0, percent(start / len(lines)))
            yield from lines[start : start + _LINES_AT_ONCE]


def _lines(file: Iterator[str]) -> Iterator[LogLine]:
    for line_number, line in enumerate(file):
        text = line.rstrip("\n")
        record: Any = None
        if text.startswith("{") and '"message"' in text:
            try:
                record = json.loads(text)
            except (ValueError, RecursionError):
                record = None
        if isinstance(record, dict) and isinstance(record.get("message"), str) and "timestamp" in record:
            stamp, replica = str(record["timestamp"]), record.get("replica")
            is_time = stamp.isascii() and stamp.isdigit() and len(stamp) <= _NS_DIGITS
            at_ns = int(stamp) if is_time else line_number * NS_PER_S
            yield LogLine(at_ns, record["message"], replica if isinstance(replica, str) else None, None)
        else:
            yield LogLine(line_number * NS_PER_S, text, None, None)


def _fields(reading: ParsedMetrics) -> dict[str, Any]:
    values = ((name, getattr(reading, name)) for name in _FIELDS)
    return {name: _plain(value) for name, value in values if value is not None}


def _metrics(reading: ParsedMetrics) -> dict[str, Any]:
    return {name: json_number(value) for name, value in reading.metrics}


def _document(line_number: int, reading: ParsedMetrics) -> dict[str, Any]:
    metrics = _metrics(reading)
    return {"line": line_number, **_fields(reading), **({"metrics": metrics} if metrics else {})}


def _plain(value: Any) -> Any:
    return json_number(value) if isinstance(value, float) else value


def _print_each_line(output: Output, reads: Sequence[_Read], output_format: str) -> None:
    if output_format in (JSON, NDJSON):
        documents = [_document(read.number, read.reading) for read in reads if read.reading is not None]
        if output_format == JSON:
            output.json(documents)
            return
        for document in documents:
            output.data(ascii_json(document) + "\n")
        return
    if output_format == CSV:
        output.data(csv_lines([("line", *_FIELDS)]))
        for read in reads:
            if read.reading is not None:
                fields = _fields(read.reading)
                output.data(csv_lines([(read.number, *(fields.get(name) for name in _FIELDS))]))
        return
    output.data(table_of(_LINE_COLUMNS, reads, output))


def _read_cell(read: _Read) -> list[Span]:
    if read.reading is None:
        return [("–", "muted")]
    values = {**_metrics(read.reading), **_fields(read.reading)}
    return [(", ".join(f"{name} {_text(value)}" for name, value in values.items()), "strong")]


_LINE_COLUMNS: tuple[Column[_Read], ...] = (
    text_column("LINE", lambda read: str(read.number), right=True),
    Column("READ", "READ", _read_cell, shrinks=True),
    text_column("TEXT", lambda read: read.line.message, "muted", shrinks=True),
)


def _summary(progress: ProgressSnapshot, line_count: int, read_count: int) -> dict[str, Any]:
    document: dict[str, Any] = {"log_lines": line_count, "lines_read": read_count}
    for name in _SUMMARY:
        document[name] = _plain(getattr(progress, name))
    document["losses_read"] = len(progress.loss_series)
    document["metrics"] = list(progress.metrics)
    document["checkpoints"] = [name for name, _ in progress.saves]
    return document


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "–"
    if isinstance(value, float):
        return number(value)
    return count(value) if isinstance(value, int) else str(value)
