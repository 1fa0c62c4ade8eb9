"""The options of ``bt-tui logs``, and the destination and format of its output.

``-o/--output`` accepts both: ``text``, ``ndjson``, ``json`` and ``raw`` are formats; a value with a dot or a
slash is a file (``run.log``, ``./log``), whose extension selects the format unless one is given too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import click

from api_client.clock import Clock
from api_client.files import AtomicFile, user_path
from api_client.models import TrainingJob
from tui.analysis.logs.levels import LEVELS
from tui.analysis.logs.pattern import LogPattern
from tui.commands.logs.printing import (
    RAW,
    TIME_MODES,
    LogLineFilter,
    LogPrinter,
    NodeChooser,
    stamp_formatter,
)
from tui.commands.support.options import (
    combined,
    one_job_id,
    parse_moment,
    parse_since,
    recording_option,
    selected_project,
    since_option,
)
from tui.commands.support.output import (
    JSON,
    JSONL,
    NDJSON,
    TEXT,
    CommandFailed,
    CommandOutput,
    ExitCode,
    cannot_write_error,
    refuse_if,
)

FORMATS = (TEXT, NDJSON, JSON, RAW)
FORMAT_OF_SUFFIX = {".json": JSON, ".ndjson": NDJSON, ".jsonl": NDJSON, ".raw": RAW}


@dataclass(frozen=True, slots=True)
class LogTarget:
    """The output format of a log, and the file to write the log to (None: stdout)."""

    format: str
    file: Path | None = None
    replaces_existing: bool = False


def parse_target(outputs: Sequence[str], save: str | None, *, force: bool) -> LogTarget:
    """Combine the values of ``-o`` and ``--save`` into a target. Raises click.BadParameter."""
    outputs = [NDJSON if value == JSONL else value for value in outputs]
    formats = list(dict.fromkeys(value for value in outputs if value in FORMATS))
    file_names = list(
        dict.fromkeys([*(value for value in outputs if value not in FORMATS), *filter(None, [save])])
    )
    for value in file_names:
        if value != save and not any(sign in value for sign in "./\\~"):
            raise click.BadParameter(
                f"unknown format {value!r}; use {', '.join(FORMATS)}, or ./{value} for a file",
                param_hint="-o/--output",
            )
    if len(formats) > 1 or len(file_names) > 1:
        raise click.BadParameter("give at most one format and one file", param_hint="-o/--output")
    target_file = user_path(file_names[0]) if file_names else None
    suffix_format = FORMAT_OF_SUFFIX.get(target_file.suffix.lower(), TEXT) if target_file else TEXT
    return LogTarget(formats[0] if formats else suffix_format, target_file, force)


@contextmanager
def open_target(target: LogTarget, output: CommandOutput, *, follows: bool) -> Iterator[CommandOutput]:
    """Yield ``output`` itself, or an output that writes to the file. Raises CommandFailed.

    The file gets its name only when it is complete. Following may take days and be interrupted, so until
    then the lines are in FILE.part, which can be read meanwhile.
    """
    if target.file is None:
        yield _in_format(output, target.format)
        return
    partial_path = target.file.with_name(f"{target.file.name}.part") if follows else None
    try:
        atomic_file = AtomicFile(target.file, replace=target.replaces_existing, partial=partial_path)
    except FileExistsError as error:
        cause = " from an interrupted --follow" if error.filename == str(partial_path) else ""
        message = f"{error.filename} already exists{cause}; --force replaces it"
        raise CommandFailed(message, ExitCode.USAGE) from None
    except OSError as error:
        raise cannot_write_error(target.file, error) from None
    try:
        text = TextIOWrapper(atomic_file.file, encoding="utf-8", errors="replace", newline="\n")
        yield _in_format(CommandOutput(stdout=text, name=str(target.file)), target.format)
        atomic_file.commit()
    except OSError as error:
        raise cannot_write_error(target.file, error) from None
    finally:
        atomic_file.discard()
        if partial_path is not None and partial_path.exists():
            output.print_message(f"the lines so far are in {partial_path}")


def _in_format(output: CommandOutput, name: str) -> CommandOutput:
    return (output.verbatim() if name == RAW else output).with_format(name)


DRAIN_VARIABLE = "BT_TUI_LOG_DRAIN_S"


@dataclass(frozen=True, slots=True)
class LogRequest:
    """The parsed options of ``bt-tui logs``. Times are kept as typed: some are relative to the job."""

    job_id: str | None = None
    project: str | None = None
    follow: bool = False
    since: str | None = None
    start: str | None = None
    end: str | None = None
    last: int | None = None
    min_level: str | None = None
    nodes: tuple[str, ...] = ()
    grep: str | None = None
    ignore_case: bool = False
    invert: bool = False
    context: int = 0
    time_mode: str = TIME_MODES[0]
    drain_s: float | None = None
    target: LogTarget = LogTarget(TEXT)

    def time_range(self, job: TrainingJob, now: datetime) -> tuple[datetime | None, datetime | None]:
        """Return the requested start and end. Raises click.UsageError for an empty range."""
        run_start = job.created_at or now
        start = parse_moment(self.start, run_start, now) if self.start else None
        if self.since:
            start = parse_since(self.since, now)
        end = parse_moment(self.end, run_start, now) if self.end else None
        refuse_if(start is not None and start > now, "the start time is in the future")
        refuse_if(start is not None and end is not None and end <= start, "--end is not after the start")
        return start, end

    def new_filter(self, is_chosen: NodeChooser) -> LogLineFilter:
        pattern = LogPattern(self.grep, regex=True, case=not self.ignore_case) if self.grep else None
        return LogLineFilter(
            is_chosen=is_chosen,
            min_level=self.min_level,
            matches=pattern.matcher() if pattern else None,
            invert=self.invert,
            context_lines=self.context,
        )

    def printer(self, output: CommandOutput, job: TrainingJob, clock: Clock) -> LogPrinter:
        beginning = job.created_at or clock.now()
        stamp_text = stamp_formatter(self.time_mode, beginning=beginning, now=clock.now)
        return LogPrinter(output, stamp_text, has_context=self.context > 0)


def _check_pattern(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value:
        problem = LogPattern(value, regex=True).problem
        if problem:
            raise click.BadParameter(problem)
    return value


def _parse_request(
    *,
    job_id: str | None,
    job_id_option: str | None,
    project: str | None,
    project_id: str | None,
    outputs: tuple[str, ...],
    save: str | None,
    force: bool,
    limit: int | None,
    **options: Any,
) -> LogRequest:
    options["last"] = (limit or None) if options["last"] is None else options["last"]
    follows = options["follow"]
    refuse_if(options["since"] is not None and options["start"] is not None, "give either --since or --start")
    refuse_if(follows and options["end"] is not None, "--follow reads to the end of the job; omit --end")
    if not options["grep"]:
        refuse_if(options["invert"], "--invert needs --grep")
        refuse_if(options["ignore_case"], "--ignore-case needs --grep")
        refuse_if(
            options["context"] and options["min_level"] is None, "--context needs --grep or --min-level"
        )
    target = parse_target(outputs, save, force=force)
    refuse_if(follows and target.format == JSON, "--follow can't write a JSON array; use -o ndjson")
    return LogRequest(
        job_id=one_job_id(job_id, job_id_option),
        project=selected_project(project, project_id),
        target=target,
        **options,
    )


log_options = combined(
    "request",
    _parse_request,
    click.argument("job_id", metavar="[JOB_ID]", required=False),
    click.option("--job-id", "job_id_option", metavar="JOB_ID", help="Same as the argument."),
    recording_option,
    click.option("--project-id", metavar="ID", help="Use the newest job of this project."),
    click.option("--project", metavar="PROJECT", help="Use the newest job of this project (id or name)."),
    click.option(
        "-f", "--follow", "--tail", is_flag=True, help="Follow until the job ends; exit with its outcome."
    ),
    since_option("Start time: 2h or 1h30m ago, or a time as for --start.", "--since"),
    since_option("Start time: 12:30, 2026-11-21 12:30, ISO 8601, epoch, '15m ago'.", "--start"),
    since_option("End time.", "--end"),
    click.option("--last", metavar="N", type=click.IntRange(min=0), help="Only the last N (matching) lines."),
    click.option(
        "--limit", metavar="N", type=click.IntRange(min=0), hidden=True, help="Same as --last; 0: all lines."
    ),
    click.option(
        "--min-level",
        type=click.Choice(LEVELS, case_sensitive=False),
        help="Minimum level (of the server or in the line); lines without a level count as INFO.",
    ),
    click.option("--node", "nodes", metavar="NODE", multiple=True, help="Only this node (name or number)."),
    click.option("--grep", metavar="REGEX", callback=_check_pattern, help="Only lines that match (RE2)."),
    click.option("-i", "--ignore-case", is_flag=True, help="Ignore case in --grep."),
    click.option("--invert", is_flag=True, help="Only lines that do not match --grep."),
    click.option(
        "--context",
        metavar="N",
        type=click.IntRange(0, 10_000),
        default=0,
        help="Also print N lines before and after each match of --grep or --min-level.",
    ),
    click.option(
        "--time",
        "time_mode",
        type=click.Choice(TIME_MODES),
        default=TIME_MODES[0],
        show_default=True,
        help="Time format of text; elapsed: since the job was created.",
    ),
    click.option(
        "--drain",
        "drain_s",
        metavar="SECONDS",
        type=click.FloatRange(0, 3600),
        envvar=DRAIN_VARIABLE,
        help=f"How long --follow waits for late lines after the end (default: 65, or more if lines came "
        f"later). Also: {DRAIN_VARIABLE}.",
    ),
    click.option(
        "-o",
        "--output",
        "outputs",
        metavar="[text|ndjson|json|raw|FILE]",
        multiple=True,
        help="Output format (default: text), or a file to save to (with a dot or slash).",
    ),
    click.option(
        "--save",
        metavar="FILE",
        help="Save to a file; .ndjson and .json set the format. With --follow, written to FILE.part until "
        "the log ends.",
    ),
    click.option("--force", is_flag=True, help="Replace an existing file."),
)
