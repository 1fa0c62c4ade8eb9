"""Show what the progress reader finds in a saved log or a recording: ``bt-tui progress --file``.

For people whose trainer is read wrongly or not at all, and for trying a pattern of one's own. Needs no job
and no account.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from api_client.models.logs import NS_PER_S, LogLine
from api_client.recordings.reading import Recording
from tui.analysis.export import csv_lines, json_number
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.lines.reader import Reader
from tui.analysis.progress.lines.reading import ParsedMetrics, merged
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.commands.jobs.curves import chosen_curves, print_curves
from tui.commands.support.exit_codes import CommandFailed, ExitCode
from tui.commands.support.options import CSV
from tui.commands.support.output import Output
from tui.commands.support.progress_line import ProgressLine
from tui.commands.support.session import run_settings
from tui.commands.support.tables import Cell, facts_of, table_of
from tui.tables.column import Column, text_column
from tui.text.units import count, number, percent

_FIELDS = tuple(name for name in ParsedMetrics._fields if name not in ("from_bar", "metrics"))
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

Record = dict[str, Any]


def print_document(
    output: Output, output_format: str, document: Record, facts: Sequence[tuple[str, Cell]]
) -> None:
    """Print values by name: as JSON, as CSV without lists and objects, or as facts."""
    if output_format == CSV:
        flat = {name: value for name, value in document.items() if not isinstance(value, list | dict)}
        output.data(csv_lines([tuple(flat), tuple(flat.values())]))
    else:
        output.answer(output_format, document, facts_of(facts, output))


def lines_of_file(path: Path) -> list[LogLine]:
    """Read a file of log lines, plain or as ``logs -o ndjson`` prints them. Raises CommandFailed."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return [_log_line(number, line.rstrip("\n")) for number, line in enumerate(file)]
    except OSError as error:
        raise CommandFailed(f"can't read {path}: {error.strerror}", ExitCode.USAGE) from error


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
    is_time = stamp.isascii() and stamp.isdigit() and len(stamp) <= _NS_DIGITS
    at_ns = int(stamp) if is_time else line_number * NS_PER_S
    return LogLine(at_ns, record["message"], replica if isinstance(replica, str) else None, None)


def lines_of_recording(recording: Recording) -> list[LogLine]:
    """Return the lines of a recording, in the order in which they arrived."""
    return [line for entry in recording.log.entries() if isinstance(line := entry.logged, LogLine)]


def show_lines(
    output: Output, lines: Sequence[LogLine], output_format: str, *, each_line: bool, metrics: Sequence[str]
) -> None:
    """Print what is read in log lines: in each of them, or in total."""
    patterns = run_settings().patterns
    if each_line:
        _print_each_line(output, lines, _read_lines(lines, Reader(patterns)), output_format)
        return
    fold = ProgressFold(patterns=patterns)
    fold.add(_shown_while_read(lines))
    progress = fold.snapshot()
    if metrics:
        print_curves(output, chosen_curves(progress, metrics, "the log"), progress, output_format)
        return
    document = _summary(progress, len(lines), fold.lines_read)
    facts = [(name.replace("_", " "), Cell(_text(value))) for name, value in document.items()]
    print_document(output, output_format, document, facts)


def _read_lines(lines: Sequence[LogLine], reader: Reader) -> dict[int, Record]:
    """Return what each line came to mean in the end, by its number: later belief is taken over."""
    readings: dict[int, ParsedMetrics] = {}
    for index, line in enumerate(_shown_while_read(lines)):
        for at, _, reading in reader.read(line.message, line.replica or "", index):
            readings[at] = merged(readings[at], reading) if at in readings else reading
    return {index: _record(index, readings[index]) for index in sorted(readings)}


def _shown_while_read(lines: Sequence[LogLine]) -> Iterator[LogLine]:
    """Yield the lines, and show on a terminal how many have been read."""
    with ProgressLine() as progress:
        for start in range(0, len(lines), _LINES_AT_ONCE):
            progress.show("reading", note=percent(start / len(lines)))
            yield from lines[start : start + _LINES_AT_ONCE]


def _record(line_number: int, reading: ParsedMetrics) -> Record:
    values = {"line": line_number, **{name: getattr(reading, name) for name in _FIELDS}}
    values["metrics"] = {name: json_number(value) for name, value in reading.metrics} or None
    return {name: _plain(value) for name, value in values.items() if value is not None}


def _print_each_line(
    output: Output, lines: Sequence[LogLine], records: Mapping[int, Record], output_format: str
) -> None:
    if output_format == CSV:
        names = ("line", *_FIELDS)
        rows = (tuple(record.get(name) for name in names) for record in records.values())
        output.data(csv_lines([names, *rows]))
        return
    columns: tuple[Column[int], ...] = (
        text_column("LINE", str, right=True),
        Column("READ", "READ", lambda line: [_read_cell(records.get(line))], shrinks=True),
        text_column("TEXT", lambda line: lines[line].message, "muted", shrinks=True),
    )
    output.answer(output_format, list(records.values()), lambda: table_of(columns, range(len(lines)), output))


def _read_cell(record: Record | None) -> tuple[str, str]:
    if record is None:
        return "–", "muted"
    values = {**record.get("metrics", {}), **record}
    shown = (f"{name} {_text(value)}" for name, value in values.items() if name not in ("line", "metrics"))
    return ", ".join(shown), "strong"


def _summary(progress: ProgressSnapshot, line_count: int, read_count: int) -> Record:
    return {
        "log_lines": line_count,
        "lines_read": read_count,
        **{name: _plain(getattr(progress, name)) for name in _SUMMARY},
        "losses_read": len(progress.loss_series),
        "metrics": list(progress.metrics),
        "checkpoints": [name for name, _ in progress.saves],
    }


def _plain(value: Any) -> Any:
    return json_number(value) if isinstance(value, float) else value


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    if isinstance(value, float):
        return number(value)
    return count(value) if isinstance(value, int) else str(value or "")
