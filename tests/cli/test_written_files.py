"""Every file that a command writes: created exclusively, whole or not there, and never through a link."""

from __future__ import annotations

import os
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from whole_platform import CONFIG

from support.cli import RunCli
from support.every_command import ENDED, JOB, SERVED

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
    result = cli(*arguments, environ=environ)
    assert result.code == 0, result.err
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
    result = cli(*arguments, environ=environ)
    assert result.code == 0, result.err
    assert victim.read_text() == OLD
    assert not (here / written).is_symlink()


def test_own_pipe_is_written_to_as_it_is(cli: RunCli, environ: Any, here: Path) -> None:
    pipe = here / "run.log"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        result = cli("logs", JOB, "--save", "run.log", "--force", environ=environ)
        assert result.code == 0, result.err
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
        result = cli("logs", JOB, "--save", "run.log", "--force", environ=environ)
        assert result.code == 0, result.err
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
        result = cli(*arguments, environ=environ)
    assert result.code == 1, result.err
    assert "the file is too large for the file system or your limits (ulimit -f)" in result.err
    assert "Traceback" not in result.err
    left = [name for name in files_below(here) if not re.search(r"\.part$|/\.bt-tui-", name)]
    assert left == []  # but what resumes a download
    assert "Partial files are kept" not in result.err


def test_without_room_for_its_archive_nothing_is_submitted(cli: RunCli, environ: Any, here: Path) -> None:
    (here / "config.py").write_text(CONFIG)
    with full_disk():
        result = cli("push config.py --yes", environ=environ)
    assert (result.code, "submitted" in result.err) == (1, False), result.err
    assert "can't write the archive" in result.err


@pytest.mark.parametrize(("arguments", "written"), REPLACING.values(), ids=REPLACING)
def test_on_a_full_disk_what_was_there_stays(
    cli: RunCli, environ: Any, here: Path, arguments: Any, written: Any
) -> None:
    (here / written).parent.mkdir(parents=True, exist_ok=True)
    (here / written).write_text(OLD)
    with full_disk():
        result = cli(*arguments, environ=environ)
    assert result.code == 1, result.err
    assert (here / written).read_text() == OLD
