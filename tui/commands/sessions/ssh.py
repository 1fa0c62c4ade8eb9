"""``bt-tui ssh``: Open a shell on a node of a job.

``bt-tui ssh-config``: Let ssh, scp, rsync and editors reach nodes by name.
``bt-tui ssh-proxy`` (hidden)
``bt-tui ssh-sign`` (hidden)
``bt-tui sessions``: Show, extend or trigger the interactive sessions of a job.
``bt-tui update_session`` (hidden)
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
import platformdirs

from api_client.client import TrainingClient
from api_client.files import update_private_file, user_path
from api_client.models import AuthCode, TrainingJob
from api_client.ssh import (
    CERTIFICATE_SUFFIX,
    PATTERN,
    NodeHost,
    SshFolder,
    node_host,
    parse_host,
    relay,
)
from tui.commands.support.options import (
    Command,
    CommandSettings,
    examples,
    format_option,
    job_argument,
    job_named,
    remote_option,
    trigger_option,
)
from tui.commands.support.output import (
    JSON,
    TABLE,
    CommandFailed,
    CommandOutput,
    ExitCode,
    cannot_write_error,
    not_in_job_error,
    refuse_if,
)
from tui.commands.support.session import client_command, run_on_remote
from tui.commands.support.tables import print_list
from tui.tables.column import Column, Span, text_column
from tui.text.sanitize import sanitize
from tui.text.units import UNKNOWN, age


@examples("bt-tui ssh abc1234", "bt-tui ssh abc1234 --node 2 -- nvidia-smi")
@click.command()
@click.argument("job_id", metavar="JOB_ID")
@click.argument("command", metavar="[-- COMMAND...]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--node",
    type=click.IntRange(0, 100_000),
    default=0,
    show_default=True,
    metavar="N",
    help="Node number, from 0.",
)
@remote_option
@click.pass_obj
def ssh(settings: CommandSettings, job_id: str, command: tuple[str, ...], node: int) -> int:
    """Open a shell on a node of a running job, or run a command there, with the system's ssh.

    The job needs an interactive SSH session (session_provider in its config). Baseten signs a key created
    for this purpose, which is kept in your cache folder; each certificate is valid for some minutes. The
    exit code is that of ssh: the command's own, or 255 without a connection.
    """
    program = shutil.which("ssh")
    if program is None:
        raise CommandFailed("ssh not found; install OpenSSH", ExitCode.UNEXPECTED)
    folder = ssh_folder()
    hosts: list[NodeHost] = []

    async def sign_in(client: TrainingClient, _output: CommandOutput) -> None:
        job = await job_named(client, job_id)
        hosts.append(node_host(job.id, node))
        await request_certificate(client, job, hosts[0], folder)

    run_on_remote(settings, sign_in)
    host = hosts[0]
    arguments = [program, *connection_options(folder, host), host.name]
    if command:
        arguments += ["--", shlex.join(command) if len(command) > 1 else command[0]]
    return _run_ssh(arguments)


def ssh_folder() -> SshFolder:
    return SshFolder(platformdirs.user_cache_path("bt-tui") / "ssh", os.environ)


async def request_certificate(
    client: TrainingClient, job: TrainingJob, host: NodeHost, folder: SshFolder
) -> None:
    """Request a certificate for one connection to the node and store it in ``folder``.

    Raises CommandFailed for a job that has ended or does not have the node, and the client's errors.
    """
    if job.is_finished:
        raise CommandFailed(f"job {job.id} has ended; its nodes are gone", ExitCode.NOT_FOUND)
    if job.node_count is not None and host.node >= job.node_count:
        raise not_in_job_error(job.id, "node", str(host.node), map(str, range(job.node_count)))
    public_key = folder.public_key()
    signed_certificate = await client.sessions.sign_ssh(
        job.project_id, job.id, public_key=public_key, replica_id=str(host.node)
    )
    folder.store_ticket(host, signed_certificate, client.destinations)


def connection_options(folder: SshFolder, host: NodeHost) -> list[str]:
    """Return the ssh options for a connection: the certificate, and a proxy command that reaches the node."""
    proxy_command = shlex.join([*program_command(), "ssh-proxy", host.name]).replace("%", "%%")
    certificate = quotable_text(folder.certificate_path(host.name))
    lines = _host_options(folder, proxy_command, certificate)
    return [argument for line in (*lines, "LogLevel ERROR") for argument in ("-o", line.replace(" ", "=", 1))]


def _host_options(folder: SshFolder, proxy_command: str, certificate: str) -> list[str]:
    return [
        f"ProxyCommand {proxy_command}",
        "User baseten",
        f'IdentityFile "{quotable_text(folder.key_path)}"',
        f'CertificateFile "{certificate}"',
        "IdentitiesOnly yes",
        "StrictHostKeyChecking no",
        f"UserKnownHostsFile {os.devnull}",
    ]


def program_command() -> list[str]:
    """Return a command line that starts bt-tui from any folder and with any PATH."""
    installed_program = Path(sys.executable).with_name("bt-tui")
    # -P: a folder named tui in the working directory must not shadow this package.
    return [str(installed_program)] if installed_program.is_file() else [sys.executable, "-P", "-m", "tui"]


def quotable_text(value: object) -> str:
    """Return text for a quoted value in ssh_config. Raises CommandFailed for text that cannot be quoted."""
    text = str(value)
    # Versions of ssh read these characters differently, even in quotes.
    if not text.isprintable() or any(
        request_certificate in text for request_certificate in ('"', "\\", "${")
    ):
        raise CommandFailed(
            f"{sanitize(text)!r} can't be written to an ssh configuration: it contains a quote, a "
            "backslash, '${' or a control character",
            ExitCode.USAGE,
        )
    return text.replace("%", "%%")


def _run_ssh(arguments: list[str]) -> int:
    """Run ssh and return its exit code, which may be outside ``ExitCode``."""
    root = str(Path(__file__).resolve().parents[3])
    inherited_path = os.environ.get("PYTHONPATH")
    python_path = root if not inherited_path else root + os.pathsep + inherited_path
    try:
        code = subprocess.call(arguments, env=os.environ | {"PYTHONPATH": python_path})
    except OSError as error:
        raise CommandFailed(f"can't start ssh: {error.strerror}", ExitCode.UNEXPECTED) from error
    return code if code >= 0 else 128 - code  # ended by a signal: 128 + its number, as in shells


BLOCK_BEGIN, BLOCK_END = "# --- bt-tui ssh ---", "# --- end bt-tui ssh ---"
HOST_PATTERN = f"{PATTERN},!*'*,!*\\*"
"""Host pattern of the nodes, without the two characters that would end the quotes around a host."""


@examples(
    "bt-tui ssh-config --install",
    "ssh training-job-abc1234-0.ssh.baseten.co",
    "bt-tui ssh-config >> ~/.ssh/config",
)
@click.command("ssh-config")
@click.option("--install", is_flag=True, help="Write the block to ~/.ssh/config, replacing an earlier block.")
@click.option("--default-remote", hidden=True, help="Same as --remote.")
@click.option("--python", hidden=True, expose_value=False, help="Ignored: bt-tui itself is the proxy.")
@remote_option
@click.pass_obj
def ssh_config(settings: CommandSettings, install: bool, default_remote: str | None) -> None:
    """Print the ~/.ssh/config block for hosts training-job-JOB-NODE.ssh.baseten.co.

    Each connection gets a new certificate when ssh opens it. With --remote, the block uses that remote for
    all hosts; the name training-job-JOB-NODE.REMOTE.ssh.baseten.co selects another remote.
    """
    block = _config_block(settings.remote_name or default_remote)
    if not install:
        settings.output.write_text(block)
        return
    path = user_path(os.environ.get("BASETEN_SSH_CONFIG_PATH", "").strip() or "~/.ssh/config")
    try:
        _install_block(path, block)
    except OSError as error:
        raise cannot_write_error(path, error) from error
    settings.output.print_message(f"wrote {path}; connect with: ssh training-job-JOB_ID-0.ssh.baseten.co")


@click.command("ssh-sign", hidden=True)
@click.argument("host_name", metavar="HOST")
@remote_option
@click.pass_obj
def ssh_sign(settings: CommandSettings, host_name: str) -> None:
    """Get a certificate for a connection to the host; ssh runs this command because of ssh-config."""
    host = parse_host(host_name)
    if host.remote_name is not None:
        settings = CommandSettings(remote_name=host.remote_name, output=settings.output)
    folder = ssh_folder()

    async def sign_in(client: TrainingClient, _output: CommandOutput) -> None:
        await request_certificate(client, await client.jobs.find(host.job_id), host, folder)

    run_on_remote(settings, sign_in)


@click.command("ssh-proxy", hidden=True)
@click.argument("host_name", metavar="HOST")
@click.pass_obj
def ssh_proxy(_settings: CommandSettings, host_name: str) -> None:
    """Forward the bytes of a connection whose certificate is signed; ssh runs this as its ProxyCommand."""
    ticket = ssh_folder().take_ticket(parse_host(host_name))
    source, sink = sys.stdin.fileno(), sys.stdout.fileno()
    asyncio.run(relay(ticket, source=source, sink=sink, environ=os.environ))


def _config_block(remote_name: str | None) -> str:
    folder = ssh_folder()
    certificate = quotable_text(folder.certificate_path("")).removesuffix(CERTIFICATE_SUFFIX)
    remote = [f"--remote={remote_name}"] if remote_name else []
    options = _host_options(folder, _host_command("ssh-proxy"), f"{certificate}%n{CERTIFICATE_SUFFIX}")
    match = f'Match originalhost "{HOST_PATTERN}" exec "{_host_command("ssh-sign", *remote)}"'
    return "\n".join([BLOCK_BEGIN, match, *(f"    {option}" for option in options), BLOCK_END, ""])


def _host_command(*arguments: str) -> str:
    """Return a shell command for this program; ssh replaces %n with the host as typed."""
    return f"{quotable_text(shlex.join([*program_command(), *arguments]))} '%n'"


def _install_block(path: Path, block: str) -> None:
    """Replace an earlier block in place, or append the block; keep the rest of the file."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)

    def change(content: bytes) -> bytes:
        text = content.decode("utf-8", "surrogateescape")
        before_block, separator, after_begin = text.partition(BLOCK_BEGIN)
        _, end_marker, after_block = after_begin.partition(BLOCK_END + "\n")
        if separator and end_marker:
            text = before_block + block + after_block
        else:
            text += ("\n" if text and not text.endswith("\n") else "") + block
        return text.encode("utf-8", "surrogateescape")

    update_private_file(Path(os.path.realpath(path)), change)


