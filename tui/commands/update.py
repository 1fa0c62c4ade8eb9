"""``bt-tui update``: change a job that still waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tui.commands.exit_codes import ExitCode
from tui.commands.options import JSON, TABLE, Settings, examples, format_option, remote_option
from tui.commands.output import Output
from tui.commands.session import run_on_remote

if TYPE_CHECKING:
    from api_client.client import TrainingClient

AVAILABILITY_MODELS = ("dedicated", "spot")


@click.command(
    short_help="Change the priority of a waiting job.",
    epilog=examples(
        "bt-tui update abc1234 --priority 10",
        "bt-tui update --job-id abc1234 --availability-model spot",
    ),
)
@click.argument("job_argument", metavar="[JOB_ID]", required=False)
@click.option("--job-id", "job_option", metavar="JOB_ID", help="The same, as an option.")
@click.option("--priority", type=int, metavar="N", help="Higher goes first.")
@click.option("--availability-model", type=click.Choice(AVAILABILITY_MODELS), help="Whose GPUs it waits for.")
@format_option(TABLE, JSON)
@remote_option
@click.pass_obj
def update(
    settings: Settings,
    job_argument: str | None,
    job_option: str | None,
    priority: int | None,
    availability_model: str | None,
    output_format: str,
) -> ExitCode:
    """Change a job that waits for GPUs; the server refuses it once the job has got them."""
    job_id = job_option or job_argument
    if not job_id or (job_argument and job_option and job_argument != job_option):
        raise click.UsageError("say which job: JOB_ID, or --job-id JOB_ID")
    if priority is None and availability_model is None:
        raise click.UsageError("nothing to change: give --priority or --availability-model")

    async def act(client: TrainingClient, output: Output) -> ExitCode:
        found = await client.jobs.find(job_id)
        changed = await client.jobs.update(
            found.project_id, found.id, priority=priority, availability_model=availability_model
        )
        if output_format == JSON:
            output.json(changed.model_dump(mode="json"))
            return ExitCode.OK
        from tui.commands.rows import job_facts
        from tui.commands.tables import render_facts

        facts = job_facts(changed, link=client.job_link(changed.project_id, changed.id))
        output.data(render_facts(facts, paint=output.paint))
        return ExitCode.OK

    return run_on_remote(settings, act)
