"""The command line: ``bt-tui`` opens the dashboard, ``bt-tui COMMAND`` runs a headless command.

Only click is imported at the start. The module of a command, and with it httpx and pydantic, is imported
when the command runs.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import StringIO
from types import ModuleType

import click

from api_client.version import __version__
from tui.commands.support.catalogue import (
    COMPLETION_VARIABLE,
    PROGRAM,
    LazyGroup,
    answer_completion,
    help_document,
)
from tui.commands.support.options import CommandSettings, examples, readonly_option, remote_option
from tui.commands.support.output import (
    CommandOutput,
    ExitCode,
    OutputClosed,
    cannot_write_error,
    explain,
    request_details,
    wants_details,
)
from tui.commands.support.terminal import opening_notice
from tui.system.termination import TerminationSignals
from tui.text.sanitize import sanitize_lines, traceback_text

EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {code.meaning}" for code in ExitCode)


def _show_help_json(context: click.Context, _parameter: click.Parameter, is_requested: bool) -> None:
    if not is_requested or context.resilient_parsing:
        return
    CommandOutput().print_json(help_document(cli))
    context.exit()


@examples(
    "bt-tui demo                    explore without an account",
    "bt-tui                         open the dashboard on your workspace",
    "bt-tui jobs --status running   list running jobs",
    "bt-tui logs JOB_ID --follow    follow a log until the job ends",
)
@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES,
)
@remote_option
@readonly_option
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
@click.option(
    "--help-json",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_help_json,
    help="Print all commands, options and exit codes as JSON, for programs.",
)
@click.pass_context
def cli(context: click.Context) -> None:
    """Terminal dashboard for Baseten Training.

    Without a command it opens the dashboard. Commands print data to stdout and messages to stderr, so you can
    pipe them; JSON uses the API's own field names.

    To connect, set BASETEN_API_KEY (with BASETEN_REMOTE_URL and BASETEN_MANAGEMENT_API_URL_OVERRIDE for
    other hosts), or use ~/.trussrc, where --remote NAME selects a section.
    """
    if context.invoked_subcommand is None:
        with opening_notice():
            from tui.commands.app.dashboard import open_dashboard
        open_dashboard(context.ensure_object(CommandSettings))


class _NoPlugins(ModuleType):
    def get_plugins(self) -> tuple[object, ...]:
        return ()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (default: ``sys.argv``) and return its exit code; errors are printed as messages."""
    # httpx imports rich and pygments for its own command line: a fifth of the time of `bt-tui jobs`.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None: it cannot be imported
    # pydantic searches all installed packages for plugins, of which we need none: 4% of that time.
    sys.modules.setdefault("pydantic.plugin._loader", _NoPlugins("pydantic.plugin._loader"))
    _open_closed_streams()
    _escape_unencodable()
    if arguments is None and os.environ.get(COMPLETION_VARIABLE):
        answer_completion(cli)
    with TerminationSignals() as termination:
        return termination.exit_code(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        result = cli.main(
            args=list(arguments) if arguments is not None else None,
            prog_name=PROGRAM,
            standalone_mode=False,
        )
    except OutputClosed:
        _discard_stdout()
        return ExitCode.OK
    except (KeyboardInterrupt, click.Abort):
        CommandOutput().print_message("interrupted")
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        _show_usage_error(error)
        return ExitCode.USAGE
    except Exception as error:  # noqa: BLE001 - the last handler: users get a message, not a traceback
        return _report_error(error)
    return int(result or ExitCode.OK)


def _show_usage_error(error: click.ClickException) -> None:
    """Print the error sanitized: error messages quote the command line, which may contain pasted text."""
    message = StringIO()
    error.show(message)
    with suppress(OSError):  # stderr is closed, so there is nowhere to report
        click.echo(sanitize_lines(message.getvalue()), err=True, nl=False)


def _report_error(error: Exception) -> int:
    message, code = explain(error)
    if wants_details():
        click.echo(traceback_text(error), err=True)
    output = CommandOutput()
    for line in (*message.splitlines(), *([request_details(error)] if wants_details() else [])):
        output.print_message(line)
    return code


class _ClosedOutput(StringIO):
    """Stands in for a closed stdout: writing raises an error, because the text would be lost."""

    name = "<stdout>"

    def write(self, _text: str) -> int:
        raise cannot_write_error("stdout", OSError(errno.EBADF, "it is closed"))


def _open_closed_streams() -> None:
    """Replace standard streams closed by the parent process (``>&-``).

    This must happen before any socket or file is opened, which would otherwise get the stream's
    descriptor, and thus receive the stream's output.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))
            if name == "stdout":
                sys.stdout = _ClosedOutput()


def _escape_unencodable() -> None:
    """Escape characters that the terminal's encoding cannot represent, instead of failing.

    Data from a pipe is still decoded strictly.
    """
    for stream in (sys.stdout, sys.stderr, sys.stdin):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and (stream is not sys.stdin or stream.isatty()):
            reconfigure(errors="backslashreplace")


def _discard_stdout() -> None:
    """Redirect stdout to the null device, so that the interpreter's final flush does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
