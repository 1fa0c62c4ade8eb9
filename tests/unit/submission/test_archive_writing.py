"""The archive as a file: what a tar reader finds in it."""

import os
import stat
import tarfile
from pathlib import Path

import pytest

from api_client.errors import ArchiveError
from api_client.submission.archive import plan_archive, write_archive


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


def write(source: Path, tmp_path: Path, name: str = "archive.tgz") -> Path:
    return write_archive(plan_archive(source), tmp_path / name)


def test_it_is_an_uncompressed_tar_of_files_alone(source: Path, tmp_path: Path) -> None:
    plan = plan_archive(source)
    path = write_archive(plan, tmp_path / "archive.tgz")
    assert path.stat().st_size == plan.size_bytes
    assert write(source, tmp_path, "second.tgz").read_bytes() == path.read_bytes()
    with tarfile.open(path, "r:") as archive:
        members = {each.name: each for each in archive}
        data = archive.extractfile("deep/data.bin")
        assert data is not None
        assert data.read() == (source / "deep/data.bin").read_bytes()
        archive.extractall(tmp_path / "unpacked", filter="data")
    assert (tmp_path / "unpacked/link").read_text() == "#!/bin/sh\n"
    assert list(members) == sorted(members)
    assert set(members) == {
        "deep/data.bin", f"deep/{'long ' * 30}ü.txt", "empty.txt", "link", "run.sh",
    }  # fmt: skip
    assert members["run.sh"].mode & stat.S_IXUSR
    assert members["link"].issym()
    assert members["link"].linkname == "run.sh"
    assert {each.uid for each in members.values()} == {0}
    assert {each.uname for each in members.values()} == {""}


def test_names_that_are_no_utf_8_survive(tmp_path: Path) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    name = os.fsdecode(b"caf\xe9.txt")
    try:
        (folder / name).write_text("x")
    except OSError:
        pytest.skip("this file system has no such names")
    plan = plan_archive(folder)
    to = write_archive(plan, tmp_path / "a.tgz")
    assert to.stat().st_size == plan.size_bytes
    with tarfile.open(to) as archive:
        assert archive.getnames() == [name]


def test_only_its_owner_can_read_it_and_nothing_is_overwritten(source: Path, tmp_path: Path) -> None:
    path = write(source, tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(ArchiveError, match="already exists"):
        write(source, tmp_path)
    with pytest.raises(ArchiveError, match="can't write the archive to /nowhere"):
        write_archive(plan_archive(source), Path("/nowhere/a.tgz"))


def test_progress_rises_to_the_whole_and_whoever_listens_can_end_it(tmp_path: Path) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "data.bin").write_bytes(bytes(3_000_000))
    told: list[tuple[int, int]] = []
    write_archive(plan_archive(folder), tmp_path / "a.tgz", lambda done, total: told.append((done, total)))
    assert len(told) >= 3
    assert told == sorted(told)
    assert told[-1] == (3_000_000, 3_000_000)

    def stop(_done: int, _total: int) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        write_archive(plan_archive(folder), tmp_path / "b.tgz", stop)
    assert (tmp_path / "b.tgz").stat().st_size < 3_000_000


def test_a_file_that_changes_after_the_plan_is_taken_as_it_is_or_named(source: Path, tmp_path: Path) -> None:
    plan = plan_archive(source)
    (source / "empty.txt").write_text("now it has content")
    with tarfile.open(write_archive(plan, tmp_path / "a.tgz")) as archive:
        content = archive.extractfile("empty.txt")
        assert content is not None
        assert content.read() == b"now it has content"
    (source / "run.sh").unlink()
    with pytest.raises(ArchiveError, match=r"run\.sh cannot be read: No such file"):
        write_archive(plan, tmp_path / "b.tgz")


def test_a_file_that_shrinks_while_it_is_read_is_named(source: Path, tmp_path: Path) -> None:
    big = source / "deep" / "data.bin"
    big.write_bytes(bytes(5_000_000))

    def shrink(_done: int, _total: int) -> None:
        os.truncate(big, 10)

    with pytest.raises(ArchiveError, match=r"data\.bin became shorter while being read"):
        write_archive(plan_archive(source), tmp_path / "a.tgz", shrink)
