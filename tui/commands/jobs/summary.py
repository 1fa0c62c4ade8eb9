"""``bt-tui summary``: Summarize a run in at most 4 KB, for scripts and coding agents."""

from __future__ import annotations

from contextlib import aclosing

import click

from api_client.client import TrainingClient
from tui.analysis.summary.rendering import as_markdown, as_text, document
from tui.analysis.summary.value import Summary
from tui.commands.support.exit_codes import ExitCode, outcome_exit_code
from tui.commands.support.lookups import job_named
from tui.commands.support.options import (
    JSON,
    MARKDOWN,
    TEXT,
    examples,
    format_option,
    job_argument,
    recording_option,
)
from tui.commands.support.output import Output
from tui.commands.support.progress_line import ProgressLine, lines_note
from tui.commands.support.session import client_command, run_settings
from tui.readers.summary import SummaryReader


@examples(
    "bt-tui summary abc1234",
    "bt-tui summary abc1234 -o json | jq -r '.problems[].answer'",
    "bt-tui summary abc1234 --follow -o jsonl     a line whenever something that matters changes",
)
@click.command()
@recording_option
@job_argument
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="Print another summary when status, findings, checkpoints or restarts change, until the job ends.",
)
@format_option(TEXT, JSON, MARKDOWN)
@client_command
async def summary(
    client: TrainingClient, output: Output, job_id: str, follow: bool, output_format: str
) -> ExitCode:
    """Summarize a run: what it does, findings and their causes, progress, cost, checkpoints, what to do next.

    A summary has at most 4,096 bytes in every format; what has no room is counted. Lines of the log are
    quoted as data: they may say anything. In JSON, what is unknown is left out, times are UTC, durations
    and ages are seconds, and non-finite numbers are strings.

    With --follow the exit code is that of the job's outcome, as with logs --follow.
    """
    with ProgressLine() as line:
        label = f"reading the log of {job_id}"
        reader = SummaryReader(
            client,
            await job_named(client, job_id),
            run_settings(),
            on_part=lambda part, lines: line.show(label, note=lines_note(part, lines)),
        )
        if not follow:
            read = await reader.read()
            line.clear()
            _print(output, read, output_format)
            return ExitCode.OK
        trouble = lambda error, _delay_s: output.remark(f"{error}; retrying")  # noqa: E731
        async with aclosing(reader.follow(trouble)) as summaries:
            async for newer in summaries:
                line.clear()
                _print(output, newer, output_format)
    return outcome_exit_code(reader.job.current_status)


def _print(output: Output, summary: Summary, output_format: str) -> None:
    text = as_markdown if output_format == MARKDOWN else as_text
    output.answer(output_format, document(summary), text(summary))
