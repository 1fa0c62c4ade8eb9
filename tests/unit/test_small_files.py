"""Own small files: only regular ones are read, and two programs that change one lose nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from api_client.files import MAX_SMALL_FILE_BYTES, read_small_file, update_private_file

APPEND = """
import sys, time
from pathlib import Path
from api_client.files import update_private_file

time.sleep = lambda _seconds: print("waiting", flush=True)
update_private_file(Path(sys.argv[1]), lambda before: before + b"theirs ")
print("done", flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


def test_pipe_device_folder_and_huge_file_are_refused(path: Path) -> None:
    pipe, huge = path.with_name("pipe"), path.with_name("huge")
    os.mkfifo(pipe)
    huge.write_bytes(b"x" * (MAX_SMALL_FILE_BYTES + 1))
    for unusable in (pipe, huge, path.parent, Path("/dev/zero"), Path("/dev/tty")):
        with pytest.raises(OSError, match=r".") as caught:
            read_small_file(unusable)
        assert caught.value.strerror


def test_largest_file_link_and_null_device_are_read(path: Path) -> None:
    path.write_bytes(b"x" * MAX_SMALL_FILE_BYTES)
    link = path.with_name("link")
    link.symlink_to(path)
    assert read_small_file(link) == path.read_bytes()
    assert read_small_file(Path(os.devnull)) == b""


def test_update_while_another_process_updates_loses_nothing(path: Path) -> None:
    others: list[subprocess.Popen[str]] = []

    def change(before: bytes) -> bytes:
        if not others:
            command = [sys.executable, "-c", APPEND, str(path)]
            others.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            assert others[0].stdout is not None
            assert others[0].stdout.readline() == "waiting\n"
        return before + b"ours "

    update_private_file(path, change)
    for other in others:
        assert other.communicate()[0].endswith("done\n")
    assert path.read_bytes() == b"ours theirs "


def test_update_while_another_program_writes_unlocked_loses_nothing(path: Path) -> None:
    seen: list[bytes] = []

    def change(before: bytes) -> bytes:
        seen.append(before)
        if len(seen) == 1:
            path.write_bytes(b"theirs ")
        return before + b"ours "

    update_private_file(path, change)
    assert (seen, path.read_bytes()) == ([b"", b"theirs "], b"theirs ours ")
    assert list(path.parent.iterdir()) == [path]


def test_update_of_an_ever_changing_file_fails_and_leaves_it(path: Path) -> None:
    def change(before: bytes) -> bytes:
        path.write_bytes(before + b"x")
        return b"ours"

    with pytest.raises(OSError, match="keeps changing"):
        update_private_file(path, change)
    assert set(path.read_bytes()) == {ord("x")}


def test_update_gives_up_if_another_process_never_ends_its_own(path: Path) -> None:
    def change(_before: bytes) -> bytes:
        with pytest.raises(TimeoutError, match="another program"):
            update_private_file(path, lambda _before: b"theirs", wait_s=0)
        return b"ours"

    update_private_file(path, change)
    assert path.read_bytes() == b"ours"


def test_update_replaces_what_is_unreadable_only_if_asked(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(OSError, match="not a regular file"):
        update_private_file(path, lambda _before: b"new")
    assert path.is_fifo()
    update_private_file(path, lambda before: before + b"new", replace_unreadable=True)
    assert path.read_bytes() == b"new"
