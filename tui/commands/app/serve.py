"""``bt-tui serve``: Serve the dashboard in a browser.

``bt-tui serve-page`` (hidden)

textual-serve (from the extra ``web``) serves the page, and starts ``serve-page`` for each visitor.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import click

from api_client.addresses import is_loopback
from tui.commands.app.dashboard import open_page
from tui.commands.app.emulator import background_demo, run_demo_page
from tui.commands.support.options import CommandSettings, examples, readonly_option, remote_option
from tui.commands.support.output import CommandFailed, ExitCode
from tui.commands.support.remotes import chosen_remote

PAGE_COMMAND = "serve-page"
MISSING_PACKAGE_TEXT = "bt-tui serve needs textual-serve: {python} -m pip install 'textual-serve>=1.1,<1.2'"
EXPOSE_WARNING = (
    "--host {host} lets other machines use the dashboard with your key: read logs, download checkpoints, "
    "start, stop and deploy, and save files on this machine as you. The traffic is not encrypted. Add "
    "--expose if you want this (and --readonly if others may only watch). To connect from another machine "
    "without --expose, use ssh -L {port}:127.0.0.1:{port}."
)


@examples(
    "bt-tui serve                  then open the printed address",
    "bt-tui serve --demo           the demo world, without an account",
    "bt-tui serve --readonly       a page that can only watch",
)
@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port; 0 picks a free one.",
)
@click.option("--demo", is_flag=True, help="Show a demo world instead of your workspace.")
@click.option("--expose", is_flag=True, help="Allow a --host that other machines can reach.")
@remote_option
@readonly_option
@click.pass_obj
def serve(settings: CommandSettings, host: str, port: int, demo: bool, expose: bool) -> None:
    """Serve the dashboard to a browser on this machine.

    Each page has its own dashboard, which ends when the page is closed. Logs, tables and checkpoints that
    you save become browser downloads; several files are combined into one archive. Downloads in progress
    continue after their page is closed. Your key stays in this process and its children; it is never part
    of an address or a page. The printed address contains a token; without it, neither other users of this
    machine nor pages of other sites can connect.
    """
    if any(find_spec(name) is None for name in ("textual_serve", "aiohttp")):
        raise CommandFailed(MISSING_PACKAGE_TEXT.format(python=shlex.quote(sys.executable)), ExitCode.USAGE)
    from tui.web.access import TOKEN_PARAMETER, AccessGuard
    from tui.web.server import DashboardServer, host_names

    if not is_loopback(host):
        if not expose:
            raise CommandFailed(EXPOSE_WARNING.format(host=host, port=port), ExitCode.USAGE)
        settings.output.print_message("other machines can connect; the traffic is not encrypted")
    guard = AccessGuard(host_names(host))

    def announce(actual_port: int) -> None:
        url_host = f"[{host}]" if ":" in host else host
        settings.output.write_text(f"http://{url_host}:{actual_port}/?{TOKEN_PARAMETER}={guard.token}\n")
        settings.output.print_message(
            "open this address in a browser; anyone who has it can use the dashboard"
        )
        settings.output.print_message("ctrl-c stops the server")

    with ExitStack() as resources:
        arguments = _page_arguments(settings, resources, demo=demo)
        server = DashboardServer(_command_line(arguments), guard)
        try:
            asyncio.run(server.run(host, port, announce))
        except OSError as error:
            reason = error.strerror or str(error)
            raise CommandFailed(f"cannot listen on {host}:{port}: {reason}", ExitCode.USAGE) from error
        except KeyboardInterrupt:
            pass


@click.command(PAGE_COMMAND, hidden=True)
@click.option("--demo-url", metavar="URL")
@click.option("--demo-key-file", type=click.Path(path_type=Path), metavar="FILE")
@remote_option
@readonly_option
@click.pass_obj
def serve_page(settings: CommandSettings, demo_url: str | None, demo_key_file: Path | None) -> None:
    """Run the dashboard of one page; bt-tui serve starts this command and communicates with it over pipes."""
    if "TEXTUAL_DRIVER" not in os.environ:
        raise CommandFailed("serve-page is for bt-tui serve and can't run in a terminal", ExitCode.USAGE)
    if demo_url is not None and demo_key_file is not None:
        run_demo_page(settings, demo_url, demo_key_file)
    else:
        open_page(settings)


def _page_arguments(settings: CommandSettings, resources: ExitStack, *, demo: bool) -> list[str]:
    """Return the arguments for the process of a page. They include no key: that process reads the key itself.

    Raises RemoteNotConfigured now rather than on every page.
    """
    arguments = [PAGE_COMMAND]
    if settings.readonly:
        arguments.append("--readonly")
    if demo:
        child = resources.enter_context(background_demo())
        return [*arguments, "--demo-url", child.url, "--demo-key-file", str(child.key_file)]
    chosen_remote(settings)
    if settings.remote_name is not None:
        arguments += ["--remote", settings.remote_name]
    return arguments


def _command_line(arguments: list[str]) -> str:
    """Return the shell command that starts this program, however this process was started.

    ``-P`` keeps modules in the working folder from shadowing the package.
    """
    root = str(Path(__file__).resolve().parents[3])
    program = f"import sys; sys.path.append({root!r}); from tui.cli import main; sys.exit(main())"
    return f"exec {shlex.join([sys.executable, '-P', '-c', program, *arguments])}"
