"""SSH to the nodes of a job: a key pair, a certificate per connection, and the connection through the proxy.

The protocol and the host names (``training-job-<job>-<node>.ssh.baseten.co``) are the official client's
(truss 0.18, ``truss ssh setup``). The API signs a public key for one node and names a proxy. The proxy speaks
TLS, expects a token first, and then forwards SSH to the node.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import ssl
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from api_client.addresses import Destinations, is_loopback
from api_client.errors import ConfigurationError, Unreachable
from api_client.files import (
    PRIVATE_FILE_MODE,
    locked_folder,
    make_private_folder,
    os_errors_as,
    read_small_file,
    user_path,
    write_private,
)
from api_client.models import SignedSshCertificate
from api_client.secret import SecretText
from api_client.words import command_line

SUFFIX = ".ssh.baseten.co"
PREFIX = "training-job-"
PATTERN = f"{PREFIX}*{SUFFIX}"  # pattern for all such hosts in ssh_config

_LABEL = r"[A-Za-z0-9_-]+"
_HOST = re.compile(
    rf"{re.escape(PREFIX)}(?P<job>{_LABEL})-(?P<node>[0-9]{{1,6}})(?:\.(?P<remote>{_LABEL}))?{re.escape(SUFFIX)}"
)


@dataclass(frozen=True, slots=True)
class NodeHost:
    """Node of a job, and the remote that the host name includes, if any."""

    job_id: str
    node: int
    remote_name: str | None = None

    @property
    def name(self) -> str:
        remote = f".{self.remote_name}" if self.remote_name else ""
        return f"{PREFIX}{self.job_id}-{self.node}{remote}{SUFFIX}"

    @property
    def is_valid(self) -> bool:
        """True if the ids and the remote's name are valid in a host name."""
        return _HOST.fullmatch(self.name) is not None


def parse_host(name: str) -> NodeHost:
    match = _HOST.fullmatch(name)
    if match is None:
        raise ConfigurationError(f"{name!r} is not a node's host name (expected {PREFIX}JOB-NODE{SUFFIX})")
    return NodeHost(match["job"], int(match["node"]), match["remote"])


def node_host(job_id: str, node: int) -> NodeHost:
    """Return the host of a node. Raises ConfigurationError if the job id is not valid in a host name."""
    return parse_host(NodeHost(job_id, node).name)


CERTIFICATE_SUFFIX = "-cert.pub"


@dataclass(frozen=True, slots=True)
class Ticket:
    """The proxy's address (``host:port``), a token for one connection, and the allowed addresses."""

    proxy_address: str
    token: SecretText
    destinations: Destinations


class SshFolder:
    """Folder for the key pair, certificates and tokens: ``BASETEN_SSH_DIR``, or ``default``.

    Created on first use, with mode 0700.
    """

    def __init__(self, default: Path, environ: Mapping[str, str]) -> None:
        configured = environ.get("BASETEN_SSH_DIR", "").strip()
        self.path = (user_path(configured) if configured else default).absolute()

    @property
    def key_path(self) -> Path:
        return self.path / "id_ed25519"

    def certificate_path(self, host: str) -> Path:
        """Return the path of a host's certificate; one per host, so that connections do not interfere."""
        return self.path / f"{host}{CERTIFICATE_SUFFIX}"

    def public_key(self) -> str:
        """Return the public key, creating the pair if necessary. Raises ConfigurationError."""
        public_path = self.key_path.with_suffix(".pub")
        with os_errors_as(ConfigurationError, f"can't store an SSH key in {self.path}"):
            make_private_folder(self.path)
            with locked_folder(self.path):  # so that simultaneous first connections create only one pair
                if not all(path.is_file() and path.stat().st_size for path in (self.key_path, public_path)):
                    self._create_key_pair()
            self.key_path.chmod(PRIVATE_FILE_MODE)
            return read_small_file(public_path).decode("ascii", "replace").strip()

    def store_ticket(self, host: NodeHost, signed: SignedSshCertificate, destinations: Destinations) -> None:
        """Store certificate and token for the next connection. Raises ConfigurationError."""
        content = {
            "proxy_address": signed.proxy_address,
            "token": signed.jwt.get_secret_value(),
            "networks": destinations.networks,
        }
        with os_errors_as(ConfigurationError, f"can't store the certificate in {self.path}"):
            write_private(self.certificate_path(host.name), f"{signed.ssh_certificate.strip()}\n".encode())
            write_private(self._token_path(host), json.dumps(content).encode())

    def take_ticket(self, host: NodeHost) -> Ticket:
        """Return the stored ticket and delete it, because it works only once. Raises ConfigurationError."""
        path = self._token_path(host)
        try:
            with locked_folder(self.path):
                content = json.loads(read_small_file(path))
                path.unlink()
            destinations = Destinations(networks=map(str, content["networks"]))
            return Ticket(str(content["proxy_address"]), SecretText(str(content["token"])), destinations)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass
        remote = ("--remote", host.remote_name) if host.remote_name else ()
        raise ConfigurationError(
            f"no token for {host.name}: '{command_line(*remote, 'ssh', host.job_id)}' gets one"
        )

    def _token_path(self, host: NodeHost) -> Path:
        return self.path / f"{host.name}.token"

    def _create_key_pair(self) -> None:
        program = shutil.which("ssh-keygen")
        if program is None:
            raise ConfigurationError("ssh-keygen not found; install OpenSSH")
        for path in (self.key_path, self.key_path.with_suffix(".pub")):
            path.unlink(missing_ok=True)
        command = [program, "-q", "-t", "ed25519", "-N", "", "-C", "bt-tui", "-f", str(self.key_path)]
        completed = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        if completed.returncode:
            output = completed.stderr.decode(errors="replace").strip()[-300:]
            raise ConfigurationError(f"ssh-keygen created no key in {self.path}: {output}")


