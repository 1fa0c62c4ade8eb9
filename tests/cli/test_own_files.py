"""Whatever is in the place of a file of the user's own, a command ends with a sentence or does without it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from api_client.files import MAX_SMALL_FILE_BYTES
from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, job

HOST = "training-job-job1-0.ssh.baseten.co"
EMULATOR = "data/bt-tui/emulator"
ADDRESS = {"url": "http://127.0.0.1:9", "key_file": "key", "data_dir": "d", "pid": 2**30}
READ_BY = {
    "config/bt-tui/config.toml": ("jobs", "config show", "config validate", "jobs --readonly"),
    "trussrc": (
        "remotes",
        "jobs --remote one",
        "login --remote-url URL --api-key-stdin",
        "logout",
        "logout --remote one",
    ),
    "go/auth.json": ("remotes", "jobs --remote one"),
    f"{EMULATOR}/address.json": ("remotes", "emulator status", "emulator stop"),
    f"{EMULATOR}/key": ("remotes", "emulator status"),
    "ssh/id_ed25519": (f"ssh-sign {HOST}",),
    "ssh/id_ed25519.pub": (f"ssh-sign {HOST}",),
    f"ssh/{HOST}.token": (f"ssh-proxy {HOST}", f"ssh-sign {HOST}"),
    f"ssh/{HOST}-cert.pub": (f"ssh-sign {HOST}",),
    "ssh_config": ("ssh-config --install",),
}
"""The commands that read each file."""

INSTEAD: dict[str, Callable[[Path], object]] = {
    "nothing in it": Path.touch,
    "an object": lambda path: path.write_text('{"profiles": [1], "url": 1, "pid": -1}'),
    "a list": lambda path: path.write_text("[1]"),
    "nested lists": lambda path: path.write_text("[" * 100_000),
    "digits": lambda path: path.write_text("9" * 100_000),
    "spaces": lambda path: path.write_text("a" + " " * 100_000 + "b"),
    "bytes": lambda path: path.write_bytes(b"\xff\x00\n"),
    "huge file": lambda path: path.write_bytes(b"\n" * (MAX_SMALL_FILE_BYTES + 1)),
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "link to itself": lambda path: path.symlink_to(path),
}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home in which an emulator is running."""
    for file in READ_BY:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    folder = tmp_path / EMULATOR
    (folder / "key").write_text("key")
    (folder / "address.json").write_text(json.dumps(ADDRESS | {"key_file": str(folder / "key")}))
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    yield tmp_path
    os.close(lock)


@pytest.mark.parametrize(
    ("variable", "command"),
    [
        ("BT_TUI_CONFIG", "jobs"),
        ("USER_TRUSSRC_PATH", "jobs"),
        ("BASETEN_CONFIG_DIR", "jobs --remote one"),
        ("BASETEN_SSH_DIR", f"ssh-proxy {HOST}"),
        ("BASETEN_SSH_CONFIG_PATH", "ssh-config --install"),
    ],
)
def test_home_of_an_unknown_user_is_a_folder_like_any_other(
    cli: RunCli, in_folder: None, variable: str, command: str
) -> None:
    result = cli(command, environ={variable: "~no-such-user/file"})
    assert "unexpected" not in result.err and "Traceback" not in result.err, result.err


@pytest.mark.parametrize("instead", INSTEAD)
@pytest.mark.parametrize(
    ("file", "command"), [(file, command) for file, commands in READ_BY.items() for command in commands]
)
def test_command_ends_well_whatever_the_file_is(
    cli: RunCli,
    baseten: FakeBaseten,
    home: Path,
    pipe_in: Callable[[str], None],
    file: str,
    command: str,
    instead: str,
) -> None:
    (home / file).unlink(missing_ok=True)
    INSTEAD[instead](home / file)
    baseten.jobs = [job("job1", "RUNNING")]
    certificate = {
        "ssh_certificate": "c",
        "jwt": "t",
        "proxy_address": "127.0.0.1:9",
        "ssh_cert_expires_at": None,
    }
    baseten.on("POST", "/v1/training_projects/proj1/jobs/job1/ssh/sign", Answer(certificate))
    pipe_in(baseten.key)
    folders = {f"XDG_{kind.upper()}_HOME": str(home / kind) for kind in ("config", "state", "data", "cache")}
    own = {"BASETEN_CONFIG_DIR": "go", "BASETEN_SSH_DIR": "ssh", "BASETEN_SSH_CONFIG_PATH": "ssh_config"}
    is_signing = command.startswith("ssh-sign")
    environ = (
        folders
        | {name: str(home / path) for name, path in own.items()}
        | {"USER_TRUSSRC_PATH": str(home / "trussrc")}
    )
    result = cli(
        command.replace("URL", baseten.url), environ=environ | (baseten.environ() if is_signing else {})
    )
    assert result.err.count("\n") <= 8
    assert "Traceback" not in result.err and "unexpected" not in result.err, result.err
