"""``bt-tui recreate``: Submit a job again."""

from __future__ import annotations

import click

from api_client.client import TrainingClient
from tui.commands.jobs.push import print_or_tail, remarking_doubt, tail_option
from tui.commands.support.exit_codes import CommandFailed, ExitCode
from tui.commands.support.lookups import newest_job
from tui.commands.support.options import JSON, TABLE, examples, format_option, one_job_id, yes_option
from tui.commands.support.output import Output
from tui.commands.support.session import client_command
from tui.commands.support.terminal import confirm


@examples("bt-tui recreate abc1234 --tail", "bt-tui recreate --yes          the newest job")
@click.command()
@click.argument("job_id", metavar="[JOB_ID]", required=False)
@click.option("--job-id", "named_id", metavar="JOB_ID", help="Same as the argument.")
@tail_option
@yes_option
@format_option(TABLE, JSON)
@client_command
async def recreate(
    client: TrainingClient,
    output: Output,
    job_id: str | None,
    named_id: str | None,
    tail: bool,
    assume_yes: bool,
    output_format: str,
) -> ExitCode:
    """Start a new job with the code and configuration of an earlier one.

    Without an id, the newest job that you can access is used, after confirmation.
    """
    original_id = one_job_id(job_id, named_id)

    client.check_may_change("recreating a job")
    if original_id is not None:
        original = await client.jobs.find(original_id)
    else:
        newest = await newest_job(client)
        if newest is None:
            raise CommandFailed("no job to recreate", ExitCode.NOT_FOUND)
        original = newest
        confirm(f"recreate {original.id} ({original.name or 'no name'})?", assume_yes=assume_yes)
    with remarking_doubt(client, output):
        created = await client.jobs.recreate(original.project_id, original.id)
    output.remark(f"recreated job {original.id} as {created.id}")
    document = {"training_job": created.model_dump(mode="json")}
    return await print_or_tail(client, output, created, document, output_format, tail=tail)
