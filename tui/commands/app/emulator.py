"""``bt-tui emulator``: Serve the training API on this machine.

``bt-tui demo``: Try the dashboard on demo data: no account, no GPU.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict, replace
from pathlib import Path

import click
from click.core import ParameterSource

from api_client.emulator.data_folder import EmulatorAddress, running_address
from api_client.emulator.processes import EmulatorChild, stop_running
from tui.commands.support.options import CommandSettings, examples, format_option, readonly_option
from tui.commands.support.output import JSON, TABLE, CommandOutput, ExitCode
from tui.commands.support.remotes import (
    DEMO_WORLD,
    EMPTY_WORLD,
    dashboard_settings,
    default_data_dir,
    emulator_remote,
)
from tui.commands.support.tables import table_text_if_any
from tui.commands.support.terminal import need_terminal
from tui.settings.loading import load_or_defaults
from tui.tables.column import Column, text_column

world_option = click.option(
    "--world",
    type=click.Choice((DEMO_WORLD, EMPTY_WORLD)),
    default=DEMO_WORLD,
    show_default=True,
    help="Initial data: simulated projects and jobs, or nothing.",
)
speed_option = click.option(
    "--speed",
    type=click.FloatRange(0.1, 1000.0),
    default=1.0,
    show_default=True,
    metavar="X",
    help="Speed of the simulated jobs, as a multiple of real time.",
)


@examples(
    "bt-tui emulator",
    "bt-tui emulator --world empty --data ./lab --port 9000",
    "bt-tui emulator --speed 60",
    "bt-tui emulator status",
    "bt-tui emulator stop",
)
@click.group(invoke_without_command=True)
@click.option(
    "--port", type=click.IntRange(0, 65535), metavar="N", help="Port (default: 8765; 0: any free port)."
)
@click.option(
    "--data",
    "data_dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for jobs, logs and checkpoints (default: in your user data folder).",
)
@world_option
@speed_option
@click.option(
    "--url-lifetime",
    "url_lifetime_s",
    type=click.IntRange(1, 7 * 86_400),
    default=900,
    show_default=True,
    metavar="SECONDS",
    help="Lifetime of presigned URLs.",
)
@click.pass_context
def emulator(
    context: click.Context,
    /,
    port: int | None,
    data_dir: Path | None,
    world: str,
    speed: float,
    url_lifetime_s: int,
) -> ExitCode | None:
    """Serve Baseten Training's REST API on this machine until ctrl-c.

    "--remote local" with any other command starts an emulator in the background, with its own data, which
    keeps running for its jobs until "bt-tui emulator stop".

    It listens on loopback only and accepts only its own key. Submitted jobs really run their
    start_commands on this machine, unsandboxed, as you: submit only what you would run yourself.
    """
    if context.invoked_subcommand is not None:
        return None
    from api_client.emulator.server import EmulatorOptions, serve

    output = context.ensure_object(CommandSettings).output
    folder = data_dir if data_dir is not None else default_data_dir(world)
    options = EmulatorOptions(
        data_dir=folder,
        port=port,
        world=world,
        speed=speed,
        url_lifetime_s=url_lifetime_s,
    )
    serve(options, on_ready=lambda address: announce(output, address))
    return ExitCode.OK


EMULATOR_COLUMNS: tuple[Column[EmulatorAddress], ...] = (
    text_column("ADDRESS", lambda address: address.url, "strong"),
    text_column("PROCESS", lambda address: str(address.pid), right_aligned=True),
    text_column("DATA", lambda address: address.data_dir),
)
data_folder_option = click.option(
    "--data",
    "data_dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The emulator's data folder (default: all emulators in your user data folder).",
)


@examples("bt-tui emulator status", "bt-tui emulator status -o json | jq -r '.[].url'")
@emulator.command(short_help="Show the emulators that run in your data folder.")
@data_folder_option
@format_option(TABLE, JSON)
@click.pass_obj
def status(settings: CommandSettings, data_dir: Path | None) -> ExitCode:
    """Show which emulators run in your user data folder, or in DIR; the exit code is 7 if none is running."""
    output = settings.output
    addresses = [
        address for folder in _data_folders(data_dir) if (address := running_address(folder)) is not None
    ]
    output.print_result(
        [asdict(address) for address in addresses], table_text_if_any(EMULATOR_COLUMNS, addresses, output)
    )
    if not addresses:
        location = "" if data_dir else " in your user data folder (--data DIR looks in another)"
        output.print_message(f"no emulator is running{location}; --remote local starts one when needed")
    return ExitCode.OK if addresses else ExitCode.NOT_FOUND


@examples("bt-tui emulator stop", "bt-tui emulator stop --data ./lab")
@emulator.command(short_help="Stop the emulators in your data folder and their jobs.")
@data_folder_option
@click.pass_obj
def stop(settings: CommandSettings, data_dir: Path | None) -> None:
    """Stop the emulators in your user data folder, or in DIR, and their jobs; their data is kept."""
    stopped_folders = [folder for folder in _data_folders(data_dir) if stop_running(folder)]
    for folder in stopped_folders:
        settings.output.print_message(f"stopped the emulator in {folder}; its data is kept")
    if not stopped_folders:
        settings.output.print_message("no emulator is running")


def _data_folders(data_dir: Path | None) -> list[Path]:
    return [data_dir] if data_dir else [default_data_dir(world) for world in (EMPTY_WORLD, DEMO_WORLD)]


def announce(output: CommandOutput, address: EmulatorAddress) -> None:
    """Print how to connect to the emulator: export commands to stdout, the rest to stderr.

    The key is not printed: its export command reads it from the key file.
    """
    output.print_message(f"serving Baseten Training on {address.url}; data in {address.data_dir}")
    output.print_message(
        "jobs run unsandboxed on this machine, as you; ctrl-c stops the emulator and its jobs"
    )
    output.print_message("to use it, run this in another terminal, then bt-tui:")
    output.write_text(
        f'export BASETEN_API_KEY="$(cat {shlex.quote(address.key_file)})"\n'
        f"export BASETEN_REMOTE_URL={address.url}\n"
        f"export BASETEN_MANAGEMENT_API_URL_OVERRIDE={address.url}\n"
    )


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
    has_speed_option = context.get_parameter_source("speed") is not ParameterSource.DEFAULT
    run_demo(context.ensure_object(CommandSettings), world=world, speed=speed if has_speed_option else None)


def run_demo(settings: CommandSettings, *, world: str = DEMO_WORLD, speed: float | None = None) -> None:
    """Run the dashboard on a new emulator in a child process, and stop the emulator when the dashboard ends.

    If this process is killed, the child stops because its standard input closes. `speed` defaults to the
    setting ``demo.speed``. Raises CommandFailed without a terminal.
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
    """Return a context manager that runs the emulator with the demo world, for several dashboards."""
    return EmulatorChild(world=DEMO_WORLD, speed=load_or_defaults(os.environ).configuration.demo.speed)


def run_demo_page(settings: CommandSettings, url: str, key_file: Path) -> None:
    """Run a dashboard on a demo emulator that another process started.

    Raises OSError if the key file cannot be read.
    """
    from tui.app import run_dashboard

    remote = replace(emulator_remote(DEMO_REMOTE, url, key_file), options=None)
    run_dashboard(remote, demo=True, settings=dashboard_settings(settings))
