"""Files of the user's own: created exclusively, whole or not there; and read whatever is in their place."""

import fcntl
import json
import os
import re
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from whole_platform import CONFIG

from api_client.files import MAX_SMALL_FILE_BYTES
from support.cli import RunCli
from support.every_command import ENDED, JOB, SERVED
from support.fake_baseten import Answer, FakeBaseten, job

OLD = "what was there before\n"
WRITING: dict[str, tuple[tuple[str, ...], str]] = {
    "logs": (("logs", JOB, "--save", "run.log"), "run.log"),
    "logs as records": (("logs", JOB, "-o", "run.ndjson"), "run.ndjson"),
    "a followed log": (("logs", ENDED, "--follow", "--drain", "0", "--save", "run.log"), "run.log"),
    "code": (("download", JOB), "*/train.py"),
    "packed code": (("download", JOB, "--no-unzip"), "*.tgz"),
    "checkpoints": (("checkpoints", "download", "--job-id", JOB), "job00001/checkpoint-100/notes.txt"),
    "urls": (("checkpoints", "urls", "--job-id", JOB), "*_checkpoints.json"),
    "a project": (("init", "my-run"), "my-run/config.py"),
    "ssh": (("ssh-config", "--install"), "ssh_config"),
    "settings": (("config", "edit"), "bt-tui/config.toml"),
    "a truss config": (
        ("deploy_checkpoints", *SERVED, "--dry-run", "--truss-config-output-dir", "truss"),
        "truss/config.yaml",
    ),
}
"""Command lines, and a file that each writes; projects have a new name in every test."""

FORCED = {"logs": "--force", "a followed log": "--force", "a project": "--force"}
FORCED |= {"checkpoints": "--existing=overwrite", "a truss config": "--yes"}
REPLACING = {name: ((*WRITING[name][0], option), WRITING[name][1]) for name, option in FORCED.items()}


@pytest.fixture
def environ(world: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """What leads to the platform, and files that have their place in the environment in the test's folder."""
    return world | {
        "BASETEN_SSH_CONFIG_PATH": str(tmp_path / "here" / "ssh_config"),
        "XDG_CONFIG_HOME": str(tmp_path / "here"),
        "EDITOR": "true",
        "BT_TUI_DEBUG": "",
    }


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "here"
    path.mkdir()
    monkeypatch.chdir(path)
    monkeypatch.setattr("tui.commands.account.config.need_terminal", lambda *_about: None)
    return path


class Opened:
    """What was opened with the wish to create it, of a relative name or in a folder, while it is watched."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.flags: dict[str, int] = {}
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or self.folder is None or not isinstance(arguments[0], str):
            return
        path, _, flags = arguments
        is_there = not path.startswith("/") or path.startswith(str(self.folder))
        if flags & os.O_CREAT and is_there:
            self.flags[path] = flags


@pytest.fixture(scope="module")
def hook() -> Opened:
    return Opened()


@pytest.fixture
def opened(hook: Opened, here: Path) -> Iterator[Opened]:
    hook.flags, hook.folder = {}, here
    yield hook
    hook.folder = None


@pytest.mark.parametrize(("arguments", "written"), WRITING.values(), ids=WRITING)
def test_what_is_created_is_created_exclusively(
    cli: RunCli, environ: Any, here: Path, opened: Opened, arguments: Any, written: Any
) -> None:
    cli(*arguments, environ=environ)
    assert [path.is_file() for path in here.glob(written)] == [True]
    assert opened.flags
    assert [path for path, flags in opened.flags.items() if not flags & os.O_EXCL] == []


@pytest.mark.parametrize(("arguments", "written"), REPLACING.values(), ids=REPLACING)
def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(
    cli: RunCli, environ: Any, here: Path, tmp_path: Path, arguments: Any, written: Any
) -> None:
    victim = tmp_path / "victim"
    victim.write_text(OLD)
    (here / written).parent.mkdir(parents=True, exist_ok=True)
    (here / written).symlink_to(victim)
    (here / f"{written}.part").symlink_to(victim)
    cli(*arguments, environ=environ)
    assert victim.read_text() == OLD
    assert not (here / written).is_symlink()


def test_own_pipe_is_written_to_as_it_is(cli: RunCli, environ: Any, here: Path) -> None:
    pipe = here / "run.log"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        cli("logs", JOB, "--save", "run.log", "--force", environ=environ)
        assert os.read(reader, 1)
        assert pipe.is_fifo()
    finally:
        os.close(reader)


@pytest.mark.parametrize("kind", ["a link to a pipe", "somebody else's pipe"])
def test_a_planted_pipe_is_replaced_and_receives_nothing(
    cli: RunCli, environ: Any, here: Path, kind: str
) -> None:
    pipe = here / ("pipe" if kind == "a link to a pipe" else "run.log")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    if kind == "a link to a pipe":
        (here / "run.log").symlink_to(pipe)
    elif os.geteuid() == 0:
        os.chown(pipe, 12345, 12345)
    else:
        pytest.skip("only root can make a pipe somebody else's")
    try:
        cli("logs", JOB, "--save", "run.log", "--force", environ=environ)
        assert os.read(reader, 1) == b""
        assert (here / "run.log").is_file()
        assert not (here / "run.log").is_symlink()
    finally:
        os.close(reader)


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can grow over a few bytes, as the system's own limit has it."""
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))


@pytest.mark.parametrize(("arguments", "written"), WRITING.values(), ids=WRITING)
def test_a_full_disk_is_a_sentence_and_leaves_no_half_file(
    cli: RunCli, environ: Any, here: Path, arguments: Any, written: Any
) -> None:
    with full_disk():
        result = cli(*arguments, environ=environ, code=1)
    assert "the file is too large for the file system or your limits (ulimit -f)" in result.err
    assert "Traceback" not in result.err
    left = [name for name in files_below(here) if not re.search(r"\.part$|/\.bt-tui-", name)]
    assert left == []  # but what resumes a download
    assert "Partial files are kept" not in result.err


def test_without_room_for_its_archive_nothing_is_submitted(cli: RunCli, environ: Any, here: Path) -> None:
    (here / "config.py").write_text(CONFIG)
    with full_disk():
        result = cli("push config.py --yes", environ=environ, code=1)
    assert "submitted" not in result.err
    assert "can't write the archive" in result.err


@pytest.mark.parametrize(("arguments", "written"), REPLACING.values(), ids=REPLACING)
def test_on_a_full_disk_what_was_there_stays(
    cli: RunCli, environ: Any, here: Path, arguments: Any, written: Any
) -> None:
    (here / written).parent.mkdir(parents=True, exist_ok=True)
    (here / written).write_text(OLD)
    with full_disk():
        cli(*arguments, environ=environ, code=1)
    assert (here / written).read_text() == OLD


HOST = "training-job-job1-0.ssh.baseten.co"
EMULATOR = "data/bt-tui/emulator"
ADDRESS = {"url": "http://127.0.0.1:9", "key_file": "key", "data_dir": "d", "pid": 2**30}
READ_BY = {
    "config/bt-tui/config.toml": ("jobs", "config show", "config validate", "--readonly jobs"),
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
    result = cli(command, environ={variable: "~no-such-user/file"}, code=None)
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
    environ |= baseten.environ() if is_signing else {}
    result = cli(command.replace("URL", baseten.url), environ=environ, code=None)
    assert result.err.count("\n") <= 8
    assert "Traceback" not in result.err and "unexpected" not in result.err, result.err