def _minutes_option(name: str) -> Callable[[Command], Command]:
    minutes = click.IntRange(min=-1)
    return click.option(
        name,
        "minutes",
        type=minutes,
        metavar="MINUTES",
        help="Extend the sessions by this many minutes; -1: ten years.",
    )


@examples(
    "bt-tui sessions abc1234",
    "bt-tui sessions abc1234 --update-timeout 120",
    "bt-tui sessions abc1234 -o json | jq -r '.[0].auth_url'",
)
@click.command()
@job_argument
@_minutes_option("--update-timeout")
@trigger_option("--update-trigger", "trigger", help="When sessions start.")
@click.option(
    "--messages", "with_messages", is_flag=True, hidden=True, help="JSON as truss train isession prints it."
)
@format_option(TABLE, JSON, extra_names=["--format"])
@client_command
async def sessions(
    client: TrainingClient,
    output: CommandOutput,
    job_id: str,
    minutes: int | None,
    trigger: str | None,
    with_messages: bool,
) -> None:
    """Show how to sign in to a job's interactive sessions, by replica, and when the codes expire.

    The codes open a shell in the job: treat them like passwords. --update-timeout and --update-trigger
    change every session of the job first. JSON is a list; with "bt-tui isession", the object that
    "truss train isession" prints: auth_codes and update_messages.
    """
    await _change_and_print(client, output, job_id, minutes, trigger, with_messages=with_messages)


