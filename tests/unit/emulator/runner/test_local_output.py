"""What a job prints, as log lines."""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from local_world import LocalWorld, job_spec

from api_client.clock import SystemClock
from api_client.emulator.backend import LogQuery
from api_client.emulator.runner.processes import (
    LINES_PER_TRANSACTION,
    MAX_LINE_BYTES,
    JobLog,
    LineSplitter,
    detect_level,
)
from api_client.emulator.store.database import Database, JobLogStore, LogRow


@given(st.lists(st.binary(max_size=20)), st.integers(1, 7))
def test_lines_are_the_same_however_the_bytes_arrive(lines: list[bytes], size: int) -> None:
    whole = b"".join(line.replace(b"\n", b"").replace(b"\r", b"") + b"\n" for line in lines)
    splitter = LineSplitter()
    found = []
    for start in range(0, len(whole), size):
        found += splitter.feed(whole[start : start + size], 0.0)
    found += splitter.finish()
    assert found == [text.decode("utf-8", "replace") for text in whole.split(b"\n")[:-1]]


def test_a_bar_that_never_pauses_is_shown_now_and_then_and_no_line_fills_the_memory() -> None:
    splitter = LineSplitter()
    shown = []
    for tick in range(30):
        shown += splitter.feed(b"\r%d%%" % tick, tick / 10)
        shown += splitter.overdue(tick / 10)
    shown += splitter.finish()
    assert len(shown) > 2
    assert "".join(shown) == "".join(f"\r{tick}%" for tick in range(30))
    chunk = b"x" * (MAX_LINE_BYTES // 4)
    found = [line for _ in range(9) for line in splitter.feed(chunk, 0.0)]
    assert [len(line) for line in found] == [MAX_LINE_BYTES, MAX_LINE_BYTES]


def test_the_level_is_read_off_the_line() -> None:
    levels = {
        **{"2026-01-01 12:00:00 INFO ready": "INFO", "INFO: 0 ERROR lines": "INFO", "DEBUG:x": "DEBUG"},
        **{"UserWarning: this is old": "WARNING", "ValueError: no": "ERROR"},
        **{"INFORMATION": None, "x" * 300 + " ERROR": None},
    }
    assert {line: detect_level(line) for line in levels} == levels


PROGRAM = r"""
import sys
out = sys.stdout.buffer
out.write(b'\x1b[2J\x1b[31mred\n[bold]markup[/]\nnul\x00nul\n\xff\xfe\n')
out.write(b'm' * 1_000_000 + b'\nINFO a\nERROR b\n')
out.write(b''.join(b'%d\n' % number for number in range(5000)) + b'no line end')
"""
WRITTEN = ["\x1b[2J\x1b[31mred", "[bold]markup[/]", "nul\0nul", "��", "m" * 1_000_000, "INFO a", "ERROR b"]
WRITTEN += [*map(str, range(5_000)), "no line end"]


async def test_output_arrives_as_it_is_and_is_read_by_a_query(tmp_path: Path, world: LocalWorld) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    await world.run("job1", job_spec(f"{sys.executable} {tmp_path}/program.py"))
    assert world.messages("job1") == WRITTEN
    stamps = [int(record["timestamp"]) for record in world.records("job1")]
    assert stamps == sorted(set(stamps))
    assert max(Counter(stamp // 1_000_000 for stamp in stamps).values()) <= 1000  # a page
    everything = [record["message"] for record in world.records("job1")]

    def read(**changes: Any) -> list[str]:
        query = replace(LogQuery(stamps[0], stamps[-1], "asc", limit=10_000), **changes)
        return [record["message"] for record in world.backend.logs("job1", query)]

    assert read() == everything[:-1]
    assert read(end_ns=stamps[-1] + 1, direction="desc", limit=2) == everything[:-3:-1]
    assert read(levels=frozenset({"ERROR"})) == ["ERROR b"]
    assert read(start_ns=-(10**30), end_ns=10**30) == everything
    assert read(start_ns=stamps[-1] + 1, end_ns=10**30) == []


async def test_stdout_and_stderr_keep_their_order_and_a_line_without_end_is_seen(world: LocalWorld) -> None:
    command = "echo one; echo two >&2; echo three; echo WARNING four >&2; printf 'five?'; sleep 1000"
    await world.create("job1", job_spec(command))
    await world.said("job1", "five?")
    assert not world.backend.log_is_complete("job1")
    await world.backend.stop("job1")
    assert world.messages("job1") == ["one", "two", "three", "WARNING four", "five?"]
    assert world.backend.log_is_complete("job1")
    assert [record["level"] for record in world.records("job1")][-3:] == [None, "WARNING", None]


class FaultyDisk(JobLogStore):
    """Refuses the second transaction."""

    transactions = 0

    def append(self, lines: Iterable[LogRow]) -> None:
        self.transactions += 1
        if self.transactions == 2:
            raise sqlite3.OperationalError("database or disk is full")
        super().append(lines)


MESSAGES = [str(number) for number in range(LINES_PER_TRANSACTION * 3 + 1)]


def test_a_disk_that_is_full_for_a_moment_loses_and_repeats_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(Database(tmp_path / "logs.db")) as database:
        store = FaultyDisk(database)
        log = JobLog(store, SystemClock(), "job1")
        log.write(0, MESSAGES)
        log.write(1, ["last"])
        records = store.read("job1", LogQuery(0, 2**62, "asc", limit=10**6))
    stamps = [int(record["timestamp"]) for record in records]
    assert stamps == sorted(set(stamps))
    assert [record["message"] for record in records] == [*MESSAGES, "last"]
    assert "could not be written" in caplog.text
