"""Taking lines of a log elsewhere: files of one's own, pagers, editors."""

import asyncio
import os
import stat
from contextlib import nullcontext
from datetime import UTC
from functools import partial
from pathlib import Path

import pytest

from api_client.models.logs import LogEntry, LogGap, LogLine
from tui.system.external_programs import program_of, show_in_program
from tui.system.saved_files import proposed_path, save_entries

STAMP = 1_795_262_671_123_456_789
ENTRIES: list[LogEntry] = [
    LogLine(STAMP, "first\x1b[2J", "node-0", "ERROR"),
    LogGap(STAMP, STAMP + 10**9, "no answer"),
    LogLine(STAMP + 10**9, "lone \ud800", None, None),
]


shown = partial(
    show_in_program, name="run", start_entry=None, timezone=UTC, environ=os.environ, suspended=nullcontext
)


def files_of(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_a_log_is_saved_as_text_for_oneself_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    assert await save_entries(iter(ENTRIES), path, timezone=UTC) == 3
    assert path.read_text("utf-8").splitlines() == [
        "2026-11-21 12:04:31.123Z  node-0  ERROR  first",
        "-- gap 2026-11-21 12:04:31.123Z to 2026-11-21 12:04:32.123Z: no answer --",
        "2026-11-21 12:04:32.123Z  -  lone \ufffd",
    ]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert files_of(tmp_path) == [path]


async def test_what_is_there_is_replaced_only_when_that_is_meant_and_a_failure_leaves_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.log"

    def entries_meanwhile():
        yield ENTRIES[0]
        path.write_text("precious")

    def broken():
        yield ENTRIES[0]
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await save_entries(broken(), path)
    assert files_of(tmp_path) == []
    for entries in (entries_meanwhile(), iter(ENTRIES)):
        with pytest.raises(FileExistsError):
            await save_entries(entries, path)
        assert path.read_text() == "precious"
    await save_entries(iter(ENTRIES[:1]), path, replace=True)
    assert "first" in path.read_text()
    assert files_of(tmp_path) == [path]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llama 70b", "llama-70b.log"),
        ("../../etc/passwd", "etc-passwd.log"),
        ("/absolute", "absolute.log"),
        ("a\nb\x1b[2J", "a-b-2J.log"),
        ("..", "job.log"),
        ("日本", "job.log"),
        ("x" * 300, "x" * 80 + ".log"),
    ],
)
def test_a_name_from_the_server_stays_in_the_folder(name: str, expected: str) -> None:
    assert proposed_path(name, suffix=".log", fallback_name="job") == Path(expected)


def test_without_one_it_is_what_the_machine_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program_of("pager", {"PAGER": "'unfinished"}) is None
    (tmp_path / "more").write_text("#!/bin/sh\n")
    (tmp_path / "more").chmod(0o755)
    assert program_of("pager", {}) == ["more"]


async def test_save_that_is_canceled_as_it_begins_leaves_no_file(tmp_path: Path) -> None:
    saving = asyncio.create_task(save_entries(iter(ENTRIES), tmp_path / "log.txt"))
    await asyncio.sleep(0)
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    await asyncio.get_running_loop().shutdown_default_executor()  # what its threads still do is done
    assert files_of(tmp_path) == []


async def test_a_program_gets_no_key_and_a_private_file_that_is_gone_afterwards(tmp_path: Path) -> None:
    kept, told = tmp_path / "kept", tmp_path / "told"
    keys = {"BASETEN_API_KEY": "s3cret", "BASETEN_TRUSS_AUTH_API_KEY": "s3cret", "LESS": "-R"}
    script = f'cat "$2" > {kept}; env > {told}; stat -c "%a %n" "$2" >> {kept}; echo "$1" >> {kept}; exit 3'
    command = ["sh", "-c", script, "sh", "an argument"]
    assert await shown(command, ENTRIES, environ=os.environ | keys) == 3
    *rows, facts, argument = kept.read_text("utf-8").splitlines()
    assert rows[0] == "2026-11-21 12:04:31.123Z  node-0  ERROR  first"
    assert len(rows) == len(ENTRIES)
    assert argument == "an argument"
    mode, path = facts.split(" ", 1)
    assert mode == "600"
    assert Path(path).name == "run.log"
    assert not Path(path).parent.exists()
    assert "LESS=-R" in told.read_text("utf-8")
    assert "s3cret" not in told.read_text("utf-8")


@pytest.mark.parametrize(("here", "row"), [(1, 2), (None, 4)])
@pytest.mark.proves("docs/logs.md", "The log viewer")
async def test_a_pager_begins_where_the_reader_is(tmp_path: Path, here: int | None, row: int) -> None:
    """A message of several lines takes as many rows; who follows begins at the end."""
    kept, pager = tmp_path / "kept", tmp_path / "less"
    pager.write_text(f'#!/bin/sh\necho "$@" > {kept}; cat "$2" >> {kept}\n')
    pager.chmod(0o755)
    entries = [LogLine(STAMP + at, text, "node-0", None) for at, text in enumerate(("a", "b\nc", "d"))]
    await shown([str(pager)], entries, start_entry=None if here is None else entries[here])
    arguments, *rows = kept.read_text("utf-8").splitlines()
    assert arguments.split()[0] == f"+{row}"
    assert rows[row - 1].endswith("abd"[2 if here is None else here])


async def test_a_program_that_does_not_start_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(OSError, match="No such file"):
        await shown([str(tmp_path / "missing")], ENTRIES)
    assert files_of(tmp_path) == []
