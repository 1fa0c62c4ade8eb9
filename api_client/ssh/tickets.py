"""Host names of nodes, and the files that an SSH connection needs: key, certificate, token.

Host names are the official client's: ``training-job-<job>-<node>.ssh.baseten.co``.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from api_client.addresses import Destinations
from api_client.errors import ConfigurationError
from api_client.files import PRIVATE_FILE_MODE, make_private_folder, why_not_written, write_private
from api_client.models import SignedSshCertificate

SUFFIX = ".ssh.baseten.co"
PREFIX = "training-job-"
PATTERN = f"{PREFIX}*{SUFFIX}"
"""Pattern for all such hosts in ssh_config."""

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
        """Host name of the node."""
        remote = f".{self.remote_name}" if self.remote_name else ""
        return f"{PREFIX}{self.job_id}-{self.node}{remote}{SUFFIX}"


def parse_host(name: str) -> NodeHost:
    """Parse a host name to its node. Raises ConfigurationError."""
    match = _HOST.fullmatch(name)
    if match is None:
        raise ConfigurationError(f"{name!r} is not a node's host name (expected {PREFIX}JOB-NODE{SUFFIX})")
    return NodeHost(match["job"], int(match["node"]), match["remote"])


def node_host(job_id: str, node: int) -> NodeHost:
    """Return the host of a node. Raises ConfigurationError if the job id is not valid in a host name."""
    return parse_host(NodeHost(job_id, node).name)


FOLDER_VARIABLE = "BASETEN_SSH_DIR"
KEY_NAME = "id_ed25519"
CERTIFICATE_SUFFIX = "-cert.pub"
TOKEN_SUFFIX = ".token"


@dataclass(frozen=True, slots=True)
class Ticket:
    """The proxy's address (``host:port``), its token, and the addresses that the server may direct us to."""

    proxy_address: str
    token: SecretStr
    destinations: Destinations


class SshFolder:
    """Folder of these files: ``BASETEN_SSH_DIR``, or the given one. Created on first use, mode 0700."""

    def __init__(self, default: Path, environ: Mapping[str, str]) -> None:
        configured = environ.get(FOLDER_VARIABLE, "").strip()
        self.path = (Path(configured).expanduser() if configured else default).absolute()

    @property
    def key_path(self) -> Path:
        """Path of the private key."""
        return self.path / KEY_NAME

    def certificate_path(self, host: str) -> Path:
        """Return the path of a host's certificate; each host has its own, so connections do not interfere."""
        return self.path / f"{host}{CERTIFICATE_SUFFIX}"

    def public_key(self) -> str:
        """Return the public key, creating the pair if necessary. Raises ConfigurationError."""
        public = self.key_path.with_suffix(".pub")
        try:
            make_private_folder(self.path)
            if not (self.key_path.exists() and public.exists()):
                self._make_pair()
            self.key_path.chmod(PRIVATE_FILE_MODE)
            return public.read_text().strip()
        except OSError as error:
            problem = why_not_written(error)
        raise ConfigurationError(f"can't store an SSH key in {self.path}: {problem}")

    def keep(self, host: NodeHost, signed: SignedSshCertificate, destinations: Destinations) -> None:
        """Store certificate and token for the next connection. Raises ConfigurationError."""
        content = {
            "proxy_address": signed.proxy_address,
            "token": signed.jwt.get_secret_value(),
            "networks": destinations.networks,
        }
        problem = ""
        try:
            write_private(self.certificate_path(host.name), f"{signed.ssh_certificate.strip()}\n".encode())
            write_private(self._token_path(host), json.dumps(content).encode())
            return
        except OSError as error:
            problem = why_not_written(error)
        raise ConfigurationError(f"can't store the certificate in {self.path}: {problem}")

    def take(self, host: NodeHost) -> Ticket:
        """Return the ticket for the current connection; it works only once. Raises ConfigurationError."""
        path = self._token_path(host)
        try:
            content = json.loads(path.read_bytes())
            path.unlink()
            destinations = Destinations(networks=map(str, content["networks"]))
            return Ticket(str(content["proxy_address"]), SecretStr(str(content["token"])), destinations)
        except (OSError, ValueError, KeyError, TypeError):
            pass
        raise ConfigurationError(f"no token for {host.name}: 'bt-tui ssh {host.job_id}' gets one")

    def _token_path(self, host: NodeHost) -> Path:
        return self.path / f"{host.name}{TOKEN_SUFFIX}"

    def _make_pair(self) -> None:
        program = shutil.which("ssh-keygen")
        if program is None:
            raise ConfigurationError("ssh-keygen not found; install OpenSSH")
        for path in (self.key_path, self.key_path.with_suffix(".pub")):
            path.unlink(missing_ok=True)
        command = [program, "-q", "-t", "ed25519", "-N", "", "-C", "bt-tui", "-f", str(self.key_path)]
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip()[-300:]
            raise ConfigurationError(f"ssh-keygen created no key in {self.path}: {words}")
