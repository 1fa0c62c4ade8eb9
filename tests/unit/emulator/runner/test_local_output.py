"""What a job prints, as log lines."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from local_world import PATIENCE_S, LocalWorld, job_spec

from api_client.clock import SystemClock
from api_client.emulator.backend import LogQuery
from api_client.emulator.runner.log_writer import (
    LINES_A_TRANSACTION,
    MAXIMUM_LINE_BYTES,
    LineSplitter,
    LogWriter,
    detect_level,
)
from api_client.emulator.store.database import Database
from api_client.emulator.store.job_streams import JobLogStore, StoredLine


@given(st.lists(st.binary(max_size=20)), st.integers(1, 7))
def test_lines_are_the_same_however_the_bytes_arrive(lines: list[bytes], size: int) -> None:
    whole = b"".join(line.replace(b"\n", b"").replace(b"\r", b"") + b"\n" for line in lines)
    splitter = LineSplitter()
    found = []
    for start in range(0, len(whole), size):
        found += splitter.feed(whole[start : start + size], 0.0)
    found += splitter.finish()
    assert found == [text.decode("utf-8", "replace") for text in whole.split(b"\n")[:-1]]


def test_a_progress_bar_that_never_pauses_is_shown_now_and_then() -> None:
    splitter = LineSplitter()
    shown = []
    for tick in range(30):
        shown += splitter.feed(b"\r%d%%" % tick, tick / 10)
        shown += splitter.overdue(tick / 10)
    shown += splitter.finish()
    assert len(shown) > 2
    assert "".join(shown) == "".join(f"\r{tick}%" for tick in range(30))


def test_output_without_any_line_end_does_not_fill_memory() -> None:
    splitter = LineSplitter()
    chunk = b"x" * (MAXIMUM_LINE_BYTES // 4)
    found = [line for _ in range(9) for line in splitter.feed(chunk, 0.0)]
    assert [len(line) for line in found] == [MAXIMUM_LINE_BYTES, MAXIMUM_LINE_BYTES]


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("2026-01-01 12:00:00 INFO ready", "INFO"),
        ("[WARNING] slow", "WARNING"),
        ("UserWarning: this is old", "WARNING"),
        ("Traceback (most recent call last):", "ERROR"),
        ("ValueError: no", "ERROR"),
        ("CRITICAL everything", "ERROR"),
        ("INFO: 0 ERROR lines", "INFO"),
        ("DEBUG:x", "DEBUG"),
        ("INFORMATION", None),
        ("{'loss': 1.0}", None),
        ("x" * 300 + " ERROR", None),
    ],
)
def test_the_level_is_read_off_the_line(line: str, level: str | None) -> None:
    assert detect_level(line) == level


async def test_hostile_output_arrives_as_it_is(tmp_path: Path, world: LocalWorld) -> None:
    program = (
        "import sys\n"
        "out = sys.stdout.buffer\n"
        "out.write(b'\\x1b[2J\\x1b[31mred\\n[bold]markup[/]\\nnul\\x00nul\\n\\xff\\xfe\\n')\n"
        "out.write(b'm' * 1_000_000 + b'\\n')\n"
        "out.write(b'no line end')\n"
    )
    (tmp_path / "hostile.py").write_text(program)
    await world.run("job1", job_spec(f"{sys.executable} {tmp_path}/hostile.py"))
    said = world.messages("job1")
    assert said[:4] == ["\x1b[2J\x1b[31mred", "[bold]markup[/]", "nul\0nul", "��"]
    assert said[4] == "m" * 1_000_000
    assert said[5:] == ["no line end"]


async def test_stdout_and_stderr_keep_their_order_and_a_line_without_end_is_seen(world: LocalWorld) -> None:
    command = "echo one; echo two >&2; echo three; echo WARNING four >&2; printf 'five?'; sleep 1000"
    await world.create("job1", job_spec(command))
    await world.said("job1", "five?")
    assert not world.backend.log_is_complete("job1")
    await world.backend.stop("job1")
    assert world.messages("job1") == ["one", "two", "three", "WARNING four", "five?"]
    assert world.backend.log_is_complete("job1")
    assert [record["level"] for record in world.records("job1")][-3:] == [None, "WARNING", None]


async def test_a_burst_is_kept_whole_in_order_and_can_be_paged_by_milliseconds(
    tmp_path: Path, world: LocalWorld
) -> None:
    count = 10_000
    program = f"import sys\nsys.stdout.write(''.join(f'{{n}}\\n' for n in range({count})))\n"
    (tmp_path / "burst.py").write_text(program)
    await world.run("job1", job_spec(f"{sys.executable} {tmp_path}/burst.py"))
    assert world.messages("job1") == [str(number) for number in range(count)]
    stamps = [int(record["timestamp"]) for record in world.records("job1")]
    assert stamps == sorted(set(stamps))
    assert max(Counter(stamp // 1_000_000 for stamp in stamps).values()) <= 1000


async def test_logs_are_read_by_window_direction_limit_and_level(world: LocalWorld) -> None:
    await world.run("job1", job_spec("echo plain; echo INFO a; echo ERROR b; echo INFO c"))
    records = world.records("job1")
    first, last = int(records[0]["timestamp"]), int(records[-1]["timestamp"])

    def read(**changes: Any) -> list[str]:
        found = world.backend.logs("job1", replace(LogQuery(first, last, "asc", limit=100), **changes))
        return [record["message"] for record in found]

    everything = [record["message"] for record in records]
    assert read() == everything[:-1]
    assert read(end_ns=last + 1, direction="desc", limit=2) == ["INFO c", "ERROR b"]
    assert read(end_ns=last + 1, levels=frozenset({"ERROR"})) == ["ERROR b"]
    assert read(start_ns=-(10**30), end_ns=10**30) == everything
    assert read(start_ns=last + 1, end_ns=10**30) == []


class FaultyDisk(JobLogStore):
    """Refuses the second transaction if it is full, and holds each back until it is released."""

    def __init__(self, database: Database, *, full: bool = False) -> None:
        super().__init__(database)
        self.transactions, self.full = 0, full
        self.begun, self.released = threading.Event(), threading.Event()

    def append(self, lines: Iterable[StoredLine]) -> None:
        self.transactions += 1
        self.begun.set()
        assert self.released.wait(PATIENCE_S)
        if self.full and self.transactions == 2:
            raise sqlite3.OperationalError("database or disk is full")
        super().append(lines)

    def messages(self) -> list[str]:
        read = self.read("job1", LogQuery(0, 2**62, "asc", limit=10**6))
        stamps = [int(record["timestamp"]) for record in read]
        assert stamps == sorted(set(stamps))
        return [record["message"] for record in read]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path / "logs.db")) as opened:
        yield opened


MESSAGES = [str(number) for number in range(LINES_A_TRANSACTION * 3 + 1)]


async def test_a_disk_that_is_full_for_a_moment_loses_and_repeats_nothing(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    store = FaultyDisk(database, full=True)
    store.released.set()
    writer = LogWriter(store, SystemClock())
    writer.add("job1", 0, MESSAGES)
    writer.add("job1", 1, ["last"])
    assert (writer.is_holding("job1"), writer.is_holding("job2")) == (True, False)
    await writer.flush()
    assert writer.is_holding("job1")
    await writer.close()
    assert not writer.is_holding("job1")
    assert store.messages() == [*MESSAGES, "last"]
    assert "could not be written" in caplog.text


async def test_closing_during_a_transaction_loses_and_repeats_nothing(database: Database) -> None:
    store = FaultyDisk(database)
    writer = LogWriter(store, SystemClock())
    writer.add("job1", 0, MESSAGES)
    assert await asyncio.to_thread(store.begun.wait, PATIENCE_S)
    closing_writer = asyncio.create_task(writer.close())
    await asyncio.sleep(0)
    store.released.set()
    await closing_writer
    assert store.messages() == MESSAGES