CHUNK_BYTES = 65_536


async def relay(ticket: Ticket, *, source: int, sink: int, environ: Mapping[str, str]) -> None:
    """Connect to the node, and copy bytes between it and two file descriptors until either side ends.

    Raises Unreachable if the node cannot be reached, AddressRefused for an address that a server must not
    direct us to, and ConfigurationError for an invalid address.
    """
    reader, writer = await _connect(ticket, environ)
    try:
        sending = asyncio.create_task(_send(source, writer))
        receiving = asyncio.create_task(_receive(reader, sink))
        done, pending = await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        for task in done:
            task.result()
    except (ConnectionError, ssl.SSLError, BrokenPipeError):
        return
    finally:
        writer.close()


async def _connect(
    ticket: Ticket, environ: Mapping[str, str]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = ticket.proxy_address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ConfigurationError(f"unusable SSH proxy address from the server: {ticket.proxy_address[:100]}")
    host = host.strip("[]")
    # The token would be sent unencrypted, so allow this only on this machine.
    is_plain = environ.get("BASETEN_SSH_PROXY_INSECURE", "").lower() in {"1", "true"} and is_loopback(host)
    context = None if is_plain else ssl.create_default_context()
    try:
        async with asyncio.timeout(10.0):
            addresses = await asyncio.to_thread(ticket.destinations.resolve, host, int(port))
            reader, writer = await _connect_to_any(addresses, int(port), host, context)
    except (OSError, TimeoutError, UnicodeError) as error:
        problem = getattr(error, "strerror", None) or type(error).__name__
        raise Unreachable(f"can't reach the SSH proxy {ticket.proxy_address}: {problem}") from error
    token = ticket.token.get_secret_value().encode()
    try:
        writer.write(struct.pack("!I", len(token)) + token)
        await writer.drain()
        async with asyncio.timeout(30.0):
            reply = await reader.read(1)
    except (OSError, TimeoutError):
        reply = b""
    if reply != b"\x00":  # a zero byte accepts
        writer.close()
        raise Unreachable("the SSH proxy refused the connection: is the node running, with its SSH server?")
    return reader, writer


async def _connect_to_any(
    addresses: list[str], port: int, host: str, context: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address that accepts; TLS verifies the host name."""
    problem: OSError | None = None
    for address in addresses:
        try:
            return await asyncio.open_connection(
                address, port, ssl=context, server_hostname=host if context else None
            )
        except OSError as error:
            problem = error
    raise problem or OSError(f"{host} has no address")


async def _send(source: int, writer: asyncio.StreamWriter) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    pipe = os.fdopen(os.dup(source), "rb", buffering=0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    finally:
        transport.close()


async def _receive(reader: asyncio.StreamReader, sink: int) -> None:
    while chunk := await reader.read(CHUNK_BYTES):
        while chunk:
            written = await asyncio.to_thread(_write, sink, chunk)
            chunk = chunk[written:]


def _write(sink: int, chunk: bytes) -> int:
    os.set_blocking(sink, True)  # stdin and stdout may be one socket, which asyncio made non-blocking
    return os.write(sink, chunk)