@examples("bt-tui update_session abc1234 --timeout-minutes 60")
@click.command("update_session", hidden=True)
@click.argument("job_id", metavar="JOB_ID")
@_minutes_option("--timeout-minutes")
@trigger_option("--trigger", help="When sessions start.")
@client_command
async def update_session(
    client: TrainingClient, output: CommandOutput, job_id: str, minutes: int | None, trigger: str | None
) -> None:
    """Change the interactive sessions of a job: bt-tui sessions with the official command's flags."""
    refuse_if(minutes is None and trigger is None, "nothing to change: give --timeout-minutes or --trigger")
    await _change_and_print(client, output, job_id, minutes, trigger)


async def _change_and_print(
    client: TrainingClient,
    output: CommandOutput,
    job_id: str,
    minutes: int | None,
    trigger: str | None,
    *,
    with_messages: bool = False,
) -> None:
    refuse_if(minutes == 0, "0 minutes would change nothing; -1 means ten years")
    job = await job_named(client, job_id)
    codes = await client.sessions.auth_codes(job.project_id, job.id)
    messages = []
    if minutes is not None or trigger is not None:
        messages = await _update_sessions(client, output, job, codes, minutes=minutes, trigger=trigger)
        codes = await client.sessions.auth_codes(job.project_id, job.id)
    codes.sort(key=lambda code: code.replica_id)
    if output.format == JSON and with_messages:
        output.print_json({"auth_codes": codes} | ({"update_messages": messages} if messages else {}))
        return
    empty_message = f"job {job.id} has no interactive session (set runtime.interactive_session in its config)"
    print_list(output, codes, COLUMNS, (), empty_message)


async def _update_sessions(
    client: TrainingClient,
    output: CommandOutput,
    job: TrainingJob,
    codes: Sequence[AuthCode],
    *,
    minutes: int | None,
    trigger: str | None,
) -> list[str]:
    """Change each session once, even if several replicas share it; return the server's messages."""
    if not codes:
        raise CommandFailed(f"job {job.id} has no interactive session to change", ExitCode.NOT_FOUND)
    messages = []
    for session_id in dict.fromkeys(code.session_id for code in codes):
        response = await client.sessions.update(
            job.project_id, job.id, session_id, timeout_minutes=minutes, trigger=trigger
        )
        messages.append(response.message or "changed")
        output.print_message(f"session {session_id}: {messages[-1]}")
    return messages


def _expiry_cell(code: AuthCode) -> list[Span]:
    if code.expires_at is None:
        return [(UNKNOWN, "plain")]
    left_s = (code.expires_at - datetime.now(UTC)).total_seconds()
    return [(f"in {age(left_s)}", "plain") if left_s > 0 else ("ended", "muted")]


COLUMNS: tuple[Column[AuthCode], ...] = (
    text_column("REPLICA", lambda code: code.replica_id or UNKNOWN, "strong"),
    text_column("CODE", lambda code: code.auth_code or UNKNOWN),
    Column("ENDS", "ENDS", _expiry_cell),
    text_column("TUNNEL", lambda code: code.tunnel_name or UNKNOWN),
    text_column("SIGN IN AT", lambda code: code.auth_url or UNKNOWN),
)
