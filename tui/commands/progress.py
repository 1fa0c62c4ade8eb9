"""``bt-tui progress``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.commands.known_names import no_such
from tui.commands.official_options import job_options, meant_job
from tui.commands.options import CSV, JSON, TABLE, Settings, examples, format_option, remote_option
from tui.commands.output import Output
from tui.commands.session import run_on_remote
from tui.commands.since import moment_since, since_option

if TYPE_CHECKING:
    from api_client.client import TrainingClient


@click.command(
    short_help="Training progress read from the log: step, loss, speed, ETA.",
    epilog=examples(
        "bt-tui progress abc1234",
        "bt-tui progress abc1234 -o json | jq .eta_s",
        "bt-tui progress abc1234 --since 6h           of a log that goes back for weeks",
        "bt-tui progress abc1234 --series -o csv > curves.csv",
    ),
)
@click.argument("job", metavar="[JOB_ID]", required=False)
@job_options
@since_option("Read the log from then on only: 2h ago, or a time.")
@click.option("--series", "with_series", is_flag=True, help="The curves too: loss, learning rate, speed …")
@click.option("--stream", metavar="NODE", help="As this node tells it, where several print progress.")
@format_option(TABLE, JSON, CSV)
@remote_option
@click.pass_obj
def progress(
    settings: Settings,
    job: str | None,
    job_id: str | None,
    project: str | None,
    project_id: str | None,
    since: str | None,
    with_series: bool,
    stream: str | None,
    output_format: str,
) -> ExitCode:
    """Read a job's log and tell how far its training is.

    What the log does not tell is null in JSON, empty in CSV and left out of the table. Numbers that are none
    ("NaN", "Infinity", "-Infinity") are texts in JSON. With --series JSON has an object "series" whose lists
    hold time, step and value, and CSV is a line a reading: series, time, step, value, unit.
    """
    if job and job_id and job != job_id:
        raise click.UsageError("two different job ids: give one")

    async def show(client: TrainingClient, output: Output) -> ExitCode:
        from tui.commands.progress_report import print_csv, print_json, print_table
        from tui.commands.run_options import read_with_line

        found = await meant_job(client, job_id=job or job_id, project=project, project_id=project_id)
        reading = await read_with_line(client, found, output, since=moment_since(since), stream=stream)
        told = reading.run.progress
        known = [one.key for one in told.streams] if told is not None else []
        if stream is not None and known and stream not in known:
            raise CommandFailed(f"job {found.id} has {no_such('stream', stream, known)}", ExitCode.NOT_FOUND)
        if told is None or (told.step is None and told.loss is None):
            output.remark("the log tells no training progress")
        printers = {TABLE: print_table, JSON: print_json, CSV: print_csv}
        printers[output_format](output, reading, with_series)
        return ExitCode.OK

    return run_on_remote(settings, show)
