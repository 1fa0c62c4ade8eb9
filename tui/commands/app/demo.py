"""``bt-tui demo``: the dashboard on an emulator in a child process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from click.core import ParameterSource

from api_client.emulator.data_folder import running_address
from api_client.emulator.processes import EmulatorChild, EmulatorFailed
from tui.commands.app.emulator import speed_option, world_option
from tui.commands.support.exit_codes import CommandFailed, ExitCode
from tui.commands.support.local_emulator import (
    DEMO_WORLD,
    EMPTY_WORLD,
    default_data_dir,
    emulator_remote,
    local_remote,
)
from tui.commands.support.options import CommandSettings, examples, readonly_option
from tui.commands.support.output import Output
from tui.commands.support.terminal import need_terminal
from tui.settings.loading import load_or_defaults

DEMO_REMOTE = "demo"
LOCAL_REMOTE = "this-machine"


@examples("bt-tui demo", "bt-tui demo --speed 10")
@click.command()
@world_option
@speed_option
@readonly_option
@click.pass_context
def demo(context: click.Context, world: str, speed: float) -> ExitCode:
    """Explore a demo world on this machine: no account and no GPU needed.

    This starts an emulator of Baseten Training in a child process, with a team's worth of scripted
    projects and jobs and one real two-node training run on this machine's CPU, and opens the dashboard on
    it. When the dashboard ends for any reason, the emulator and its jobs end too and their data is
    deleted.
    """
    given = context.get_parameter_source("speed") is not ParameterSource.DEFAULT
    readonly = (context.find_object(CommandSettings) or CommandSettings()).readonly
    return run_demo(world=world, speed=speed if given else None, readonly=readonly)


def run_demo(*, world: str = DEMO_WORLD, speed: float | None = None, readonly: bool = False) -> ExitCode:
    """Run the demo from start to end; `speed` defaults to the setting.

    Raises CommandFailed without a terminal.
    """
    return _run_with_emulator(DEMO_REMOTE, world=world, speed=speed, data_dir=None, readonly=readonly)


def run_local(*, readonly: bool = False) -> ExitCode:
    """Run the dashboard on the local emulator, which keeps its data between runs.

    If one is already running for ``--remote local``, it is used and keeps running.
    """
    data_dir = default_data_dir(EMPTY_WORLD)
    if running_address(data_dir) is not None:
        need_terminal()
        from tui.app import run_dashboard

        loaded = load_or_defaults(os.environ, {"readonly": readonly or None})
        run_dashboard(local_remote(Output()), settings=loaded)
        return ExitCode.OK
    return _run_with_emulator(
        LOCAL_REMOTE, world=EMPTY_WORLD, speed=1.0, data_dir=data_dir, readonly=readonly
    )


def _run_with_emulator(
    remote_name: str, *, world: str, speed: float | None, data_dir: Path | None, readonly: bool
) -> ExitCode:
    """Run the dashboard on a new emulator, which is stopped however the dashboard ends.

    If this process is killed, the child stops because its standard input closes.
    """
    need_terminal()

    loaded = load_or_defaults(os.environ, {"readonly": readonly or None})
    if speed is None:
        speed = loaded.configuration.demo.speed
    child = EmulatorChild(world=world, speed=speed, data_dir=data_dir)
    try:
        child.launch()
        # textual takes about as long to import as the child takes to start: do both at once.
        from tui.app import run_dashboard

        child.wait_ready()
        run_dashboard(
            emulator_remote(remote_name, child.url, child.key_file), demo=world == DEMO_WORLD, settings=loaded
        )
    except EmulatorFailed as error:
        raise CommandFailed(str(error), ExitCode.UNEXPECTED) from error
    finally:
        child.shut_down()
    return ExitCode.OK


@contextmanager
def background_demo() -> Iterator[EmulatorChild]:
    """Start the demo's emulator for several dashboards; it stops with the context. Raises CommandFailed."""
    speed = load_or_defaults(os.environ).configuration.demo.speed
    try:
        with EmulatorChild(world=DEMO_WORLD, speed=speed) as child:
            yield child
    except EmulatorFailed as error:
        raise CommandFailed(str(error), ExitCode.UNEXPECTED) from error


def run_demo_page(url: str, key_file: Path, *, readonly: bool) -> ExitCode:
    """Run a dashboard on a demo kept by another process. Raises OSError if its key cannot be read."""
    from tui.app import run_dashboard

    loaded = load_or_defaults(os.environ, {"readonly": readonly or None})
    run_dashboard(emulator_remote(DEMO_REMOTE, url, key_file), demo=True, settings=loaded)
    return ExitCode.OK
