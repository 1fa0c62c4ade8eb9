"""``bt-tui health --file FILE --timeline``: every finding of a recorded run."""

from __future__ import annotations

from typing import Any

import click

from tui.commands.support.options import JSON, given_recording
from tui.commands.support.output import Output
from tui.commands.support.progress_line import ProgressLine
from tui.commands.support.tables import table_of
from tui.readers.timeline import FindingPeriod, Timeline
from tui.settings.runs import RunSettings
from tui.tables.column import Column, text_column
from tui.text.times import iso_time, local_time
from tui.text.units import duration, percent


def print_timeline(output: Output, settings: RunSettings, output_format: str) -> None:
    """Judge the recording given by ``--file``. Raises UsageError if there is none."""
    recording = given_recording()
    if recording is None:
        raise click.UsageError("--timeline needs a recording: --file FILE")
    timeline = Timeline(recording, settings)
    whole_s = (recording.until - recording.begin).total_seconds() or 1.0
    with ProgressLine() as line:
        while not timeline.is_done:
            part = (timeline.at - recording.begin).total_seconds() / whole_s
            line.show(f"judging {recording.name}", 0, 0, percent(part))
            timeline.look()
    if output_format == JSON:
        output.json([_record(period) for period in timeline.findings])
    else:
        output.data(table_of(_COLUMNS, timeline.findings, output))


def _record(period: FindingPeriod) -> dict[str, Any]:
    finding = period.finding
    return {
        "kind": str(finding.kind),
        "severity": finding.severity,
        "node": finding.node,
        "since": iso_time(finding.since) if finding.since else None,
        "first_seen": iso_time(period.first_seen),
        "last_seen": iso_time(period.last_seen),
        "message": finding.text,
    }


_COLUMNS: tuple[Column[FindingPeriod], ...] = (
    text_column("FIRST SEEN", lambda one: local_time(one.first_seen)),
    text_column("FOR", lambda one: duration((one.last_seen - one.first_seen).total_seconds()), right=True),
    text_column("SEVERITY", lambda one: one.finding.severity),
    text_column("FINDING", lambda one: str(one.finding.kind), "strong"),
    text_column("TEXT", lambda one: one.finding.text, shrinks=True),
)
