"""Open the dashboard: the only door from the commands to textual, and only when it is wanted."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.commands.options import Settings, remote_option

if TYPE_CHECKING:
    from api_client.remotes import Remote

START_DEMO = "demo"
START_EMULATOR = "emulator"


def need_terminal() -> None:
    """Raise CommandFailed where there is no terminal to draw on."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandFailed(
            "the dashboard needs a terminal; bt-tui projects, jobs, job and logs work without one",
            ExitCode.USAGE,
        )


def open_dashboard(settings: Settings, *, job_id: str | None = None) -> ExitCode:
    """Open the dashboard on the chosen remote, or the welcome screen if there is none.

    What the person chooses on the welcome screen (demo, local emulator) is started here afterwards.
    """
    from api_client.remotes import RemoteNotConfigured, resolve_remote

    need_terminal()
    remote: Remote | None
    try:
        remote = resolve_remote(settings.remote_name, environ=os.environ)
    except RemoteNotConfigured:
        if job_id is not None:
            raise
        remote = None

    from tui.app import run_dashboard

    choice = run_dashboard(remote, job_id=job_id)
    if choice == START_DEMO:
        from tui.commands.demo import run_demo

        return run_demo()
    if choice == START_EMULATOR:
        from tui.commands.demo import run_local

        return run_local()
    return ExitCode.OK


@click.command()
@click.argument("job_id", metavar="JOB_ID")
@remote_option
@click.pass_obj
def watch(settings: Settings, job_id: str) -> ExitCode:
    r"""Open the dashboard on one job.

    \b
    Example:
      bt-tui watch abc1234
    """
    return open_dashboard(settings, job_id=job_id)
