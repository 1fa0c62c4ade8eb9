"""Open the dashboard. Commands import textual only here, and only when needed."""

from __future__ import annotations

import os
from dataclasses import replace

from api_client.remotes import Remote, RemoteNotConfigured
from tui.commands.support.options import CommandSettings
from tui.commands.support.remotes import (
    LOCAL_REMOTE,
    choose_remote_name,
    chosen_remote,
    dashboard_settings,
    remote_by_name,
    started_local_remote,
)
from tui.commands.support.terminal import opening_notice
from tui.settings.model import Loaded


def open_dashboard(settings: CommandSettings, *, job_id: str | None = None, tab: str | None = None) -> None:
    """Open the dashboard on the chosen remote, or the welcome screen if there is none.

    Once the welcome screen has closed, start what the user chose there: the demo, the local emulator, or the
    dashboard on the remote of a new login.
    """
    with opening_notice():
        loaded = dashboard_settings(settings)
        from tui.app import run_dashboard

    remote: Remote | None = None
    why_no_remote = ""
    try:
        remote = dashboard_remote(settings, loaded)
    except RemoteNotConfigured as missing:
        if job_id is not None:
            raise
        why_no_remote = str(missing)
    choice = run_dashboard(
        remote,
        job_id=job_id,
        tab=tab,
        settings=loaded,
        start_emulator=started_local_remote,
        why_no_remote=why_no_remote,
    )
    if choice == "demo":
        from tui.commands.app.emulator import run_demo  # importing it costs 4% of the time to the first frame

        run_demo(settings)
    elif choice == "emulator":
        open_dashboard(replace(settings, remote_name=LOCAL_REMOTE))
    elif choice == "login":
        open_dashboard(settings)


def dashboard_remote(settings: CommandSettings, loaded: Loaded) -> Remote:
    name = choose_remote_name(loaded.configuration.remote, settings.remote_name, os.environ)
    return replace(remote_by_name(name, settings.output), options=settings.options)


def open_page(settings: CommandSettings) -> None:
    """Open the dashboard of one browser page; ``bt-tui serve`` communicates with it over pipes."""
    from tui.app import run_dashboard

    run_dashboard(chosen_remote(settings), settings=dashboard_settings(settings))
