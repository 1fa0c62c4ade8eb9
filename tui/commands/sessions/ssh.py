"""``bt-tui ssh``: Open a shell on a node of a job.

``bt-tui ssh-config``: Let ssh, scp, rsync and editors reach nodes by name.
``bt-tui ssh-proxy`` (hidden)
``bt-tui ssh-sign`` (hidden)
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import platformdirs

from api_client.client import TrainingClient
from api_client.files import update_private_file, user_path
from api_client.ssh import (
    CERTIFICATE_SUFFIX,
    PATTERN,
    NodeHost,
    SshFolder,
    node_host,
    parse_host,
    relay,
)
from tui.commands.support.exit_codes import CommandFailed, ExitCode, not_in_job
from tui.commands.support.options import CommandSettings, examples, remote_option
from tui.commands.support.output import Output, cannot_write
from tui.commands.support.session import run_on_remote
from tui.text.sanitize import sanitize

UNQUOTABLE = ('"', "\\", "${")
"""Texts that cannot be quoted in ssh_config: ssh versions differ in how they read them."""


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
    host = node_host(job_id, node)
    folder = ssh_folder()
    sign(settings, host, folder)
    arguments = [program, *connection_options(folder, host), host.name]
    if command:
        arguments += ["--", shlex.join(command) if len(command) > 1 else command[0]]
    return _run(arguments)


def ssh_folder() -> SshFolder:
    return SshFolder(platformdirs.user_cache_path("bt-tui") / "ssh", os.environ)


def sign(settings: CommandSettings, host: NodeHost, folder: SshFolder) -> None:
    """Request a certificate for one connection to the node and store the result.

    Raises CommandFailed for a job that has ended or does not have the node, and the client's errors.
    """

    async def ask(client: TrainingClient, _output: Output) -> None:
        job = await client.jobs.find(host.job_id)
        if job.is_finished:
            raise CommandFailed(f"job {job.id} has ended; its nodes are gone", ExitCode.NOT_FOUND)
        if job.node_count is not None and host.node >= job.node_count:
            raise not_in_job(job.id, "node", str(host.node), map(str, range(job.node_count)))
        public_key = folder.public_key()
        signed = await client.sessions.sign_ssh(
            job.project_id, job.id, public_key=public_key, replica_id=str(host.node)
        )
        folder.keep(host, signed, client.destinations)

    run_on_remote(settings, ask)


def connection_options(folder: SshFolder, host: NodeHost) -> list[str]:
    """Return the ssh options for a connection: the certificate identifies us, and the proxy the node."""
    proxy_command = shlex.join([*own_program(), "ssh-proxy", host.name]).replace("%", "%%")
    certificate = quotable(folder.certificate_path(host.name))
    lines = _host_options(folder, proxy_command, certificate)
    return [part for line in (*lines, "LogLevel ERROR") for part in ("-o", line.replace(" ", "=", 1))]


def _host_options(folder: SshFolder, proxy_command: str, certificate: str) -> list[str]:
    return [
        f"ProxyCommand {proxy_command}",
        "User baseten",
        f'IdentityFile "{quotable(folder.key_path)}"',
        f'CertificateFile "{certificate}"',
        "IdentitiesOnly yes",
        "StrictHostKeyChecking no",
        f"UserKnownHostsFile {os.devnull}",
    ]


def own_program() -> list[str]:
    """Return a command line that starts this program from any folder and with any PATH."""
    installed = Path(sys.executable).with_name("bt-tui")
    # -P: a folder named tui in the working directory must not shadow this package.
    return [str(installed)] if installed.is_file() else [sys.executable, "-P", "-m", "tui"]


def quotable(value: object) -> str:
    """Return text for a quoted value in ssh_config. Raises CommandFailed for text that cannot be quoted."""
    text = str(value)
    if not text.isprintable() or any(sign in text for sign in UNQUOTABLE):
        raise CommandFailed(
            f"{sanitize(text)!r} can't be written to an ssh configuration: it contains a quote, a "
            "backslash, '${' or a control character",
            ExitCode.USAGE,
        )
    return text.replace("%", "%%")


def _run(arguments: list[str]) -> int:
    """Run ssh and return its exit code, which may be outside ``ExitCode``."""
    root = str(Path(__file__).resolve().parents[3])
    inherited = os.environ.get("PYTHONPATH")
    path = root if not inherited else root + os.pathsep + inherited
    try:
        code = subprocess.call(arguments, env=os.environ | {"PYTHONPATH": path})
    except OSError as error:
        raise CommandFailed(f"can't start ssh: {error.strerror}", ExitCode.UNEXPECTED) from error
    return code if code >= 0 else 128 - code  # of a signal, as in shells


BEGINNING, END = "# --- bt-tui ssh ---", "# --- end bt-tui ssh ---"
HOSTS = f"{PATTERN},!*'*,!*\\*"
"""Host pattern of the nodes, without the two characters that would end the quotes around a host."""


@examples(
    "bt-tui ssh-config --install",
    "ssh training-job-abc1234-0.ssh.baseten.co",
    "bt-tui ssh-config >> ~/.ssh/config",
)
@click.command("ssh-config")
@click.option("--install", is_flag=True, help="Write it to ~/.ssh/config, replacing an earlier one.")
@click.option("--default-remote", hidden=True, help="Same as --remote.")
@click.option("--python", hidden=True, expose_value=False, help="Ignored: bt-tui itself is the proxy.")
@remote_option
@click.pass_obj
def ssh_config(settings: CommandSettings, install: bool, default_remote: str | None) -> None:
    """Print the ~/.ssh/config block for hosts training-job-JOB-NODE.ssh.baseten.co.

    Each connection gets a new certificate when ssh opens it. With --remote, that remote is used for all
    of them; training-job-JOB-NODE.REMOTE.ssh.baseten.co names one in the host.
    """
    block = _block(settings.remote_name or default_remote)
    if not install:
        settings.output.data(block)
        return
    path = user_path(os.environ.get("BASETEN_SSH_CONFIG_PATH", "").strip() or "~/.ssh/config")
    try:
        _install(path, block)
    except OSError as error:
        raise cannot_write(path, error) from error
    settings.output.remark(f"wrote {path}; connect with: ssh training-job-JOB_ID-0.ssh.baseten.co")


@click.command("ssh-sign", hidden=True)
@click.argument("host_name", metavar="HOST")
@remote_option
@click.pass_obj
def ssh_sign(settings: CommandSettings, host_name: str) -> None:
    """For ssh_config: get a certificate for a connection to the host."""
    host = parse_host(host_name)
    if host.remote_name is not None:
        settings = CommandSettings(remote_name=host.remote_name, output=settings.output)
    sign(settings, host, ssh_folder())


@click.command("ssh-proxy", hidden=True)
@click.argument("host_name", metavar="HOST")
@click.pass_obj
def ssh_proxy(_settings: CommandSettings, host_name: str) -> None:
    """For ssh: forward the bytes of a connection whose certificate is signed."""
    ticket = ssh_folder().take(parse_host(host_name))
    source, sink = sys.stdin.fileno(), sys.stdout.fileno()
    asyncio.run(relay(ticket, source=source, sink=sink, environ=os.environ))


def _block(remote_name: str | None) -> str:
    folder = ssh_folder()
    certificate = quotable(folder.certificate_path("")).removesuffix(CERTIFICATE_SUFFIX)
    remote = [f"--remote={remote_name}"] if remote_name else []
    options = _host_options(folder, _command("ssh-proxy"), f"{certificate}%n{CERTIFICATE_SUFFIX}")
    match = f'Match originalhost "{HOSTS}" exec "{_command("ssh-sign", *remote)}"'
    return "\n".join([BEGINNING, match, *(f"    {option}" for option in options), END, ""])


def _command(*arguments: str) -> str:
    """Return a shell command for this program; ssh replaces %n with the host as typed."""
    return f"{quotable(shlex.join([*own_program(), *arguments]))} '%n'"


def _install(path: Path, block: str) -> None:
    """Replace an earlier block in place, or append the block; keep the rest of the file."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)

    def change(content: bytes) -> bytes:
        text = content.decode("utf-8", "surrogateescape")
        before, separator, rest = text.partition(BEGINNING)
        _, ended, after = rest.partition(END + "\n")
        if separator and ended:
            text = before + block + after
        else:
            text += ("\n" if text and not text.endswith("\n") else "") + block
        return text.encode("utf-8", "surrogateescape")

    update_private_file(Path(os.path.realpath(path)), change)
