"""ssh to a node: the system's ssh, a certificate a connection, and a proxy that wants a token first."""

import re
import shutil
import socketserver
import stat
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from api_client.ssh import SshFolder
from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, job
from support.warm_python import ROOT

LIMIT_S = 60
LONGEST_TOKEN_BYTES = 10_000
TOKEN = "token-nobody-may-see"
HOST = "training-job-job1-0.ssh.baseten.co"
PROGRAM = (sys.executable, "-m", "tui")
SIGN_PATH = "/v1/training_projects/proj1/jobs/job1/ssh/sign"


def signs(baseten: FakeBaseten, address: str) -> None:
    certificate = {"ssh_certificate": "ssh-ed25519-cert-v01@openssh.com AAAA made-up"}
    answer = certificate | {"jwt": TOKEN, "proxy_address": address, "ssh_cert_expires_at": None}
    baseten.on("POST", SIGN_PATH, Answer(answer))


class Proxy(socketserver.TCPServer):
    """The proxy that signing names: takes the token, answers one byte, and says back what it hears."""

    def __init__(self, baseten: FakeBaseten, answer: bytes = b"\x00", *, hangs_up: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self.answer, self.hangs_up = answer, hangs_up
        self.token, self.heard = "", b""
        signs(baseten, f"127.0.0.1:{self.server_address[1]}")
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def finish_request(self, connection: Any, _address: object) -> None:
        with suppress(OSError, struct.error), connection.makefile("rb") as incoming:
            (length,) = struct.unpack("!I", incoming.read(4))
            if length > LONGEST_TOKEN_BYTES:  # TLS, and no token: it gets no further
                return
            self.token = incoming.read(length).decode()
            connection.sendall(self.answer)
            while chunk := incoming.read1(65536):
                self.heard += chunk
                if self.hangs_up:
                    return
                connection.sendall(chunk)

    def __exit__(self, *_about: object) -> None:
        self.shutdown()
        self.server_close()


@pytest.fixture
def running(baseten: FakeBaseten) -> FakeBaseten:
    baseten.jobs = [job("job1", "RUNNING")]
    return baseten


@pytest.fixture
def ssh_environ(baseten: FakeBaseten, clean_environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    own = {"BASETEN_SSH_DIR": str(tmp_path / "keys"), "BASETEN_SSH_PROXY_INSECURE": "1"}
    return clean_environ | baseten.environ() | own | {"PYTHONPATH": str(ROOT)}


def run(
    environ: dict[str, str], *command: str, text: bytes | None = None, folder: Path = ROOT
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command, cwd=folder, env=environ, input=text or b"", capture_output=True, timeout=LIMIT_S, check=False
    )


STAND_IN_FOR_SSH = r"""#!/bin/sh
printf "%s\n" "$@"
for word in "$@"; do case "$word" in ProxyCommand=*) command="${word#ProxyCommand=}";; esac; done
printf "hello node" | sh -c "exec $command"
exit 17
"""
"""Says what it was asked, then talks through its ProxyCommand as the real one does."""


@pytest.mark.proves("docs/commands.md", "`workstation`")
def test_ssh_signs_and_goes_through_the_proxy(running: FakeBaseten, ssh_environ: Any, tmp_path: Path) -> None:
    (tmp_path / "ssh").write_text(STAND_IN_FOR_SSH)
    (tmp_path / "ssh").chmod(0o755)
    environ = ssh_environ | {"PATH": f"{tmp_path}:{ssh_environ['PATH']}"}
    running.jobs[0]["name"] = "llama-8b"
    with Proxy(running) as way:
        done = run(environ, *PROGRAM, "ssh", "llama", "--", "nvidia-smi", "-L")
    assert done.returncode == 17
    [signed] = [asked for asked in running.asked if asked.path == SIGN_PATH]
    keys = tmp_path / "keys"
    public_key = (keys / "id_ed25519.pub").read_text().strip()
    assert signed.body == {"public_key": public_key, "replica_id": "0"}
    assert (way.token, way.heard) == (TOKEN, b"hello node")
    words = done.stdout.decode()
    assert "User=baseten" in words
    assert "\nnvidia-smi -L\n" in words
    assert TOKEN not in words + done.stderr.decode()
    private = [keys, keys / f"{HOST}-cert.pub", *(path for path in keys.iterdir() if path.suffix != ".pub")]
    assert [path for path in private if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
    assert not list(keys.glob("*.token"))


def test_the_real_ssh_comes_through(running: FakeBaseten, ssh_environ: dict[str, str]) -> None:
    assert shutil.which("ssh", path=ssh_environ["PATH"])
    with Proxy(running, hangs_up=True) as way:
        done = run(ssh_environ, *PROGRAM, "ssh", "job1", "--node", "0", "--", "true")
    assert done.returncode == 255
    assert way.heard.startswith(b"SSH-2.0-")


def test_a_token_serves_once(cli: RunCli, running: FakeBaseten, ssh_environ: dict[str, str]) -> None:
    """And not if the proxy turns the connection away."""
    for answer, code, words in ((b"\x00", 0, b""), (b"\x01", 8, b"refused the connection")):
        with Proxy(running, answer):
            cli(f"ssh-sign {HOST}", environ=ssh_environ)
            done = run(ssh_environ, *PROGRAM, "ssh-proxy", HOST)
        assert (done.returncode, done.stdout, words in done.stderr) == (code, b"", True)
        assert "bt-tui ssh job1" in cli(f"ssh-proxy {HOST}", environ=ssh_environ, code=2).err


def test_a_token_is_never_sent_readably(cli: RunCli, running: FakeBaseten, ssh_environ: Any) -> None:
    del ssh_environ["BASETEN_SSH_PROXY_INSECURE"]
    with Proxy(running) as way:
        cli(f"ssh-sign {HOST}", environ=ssh_environ)
        done = run(ssh_environ, *PROGRAM, "ssh-proxy", HOST)
    assert done.returncode == 8
    assert (TOKEN.encode() in way.heard, way.token == TOKEN) == (False, False)


def test_why_there_is_no_shell_is_said(cli: RunCli, running: FakeBaseten, ssh_environ: Any) -> None:
    for job_id in ("../../etc", "-oProxyCommand=evil", "a b", "job1;rm", "a.b"):
        running.jobs = [job(job_id, "RUNNING", name="evil")]
        cli("ssh", "evil", environ=ssh_environ, code=2)
    assert [asked for asked in running.asked if asked.path.endswith("/sign")] == []
    running.jobs = [job("job1", "RUNNING")]
    running.on("POST", SIGN_PATH, Answer({"error": "SSH is not enabled for this workspace"}, status=400))
    assert "SSH is not enabled" in cli("ssh job1", environ=ssh_environ, code=1).err
    running.jobs = [job("job1", "COMPLETED")]
    assert "has ended" in cli("ssh job1", environ=ssh_environ, code=7).err


@pytest.mark.proves("docs/commands.md", "`workstation`")
def test_installing_replaces_an_earlier_one_only(cli: RunCli, ssh_environ: Any, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host mine\n    User me")
    environ = ssh_environ | {"BASETEN_SSH_CONFIG_PATH": str(config)}
    cli("ssh-config --install", environ=environ)
    first = config.read_text()
    config.write_text(first + "Host below\n")
    cli("ssh-config --install --remote x", environ=environ)
    text = config.read_text()
    assert text.startswith("Host mine\n    User me\n# --- bt-tui ssh ---\n")
    assert text.endswith("# --- end bt-tui ssh ---\nHost below\n")
    assert text.count("Match originalhost") == 1
    assert "ssh-sign --remote=x '%n'" in text
    assert stat.S_IMODE(config.stat().st_mode) == 0o600


def test_the_host_may_name_the_remote(cli: RunCli, running: Any, trussrc: Path, ssh_environ: Any) -> None:
    trussrc.write_text(f"[here]\nremote_url={running.url}\napi_key={running.key}\n")
    keys = Path(ssh_environ["BASETEN_SSH_DIR"])
    with Proxy(running):
        cli("ssh-sign training-job-job1-0.here.ssh.baseten.co", environ={"BASETEN_SSH_DIR": str(keys)})
    assert (keys / "training-job-job1-0.here.ssh.baseten.co-cert.pub").exists()


def test_a_remote_that_ssh_s_configuration_cannot_quote_is_refused(
    cli: RunCli, running: FakeBaseten, ssh_environ: Any, tmp_path: Path
) -> None:
    """Nor a folder for the keys."""
    signs(running, "127.0.0.1:1")
    names = ("a\nProxyCommand touch here", 'a"b', "a\\", "it's", "\x1b]0;a", "${HOME}")
    folders = ('a"b', "a\\b", "a\nUser root", "${HOME}")
    for words, folder in (
        *((("ssh-config", "--remote", name), "keys") for name in names),
        *((words, folder) for words in (("ssh", "job1"), ("ssh-config",)) for folder in folders),
    ):
        result = cli(*words, environ=ssh_environ | {"BASETEN_SSH_DIR": str(tmp_path / folder)}, code=2)
        assert (result.out, "\x1b" in result.err) == ("", False), (words, folder)
        assert "can't be written to an ssh configuration" in result.err


def test_no_host_name_becomes_a_command(cli: RunCli, ssh_environ: Any, tmp_path: Path) -> None:
    """As a version of ssh does it that lets such names pass: newer ones refuse them."""
    block = cli("ssh-config", environ=ssh_environ).out
    patterns = re.search(r'originalhost "([^"]*)"', block)[1].split(",")[1:]
    command = re.search(r"ProxyCommand (.*)", block)[1]
    for name in ("$({})", "`{}`", "x;{};x", "x';{};'x", "x'$({})'x", "x\\';{};'"):
        host = f"training-job-{name.format('touch here')}-0.ssh.baseten.co"
        if not any(fnmatchcase(host, each.removeprefix("!").replace("\\", "[\\]")) for each in patterns):
            run(ssh_environ, "sh", "-c", command.replace("%n", host).replace("%%", "%"), folder=tmp_path)
        assert not (tmp_path / "here").exists(), name


@pytest.mark.parametrize("is_installed", [True, False])
def test_a_folder_of_the_package_s_name_is_not_run(
    cli: RunCli, running: FakeBaseten, ssh_environ: Any, tmp_path: Path, is_installed: bool
) -> None:
    config = tmp_path / "ssh_config"
    with pytest.MonkeyPatch.context() as patch:
        if not is_installed:
            patch.setattr("pathlib.Path.is_file", lambda _path: False)
        config.write_text(cli("ssh-config", environ=ssh_environ).out)
    for package in ("tui", "api_client"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("open('here', 'w')")
        (tmp_path / package / "__main__.py").write_text("open('here', 'w')")
    with Proxy(running):
        told = run(ssh_environ, "ssh", "-G", "-F", str(config), HOST, folder=tmp_path).stdout.decode()
    assert "\nuser baseten\n" in told
    assert any(f"certificatefile {tmp_path}/keys/{name}-cert.pub\n" in told for name in ("%n", HOST))
    assert not (tmp_path / "here").exists()
    assert (tmp_path / "keys" / f"{HOST}-cert.pub").exists()


SECOND_CONNECTION = """
import os, sys, time
from pathlib import Path
from api_client.ssh import SshFolder

time.sleep = lambda _seconds: print("waiting", flush=True)
print("key", SshFolder(Path(sys.argv[1]), {}).public_key(), flush=True)
"""


def test_two_first_connections_at_the_same_time_make_one_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[subprocess.Popen[str]] = []
    run_program = subprocess.run

    def run_while_another_connects(*arguments: Any, **options: Any) -> Any:
        command = [sys.executable, "-c", SECOND_CONNECTION, str(tmp_path / "keys")]
        others.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT))
        assert others[0].stdout is not None
        others[0].stdout.readline()
        return run_program(*arguments, **options)

    monkeypatch.setattr("api_client.ssh.subprocess.run", run_while_another_connects)
    key = SshFolder(tmp_path / "keys", {}).public_key()
    assert others[0].communicate()[0].splitlines()[-1] == f"key {key}"
