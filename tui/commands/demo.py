"""``bt-tui demo``: an emulator in a child process and the dashboard on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tui.commands.emulator import DEMO_WORLD, EMPTY_WORLD, default_data_dir, speed_option, world_option
from tui.commands.exit_codes import ExitCode
from tui.commands.failures import CommandFailed
from tui.commands.options import examples
from tui.commands.terminal import need_terminal

if TYPE_CHECKING:
    from api_client.emulator.child import EmulatorChild
    from api_client.remotes import Remote

DEMO_REMOTE = "demo"
LOCAL_REMOTE = "this-machine"


@click.command(
    short_help="Look around in a demo world: no account, no GPU.",
    epilog=examples(
        "bt-tui demo",
        "bt-tui demo --speed 10",
    ),
)
@world_option
@speed_option
def demo(world: str, speed: float) -> ExitCode:
    """Look around in a demo world on this machine: no account, no GPU.

    It starts an emulator of Baseten Training in a child process, with a team's worth of scripted projects
    and jobs and one real two-node training run on this machine's CPU, and opens the dashboard on it. When
    the dashboard ends, however it ends, the emulator and its jobs end too and their data is deleted.
    """
    return run_demo(world=world, speed=speed)


def run_demo(*, world: str = DEMO_WORLD, speed: float = 1.0) -> ExitCode:
    """The demo from start to end. Raises CommandFailed without a terminal."""
    return _run_beside_emulator(DEMO_REMOTE, world=world, speed=speed, data_dir=None)


def run_local() -> ExitCode:
    """The dashboard on an emulator of one's own, whose data stays for the next time."""
    return _run_beside_emulator(
        LOCAL_REMOTE, world=EMPTY_WORLD, speed=1.0, data_dir=default_data_dir(EMPTY_WORLD)
    )


def _run_beside_emulator(remote_name: str, *, world: str, speed: float, data_dir: Path | None) -> ExitCode:
    """The dashboard on an emulator of its own, which is stopped however the dashboard ends.

    Should this process be killed, the closing of the child's standard input tells the child.
    """
    need_terminal()
    from api_client.emulator.child import EmulatorChild, EmulatorFailed

    child = EmulatorChild(world=world, speed=speed, data_dir=data_dir)
    try:
        child.launch()
        # textual takes about as long to import as the child takes to start: do both at once.
        from tui.app import run_dashboard

        child.wait_ready()
        run_dashboard(_remote_of(child, remote_name), demo=world == DEMO_WORLD)
    except EmulatorFailed as error:
        raise CommandFailed(str(error), ExitCode.UNEXPECTED) from error
    finally:
        child.shut_down()
    return ExitCode.OK


def _remote_of(child: EmulatorChild, name: str) -> Remote:
    from pydantic import SecretStr

    from api_client.remotes import Remote

    return Remote(
        name=name,
        app_url=child.url,
        api_url=child.url,
        key=SecretStr(child.key),
        key_origin=f"the emulator's folder {child.data_dir}",
    )
