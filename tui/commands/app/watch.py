"""``bt-tui watch``: Open the dashboard on one job."""

from __future__ import annotations

import asyncio

import click

from api_client import NotFound, RequestError, RetryPolicy, TrainingClient
from tui.commands.app.dashboard import dashboard_remote, open_dashboard
from tui.commands.support.options import CommandSettings, examples, job_named, readonly_option, remote_option
from tui.commands.support.remotes import dashboard_settings
from tui.commands.support.terminal import opening_notice


@examples("bt-tui watch abc1234", "bt-tui watch abc1234 --tab logs")
@click.command()
@click.argument("job_id", metavar="JOB_ID")
@click.option(
    "--tab",
    type=click.Choice(("live", "logs", "metrics", "checkpoints", "details")),
    help="Tab to open (default: last used for this job, else Live, or Logs or Details if the job failed).",
)
@remote_option
@readonly_option
@click.pass_obj
def watch(settings: CommandSettings, job_id: str, tab: str | None) -> None:
    """Open the dashboard on one job.

    If the server reports that the job does not exist, the exit code is 7 and nothing opens.
    """
    with opening_notice():
        resolved_id = _resolved_id(settings, job_id)
    open_dashboard(settings, job_id=resolved_id, tab=tab)


def _resolved_id(settings: CommandSettings, job_id: str) -> str:
    """Return the id of the job with this id or name. Raises NotFound.

    After 3 s, or on any other error, return ``job_id`` unchanged, so that the dashboard opens anyway.
    """
    loaded = dashboard_settings(settings)
    remote = dashboard_remote(settings, loaded)

    async def find_job_id() -> str:
        async with TrainingClient(remote, retry=RetryPolicy(max_attempts=1)) as client:
            async with asyncio.timeout(3.0):
                return (await job_named(client, job_id)).id

    try:
        return asyncio.run(find_job_id())
    except NotFound:
        raise
    except (RequestError, TimeoutError):
        return job_id
