"""``bt-tui view``: the official word for looking at projects and jobs."""

from __future__ import annotations

import click

from tui.commands.exit_codes import ExitCode
from tui.commands.job import job
from tui.commands.jobs import jobs
from tui.commands.official_options import given_project
from tui.commands.options import JSON, TABLE, Settings, examples, format_option, remote_option
from tui.commands.projects import projects


@click.command(
    short_help="The official word for projects, jobs and job.",
    epilog=examples(
        "bt-tui view                          projects, then jobs",
        "bt-tui view --project llama-sft      the jobs of one: bt-tui jobs --project",
        "bt-tui view --job-id abc1234         one job: bt-tui job",
    ),
)
@click.option("--project-id", metavar="ID", help="Jobs of this project.")
@click.option("--project", metavar="NAME", help="Jobs of this project, by name or id.")
@click.option("--job-id", metavar="JOB_ID", help="This job alone.")
@format_option(TABLE, JSON)
@remote_option
@click.pass_context
def view(
    context: click.Context,
    project_id: str | None,
    project: str | None,
    job_id: str | None,
    output_format: str,
) -> ExitCode:
    """Show projects and jobs, the jobs of a project, or one job.

    JSON is that of "bt-tui jobs", with --job-id that of "bt-tui job".
    """
    wanted = given_project(project, project_id)
    if job_id is not None:
        return ExitCode(context.invoke(job, job_id=job_id, output_format=output_format))
    if wanted is None and output_format == TABLE:
        code = ExitCode(context.invoke(projects, output_format=output_format))
        if code is not ExitCode.OK:
            return code
        context.ensure_object(Settings).output.data("\n")
    return ExitCode(context.invoke(jobs, project_name=wanted, statuses=(), output_format=output_format))
