"""``bt-tui download`` and ``bt-tui checkpoints download``: streams, exit codes, interruptions."""

import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from api_client.transfers.part_file import part_paths
from support.archives import packed
from support.cli import Result, RunCli, Start
from support.fake_object_store import JOB, FakeObjectStore, Stored

MIB = 1024 * 1024
SIZE_BYTES = 12 * MIB
PATIENCE_S = 60.0
POLL_EVERY_S = 0.02
CODE = {"src/config.py": b"x=1"}
DOWNLOAD = ("checkpoints", "download", "--job-id", JOB)


@pytest.fixture
def store() -> Iterator[FakeObjectStore]:
    with FakeObjectStore(Stored("ckpt-1/a.json", b"{}"), Stored("ckpt-2/b.bin", b"b" * 100)) as store:
        yield store


@pytest.mark.usefixtures("in_folder")
def test_code_goes_into_the_official_folder(cli: RunCli, store: FakeObjectStore, tmp_path: Path) -> None:
    as_it_is = f"download {JOB} --no-unzip -o json"
    without = cli(as_it_is, environ=store.environ(), code=7)
    assert (without.out, "no code archive" in without.err) == ("", True)
    store.archive = packed(CODE)
    result = cli(f"download {JOB} --target-directory to", environ=store.environ())
    folder = tmp_path / "to" / f"my project_{JOB}"
    assert tmp_path / result.out.strip() == folder
    assert (folder / "src/config.py").read_text() == "x=1"
    again = cli(f"download --job-id {JOB} --target-directory to", environ=store.environ(), code=2)
    assert "already exists" in again.err
    document = cli(as_it_is, environ=store.environ()).json
    assert (tmp_path / document["path"]).read_bytes() == store.archive
    assert document["path"].endswith(f"_{JOB}.tgz")
    cli(as_it_is, environ=store.environ(), code=2)
    for option in ("--out-file code.tar", "--out-dir code"):
        cli(f"download {JOB} {option}", environ=store.environ())
    assert (tmp_path / "code.tar").read_bytes() == store.archive
    assert (tmp_path / "code" / "src" / "config.py").read_text() == "x=1"


@pytest.mark.proves("docs/commands.md", "`checkpoints list`")
def test_all_or_some_checkpoints_and_files(cli: RunCli, store: FakeObjectStore, tmp_path: Path) -> None:
    def fetch(folder: str, *more: str) -> Result:
        return cli(*DOWNLOAD, "--to", str(tmp_path / folder), *more, environ=store.environ())

    document = fetch("all", "-o", "json").json
    assert [file["state"] for file in document["files"]] == ["done", "done"]
    assert [Path(file["path"]).read_bytes() for file in document["files"]] == [b"{}", b"b" * 100]
    assert document["fetched_bytes"] == 102
    assert str(tmp_path / "to/ckpt-2/b.bin") in fetch("to", "ckpt-2").out
    assert not (tmp_path / "to/ckpt-1").exists()
    fetch("to", "--file", "*.json")
    assert (tmp_path / "to/ckpt-1/a.json").exists()


def test_names_that_the_file_system_cannot_hold_are_changed(cli_process: Start, tmp_path: Path) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    with FakeObjectStore(Stored("Zürich/日本.json", b"{}"), Stored("long/" + "é" * 200, b"x")) as store:
        running = cli_process(*DOWNLOAD, "--to", str(tmp_path / "to"), environ=store.environ() | ascii_only)
        _out, err = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, "Unicode" in err) == (0, False)
    written = [each.read_bytes() for each in (tmp_path / "to").rglob("*") if each.is_file()]
    assert sorted(written) == [b"x", b"{}"]


def test_no_file_in_the_way_is_replaced_unasked(cli: RunCli, store: FakeObjectStore, tmp_path: Path) -> None:
    taken = tmp_path / "to/ckpt-1/a.json"
    taken.parent.mkdir(parents=True)
    taken.write_text("mine")
    to = ("--to", str(tmp_path / "to"))
    for missing in (("nonesuch",), ("--file", "*.nope")):
        result = cli(*DOWNLOAD, *missing, *to, environ=store.environ(), code=7)
        assert (result.out, store.requests) == ("", [])
    result = cli(*DOWNLOAD, *to, environ=store.environ(), code=2)
    assert result.out == ""
    assert "--existing" in result.err
    cli(*DOWNLOAD, *to, "--existing", "overwrite", environ=store.environ())
    assert taken.read_text() == "{}"


def test_hostile_names_stay_off_the_terminal_and_inside(
    cli: RunCli, store: FakeObjectStore, tmp_path: Path
) -> None:
    store.files.append(Stored("ckpt-1/\x1b[31mred\nline", b"x"))
    arguments = (*DOWNLOAD, "--to", str(tmp_path / "to"))
    result = cli(*arguments, environ=store.environ())
    assert "\x1b" not in result.out + result.err
    assert len(result.out.splitlines()) == 4
    store.files.append(Stored("../out", b"x"))
    result = cli(*arguments, "-o", "json", environ=store.environ(), code=1)
    assert "points outside the folder" in result.err
    assert [each["relative_file_name"] for each in result.json["refused"]] == ["../out"]
    store.files[1] = Stored("ckpt-3/large", b"", listed_size=2**60)
    result = cli(*arguments, environ=store.environ(), code=1)
    assert result.out == ""
    assert "MiB free" in result.err and "nothing was downloaded" in result.err


@pytest.mark.usefixtures("no_waits")
def test_a_store_that_is_gone(cli: RunCli, store: FakeObjectStore, tmp_path: Path) -> None:
    store.objects.shutdown()
    store.objects.server_close()
    result = cli(*DOWNLOAD, "--file", "a.json", "--to", str(tmp_path / "to"), environ=store.environ(), code=8)
    assert "1 of 1 file failed" in result.err


def saved_bytes(path: Path) -> int:
    part = part_paths(path)[0]
    return part.stat().st_size if part.exists() else 0


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.proves("README.md", "What is in this checkpoint?")
def test_an_interrupted_download_resumes(cli: RunCli, cli_process: Start, tmp_path: Path, end: int) -> None:
    content, target = random.Random(3).randbytes(SIZE_BYTES), tmp_path / "to/ckpt/model.bin"
    arguments = (*DOWNLOAD, "--to", str(tmp_path / "to"))
    with FakeObjectStore(Stored("ckpt/model.bin", content)) as store:
        held_back = SIZE_BYTES * 3 // 4
        store.behaviour.before_piece = lambda sent: sent >= held_back and store.go_on.wait(PATIENCE_S)
        first = cli_process(*arguments, environ=store.environ())
        while saved_bytes(target) < SIZE_BYTES // 3:
            assert first.poll() is None, first.communicate()
            store.go_on.wait(POLL_EVERY_S)
        first.send_signal(end)
        _out, err = first.communicate(timeout=PATIENCE_S)
        assert first.returncode == (130 if end == signal.SIGINT else -signal.SIGKILL)
        assert end == signal.SIGKILL or "run the same command again" in err
        assert not target.exists()
        kept = saved_bytes(target)
        store.go_on.set()
        second = cli(*arguments, "-o", "json", environ=store.environ())
    assert second.json["fetched_bytes"] == SIZE_BYTES - kept, "only the rest"
    assert target.read_bytes() == content
    assert not list(target.parent.glob(".bt-tui-*"))
