"""The command line: ``bt-tui`` opens the dashboard, ``bt-tui COMMAND`` runs a headless command.

Only click is imported here; the module of a command, with httpx and pydantic, when it is called.
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
    described,
)
from tui.commands.support.options import CommandSettings, examples, readonly_option, remote_option
from tui.commands.support.output import (
    ExitCode,
    Output,
    OutputClosed,
    cannot_write,
    explain,
    request_details,
    wants_details,
)
from tui.commands.support.terminal import opening_notice
from tui.system.termination import TerminationSignals
from tui.text.sanitize import sanitize_lines, traceback_text

EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code:>3}  {code.meaning}" for code in ExitCode)


def _show_help_json(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    Output().json(described(cli))
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
    # httpx imports rich and pygments for a command line of its own: a fifth of the time of `bt-tui jobs`.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None: it cannot be imported
    # pydantic looks for plugins in all installed packages, for which there is no use here: 4% of that time.
    sys.modules.setdefault("pydantic.plugin._loader", _NoPlugins("pydantic.plugin._loader"))
    _open_closed_streams()
    _replace_unencodable()
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
        _forget_stdout()
        return ExitCode.OK
    except (KeyboardInterrupt, click.Abort):
        Output().remark("interrupted")
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        _show_usage_error(error)
        return ExitCode.USAGE
    except Exception as error:  # noqa: BLE001 - the last stop before the person: a sentence, not a traceback
        return _fail(error)
    return int(result or ExitCode.OK)


def _show_usage_error(error: click.ClickException) -> None:
    """Print the error sanitized: it quotes the command line, which may contain pasted text."""
    words = StringIO()
    error.show(words)
    with suppress(OSError):  # stderr is closed, so there is nowhere to report
        click.echo(sanitize_lines(words.getvalue()), err=True, nl=False)


def _fail(error: Exception) -> int:
    message, code = explain(error)
    if wants_details():
        click.echo(traceback_text(error), err=True)
    output = Output()
    for line in (*message.splitlines(), *([request_details(error)] if wants_details() else [])):
        output.remark(line)
    return code


class _ClosedOutput(StringIO):
    """Standard output that was closed: what is written would be lost, so writing it fails."""

    name = "<stdout>"

    def write(self, _text: str) -> int:
        raise cannot_write("stdout", OSError(errno.EBADF, "it is closed"))


def _open_closed_streams() -> None:
    """Replace standard streams closed by the parent process (``>&-``).

    This must happen before any socket or file is opened: it would get the stream's descriptor and receive
    its output.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))
            if name == "stdout":
                sys.stdout = _ClosedOutput()


def _replace_unencodable() -> None:
    """Escape characters that the terminal's encoding cannot represent, instead of failing.

    Data from a pipe is still decoded strictly.
    """
    for stream in (sys.stdout, sys.stderr, sys.stdin):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and (stream is not sys.stdin or stream.isatty()):
            reconfigure(errors="backslashreplace")


def _forget_stdout() -> None:
    """Redirect stdout to the null device, so that the interpreter's final flush does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
