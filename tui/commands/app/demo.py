"""``bt-tui demo``: Try the dashboard on demo data: no account, no GPU."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import click
from click.core import ParameterSource

from api_client.emulator.processes import EmulatorChild
from tui.commands.app.emulator import speed_option, world_option
from tui.commands.support.local_emulator import (
    DEMO_WORLD,
    emulator_remote,
)
from tui.commands.support.options import CommandSettings, examples, readonly_option
from tui.commands.support.session import dashboard_settings
from tui.commands.support.terminal import need_terminal
from tui.settings.loading import load_or_defaults

DEMO_REMOTE = "demo"


@examples("bt-tui demo", "bt-tui demo --speed 10")
@click.command()
@world_option
@speed_option
@readonly_option
@click.pass_context
def demo(context: click.Context, world: str, speed: float) -> None:
    """Explore a demo world on this machine: no account and no GPU needed.

    This starts an emulator of Baseten Training in a child process, with a team's worth of simulated projects
    and jobs and one real two-node training run on this machine's CPU, and opens the dashboard on it. When the
    dashboard ends for any reason, the emulator and its jobs end too and their data is deleted.
    """
    is_typed = context.get_parameter_source("speed") is not ParameterSource.DEFAULT
    run_demo(context.ensure_object(CommandSettings), world=world, speed=speed if is_typed else None)


def run_demo(settings: CommandSettings, *, world: str = DEMO_WORLD, speed: float | None = None) -> None:
    """Run the dashboard on a new emulator, which is stopped however the dashboard ends.

    If this process is killed, the child stops because its standard input closes. `speed` defaults to the
    setting. Raises CommandFailed without a terminal.
    """
    need_terminal()
    loaded = dashboard_settings(settings)
    child = EmulatorChild(world=world, speed=speed or loaded.configuration.demo.speed)
    try:
        child.launch()
        # textual takes about as long to import as the child takes to start: do both at once.
        from tui.app import run_dashboard

        child.wait_ready()
        remote = replace(emulator_remote(DEMO_REMOTE, child.url, child.key_file), options=None)
        run_dashboard(remote, demo=world == DEMO_WORLD, settings=loaded)
    finally:
        child.shut_down()


def background_demo() -> EmulatorChild:
    """Return the demo's emulator for several dashboards; it stops with the context."""
    return EmulatorChild(world=DEMO_WORLD, speed=load_or_defaults(os.environ).configuration.demo.speed)


def run_demo_page(settings: CommandSettings, url: str, key_file: Path) -> None:
    """Run a dashboard on a demo kept by another process. Raises OSError if its key cannot be read."""
    from tui.app import run_dashboard

    remote = replace(emulator_remote(DEMO_REMOTE, url, key_file), options=None)
    run_dashboard(remote, demo=True, settings=dashboard_settings(settings))
