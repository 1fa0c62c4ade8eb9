"""The archive as a file: what a tar reader finds in it."""

import os
import stat
import tarfile
from pathlib import Path

import pytest

from api_client.errors import ArchiveError
from api_client.submission.archive import plan_archive, write_archive

BIG = 3_000_000


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "deep").mkdir(parents=True)
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "deep" / "data.bin").write_bytes(os.urandom(70_000))
    (folder / "deep" / ("long " * 30 + "ü.txt")).write_text("x")
    (folder / "empty.txt").touch()
    (folder / "link").symlink_to("run.sh")
    return folder


def content(archive: Path, name: str) -> bytes:
    with tarfile.open(archive, "r:") as opened:
        file = opened.extractfile(name)
        assert file is not None
        return file.read()


def test_it_is_an_uncompressed_tar_of_files_that_nobody_else_can_read(source: Path, tmp_path: Path) -> None:
    plan = plan_archive(source)
    path = write_archive(plan, tmp_path / "archive.tgz")
    assert (path.stat().st_size, stat.S_IMODE(path.stat().st_mode)) == (plan.size_bytes, 0o600)
    assert write_archive(plan, tmp_path / "second.tgz").read_bytes() == path.read_bytes()
    assert content(path, "deep/data.bin") == (source / "deep/data.bin").read_bytes()
    with tarfile.open(path, "r:") as archive:
        members = {each.name: each for each in archive}
    names = ["deep/data.bin", f"deep/{'long ' * 30}ü.txt", "empty.txt", "link", "run.sh"]
    assert list(members) == sorted(members) == names
    assert members["run.sh"].mode & stat.S_IXUSR
    assert (members["link"].issym(), members["link"].linkname) == (True, "run.sh")
    assert {(each.uid, each.uname) for each in members.values()} == {(0, "")}
    with pytest.raises(ArchiveError, match="already exists"):
        write_archive(plan, path)
    with pytest.raises(ArchiveError, match="can't write the archive to /nowhere"):
        write_archive(plan, Path("/nowhere/a.tgz"))


def test_names_that_are_no_utf_8_survive(tmp_path: Path) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    name = os.fsdecode(b"caf\xe9.txt")
    try:
        (folder / name).write_text("x")
    except OSError:
        pytest.skip("this file system has no such names")
    assert content(write_archive(plan_archive(folder), tmp_path / "a.tgz"), name) == b"x"


def test_progress_rises_to_the_whole_and_whoever_listens_can_end_it(source: Path, tmp_path: Path) -> None:
    (source / "deep" / "data.bin").write_bytes(bytes(BIG))
    plan = plan_archive(source)
    told: list[tuple[int, int]] = []
    write_archive(plan, tmp_path / "a.tgz", lambda done, total: told.append((done, total)))
    assert len(told) >= 3
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] > BIG

    def stop(_done: int, _total: int) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        write_archive(plan, tmp_path / "b.tgz", stop)
    assert (tmp_path / "b.tgz").stat().st_size < BIG


def test_a_file_that_changes_after_the_plan_is_taken_as_it_is_or_named(source: Path, tmp_path: Path) -> None:
    big = source / "deep" / "data.bin"
    big.write_bytes(bytes(BIG))
    plan = plan_archive(source)
    (source / "empty.txt").write_text("now it has content")
    assert content(write_archive(plan, tmp_path / "a.tgz"), "empty.txt") == b"now it has content"
    with pytest.raises(ArchiveError, match=r"data\.bin became shorter while being read"):
        write_archive(plan, tmp_path / "b.tgz", lambda _done, _total: os.truncate(big, 10))
    (source / "run.sh").unlink()
    with pytest.raises(ArchiveError, match=r"run\.sh cannot be read: No such file"):
        write_archive(plan, tmp_path / "c.tgz")
