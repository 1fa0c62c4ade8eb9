"""``bt-tui ssh-config``, so that plain ``ssh``, scp, rsync and editors reach the nodes; and what it calls."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from pathlib import Path

import click

from api_client.ssh.hosts import PATTERN
from tui.commands.exit_codes import ExitCode
from tui.commands.options import Settings, examples, remote_option
from tui.commands.output import cannot_write
from tui.commands.ssh import NODE_USER, own_program, quotable, sign, ssh_folder

CONFIG_VARIABLE = "BASETEN_SSH_CONFIG_PATH"
DEFAULT_CONFIG = "~/.ssh/config"
BEGINNING, END = "# --- bt-tui ssh ---", "# --- end bt-tui ssh ---"
CONFIG_FOLDER_MODE = 0o700
HOSTS = f"{PATTERN},!*'*,!*\\*"
"""The nodes' hosts. The host is part of a shell's command, in quotes that these two signs would end."""


@click.command(
    "ssh-config",
    short_help="Let ssh, scp, rsync and editors reach nodes by name.",
    epilog=examples(
        "bt-tui ssh-config --install",
        "ssh training-job-abc1234-0.ssh.baseten.co",
        "bt-tui ssh-config >> ~/.ssh/config",
    ),
)
@click.option("--install", is_flag=True, help="Write it to ~/.ssh/config, in place of an earlier one.")
@remote_option
@click.pass_obj
def ssh_config(settings: Settings, install: bool) -> ExitCode:
    """Print what ~/.ssh/config needs so that training-job-JOB-NODE.ssh.baseten.co is a host.

    Every connection is signed anew when ssh makes it. With --remote that remote is used for all of them;
    training-job-JOB-NODE.REMOTE.ssh.baseten.co names one in the host.
    """
    block = _block(settings.remote_name)
    if not install:
        settings.output.data(block)
        return ExitCode.OK
    path = Path(os.environ.get(CONFIG_VARIABLE, "").strip() or DEFAULT_CONFIG).expanduser()
    try:
        _install(path, block)
    except OSError as error:
        raise cannot_write(path, error) from error
    settings.output.remark(f"written to {path}; now: ssh training-job-JOB_ID-0.ssh.baseten.co")
    return ExitCode.OK


@click.command("ssh-sign", hidden=True)
@click.argument("host_name", metavar="HOST")
@remote_option
@click.pass_obj
def ssh_sign(settings: Settings, host_name: str) -> ExitCode:
    """For ssh_config: have the key signed for a connection to that host."""
    from api_client.ssh.hosts import parse_host

    host = parse_host(host_name)
    if host.remote_name is not None:
        settings = Settings(remote_name=host.remote_name, output=settings.output)
    sign(settings, host, ssh_folder())
    return ExitCode.OK


@click.command("ssh-proxy", hidden=True)
@click.argument("host_name", metavar="HOST")
@click.pass_obj
def ssh_proxy(_settings: Settings, host_name: str) -> ExitCode:
    """For ssh: pass the bytes of a connection that has been signed."""
    from api_client.ssh.hosts import parse_host
    from api_client.ssh.proxy import relay

    ticket = ssh_folder().take(parse_host(host_name))
    source, sink = sys.stdin.fileno(), sys.stdout.fileno()
    asyncio.run(relay(ticket, source=source, sink=sink, environ=os.environ))
    return ExitCode.OK


def _block(remote_name: str | None) -> str:
    from api_client.ssh.tickets import CERTIFICATE_SUFFIX

    folder = ssh_folder()
    certificate = quotable(folder.certificate_path("")).removesuffix(CERTIFICATE_SUFFIX)
    remote = [f"--remote={remote_name}"] if remote_name else []
    return "\n".join(
        [
            BEGINNING,
            f'Match originalhost "{HOSTS}" exec "{_command("ssh-sign", *remote)}"',
            f"    ProxyCommand {_command('ssh-proxy')}",
            f"    User {NODE_USER}",
            f'    IdentityFile "{quotable(folder.key_path)}"',
            f'    CertificateFile "{certificate}%n{CERTIFICATE_SUFFIX}"',
            "    IdentitiesOnly yes",
            "    StrictHostKeyChecking no",
            f"    UserKnownHostsFile {os.devnull}",
            END,
            "",
        ]
    )


def _command(*arguments: str) -> str:
    """Return a command of this program for a shell; ssh puts the host, as it was typed, in place of %n."""
    return f"{quotable(shlex.join([*own_program(), *arguments]))} '%n'"


def _install(path: Path, block: str) -> None:
    """Put the block where an earlier one stood, else at the end; the rest stays as it is."""
    from api_client.files import write_private

    path.parent.mkdir(parents=True, exist_ok=True, mode=CONFIG_FOLDER_MODE)
    text = path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else ""
    before, found, rest = text.partition(BEGINNING)
    _, ended, after = rest.partition(END + "\n")
    if found and ended:
        text = before + block + after
    else:
        text += ("\n" if text and not text.endswith("\n") else "") + block
    write_private(path.resolve(), text.encode("utf-8", "surrogateescape"))
