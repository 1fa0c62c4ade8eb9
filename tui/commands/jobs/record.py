"""``bt-tui record``: Record a run to a file that opens anywhere."""

from __future__ import annotations

from pathlib import Path

import click

from api_client.client import TrainingClient
from api_client.recordings.archive import SUFFIX
from tui.commands.support.options import examples, job_argument, job_named, resolve_since, since_option
from tui.commands.support.output import CommandOutput, ExitCode, outcome_exit_code
from tui.commands.support.progress_line import ProgressLine, lines_note
from tui.commands.support.session import client_command
from tui.readers.recorder import Recorder
from tui.text.units import bytes_iec, counted


@examples(
    "bt-tui record abc1234                      to abc1234.btrun",
    "bt-tui record abc1234 -o run.btrun --follow",
    "bt-tui record abc1234 --without-messages   without the text of the log",
)
@click.command()
@job_argument
@click.option(
    "-o",
    "--output",
    "path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File to record to (default: JOB_ID.btrun).",
)
@click.option("-f", "--follow", is_flag=True, help="Record until the job ends; exit with its outcome.")
@since_option("Record the log and metrics only from this time: 2h ago, or a time.")
@click.option("--without-messages", is_flag=True, help="Leave out the text of the log.")
@client_command
async def record(
    client: TrainingClient,
    output: CommandOutput,
    job_id: str,
    path: Path | None,
    follow: bool,
    since: str | None,
    without_messages: bool,
) -> ExitCode:
    """Record a run to a file that opens anywhere, without an account: log, metrics, checkpoints, history.

    An existing recording of the job is continued. Keys, tokens, presigned URLs and passwords are removed.
    Stop with ctrl-c: the recording so far is kept.
    """
    job = await job_named(client, job_id)
    path = path or Path(f"{job.id}{SUFFIX}")
    with ProgressLine() as line:
        recorder = Recorder(
            client,
            job,
            path,
            since=resolve_since(since, client.clock.now()),
            with_messages=not without_messages,
            on_log_progress=lambda fraction, count: line.show(
                f"recording {job.id}", note=lines_note(fraction, count)
            ),
        )
        await recorder.run(follow=follow)
    for data_name, problem in recorder.problems.items():
        output.print_message(f"the {data_name} could not be recorded: {problem}")
    size = bytes_iec(path.stat().st_size)
    output.print_message(f"recorded {counted(recorder.line_count, 'line')} to {path} ({size})")
    return outcome_exit_code(recorder.job.current_status) if follow else ExitCode.OK
