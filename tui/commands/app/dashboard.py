"""``bt-tui watch``: Open the dashboard on one job.

Commands import textual only here, and only when needed.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import click

from api_client.client import TrainingClient
from api_client.errors import NotFound, RequestError
from api_client.http.retry import RetryPolicy
from api_client.remotes import Remote, RemoteNotConfigured
from tui.commands.support.options import CommandSettings, examples, job_named, readonly_option, remote_option
from tui.commands.support.session import (
    LOCAL_REMOTE,
    chosen_remote,
    dashboard_settings,
    remote_by_name,
    remote_of,
    started_local_remote,
)
from tui.commands.support.terminal import opening_notice
from tui.settings.model import Loaded


def open_dashboard(settings: CommandSettings, *, job_id: str | None = None, tab: str | None = None) -> None:
    """Open the dashboard on the chosen remote, or the welcome screen if there is none.

    The user's choice on the welcome screen (demo, local emulator, their remote) starts here once the screen
    has closed.
    """
    with opening_notice():
        loaded = dashboard_settings(settings)
        from tui.app import run_dashboard

    remote: Remote | None = None
    why_no_remote = ""
    try:
        remote = _remote(settings, loaded)
    except RemoteNotConfigured as missing:
        if job_id is not None:
            raise
        why_no_remote = str(missing)
    choice = run_dashboard(
        remote,
        job_id=job_id,
        tab=tab,
        settings=loaded,
        own_emulator=started_local_remote,
        why_no_remote=why_no_remote,
    )
    if choice == "demo":
        from tui.commands.app.emulator import run_demo  # 4% of the time to the dashboard's first picture

        run_demo(settings)
    elif choice == "emulator":
        open_dashboard(replace(settings, remote_name=LOCAL_REMOTE))
    elif choice == "login":
        open_dashboard(settings)


def _remote(settings: CommandSettings, loaded: Loaded) -> Remote:
    named = remote_of(loaded.configuration.remote, settings.remote_name, os.environ)
    return replace(remote_by_name(named, settings.output), options=settings.options)


def open_page(settings: CommandSettings) -> None:
    """Open the dashboard for a page of ``bt-tui serve``, which talks to it over pipes."""
    from tui.app import run_dashboard

    run_dashboard(chosen_remote(settings), settings=dashboard_settings(settings))


@examples("bt-tui watch abc1234", "bt-tui watch abc1234 --tab logs")
@click.command()
@click.argument("job_id", metavar="JOB_ID")
@click.option(
    "--tab",
    type=click.Choice(("live", "logs", "metrics", "checkpoints", "details")),
    help="Tab to open (default: the last one used for this job, else Live, or Logs or Details if it failed).",
)
@remote_option
@readonly_option
@click.pass_obj
def watch(settings: CommandSettings, job_id: str, tab: str | None) -> None:
    """Open the dashboard on one job.

    If the server reports that the job does not exist, the exit code is 7 and nothing opens.
    """
    with opening_notice():
        found_id = _id_of(settings, job_id)
    open_dashboard(settings, job_id=found_id, tab=tab)


def _id_of(settings: CommandSettings, job_id: str) -> str:
    """Return the job's id. Raises NotFound; after 3 s or another error the dashboard opens anyway."""
    loaded = dashboard_settings(settings)
    remote = _remote(settings, loaded)

    async def ask() -> str:
        async with TrainingClient(remote, retry=RetryPolicy(max_attempts=1)) as client:
            async with asyncio.timeout(3.0):
                return (await job_named(client, job_id)).id

    try:
        return asyncio.run(ask())
    except NotFound:
        raise
    except (RequestError, TimeoutError):
        return job_id
