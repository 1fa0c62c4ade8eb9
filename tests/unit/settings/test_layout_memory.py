"""What is remembered is private and small; nothing in its place is fatal, and dashboards share it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from api_client.files import MAX_SMALL_FILE_BYTES
from tui.settings.remembered import (
    Bookmarks,
    DashboardState,
    HomeState,
    JobState,
    Memory,
    ThemeState,
    read_state,
    restored,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "layout.json"


def bookmark(memory: Memory, *jobs: str) -> None:
    memory.put(bookmarks=Bookmarks(jobs=list(jobs)))


def test_what_was_put_is_there_the_next_time(file: Path) -> None:
    memory = Memory(file)
    memory.put(home=HomeState(sort="age", filter="status:running"), tips={"home.filter": 2})
    memory.save()
    assert Memory(file).state == memory.state
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(file.parent.iterdir()) == [file]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ["sort", "descending", "filter", "tab", "wrap", "time", "jobs", "name", "home.filter"]
TABLES = st.dictionaries(st.sampled_from(FIELDS), JSON)
NAMES = [each.name for each in fields(DashboardState)]
STATES = st.dictionaries(st.sampled_from([*NAMES, "else"]), TABLES | JSON)


@given(STATES | JSON)
def test_any_json_is_read_and_is_of_the_right_shape_after_a_save(
    tmp_path_factory: pytest.TempPathFactory, content: Any
) -> None:
    file = tmp_path_factory.getbasetemp() / "layout.json"
    file.write_text(json.dumps(content))
    memory = Memory(file)
    bookmark(memory, "new")
    memory.save()
    stored = json.loads(file.read_text())
    assert asdict(restored(DashboardState, stored)) == stored
    assert Memory(file).state == memory.state


@given(st.binary())
def test_any_bytes_are_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "layout.json"
    file.write_bytes(content)
    assert Memory(file).state == DashboardState()


def unreadable(file: Path) -> None:
    file.write_text("{}")
    file.chmod(0)


ABSURD: dict[str, Callable[[Path], object]] = {
    "a list": lambda file: file.write_text("[1]"),
    "nested": lambda file: file.write_bytes(b"[" * 100_000),
    "number": lambda file: file.write_bytes(b"9" * 5_000),
    "bytes": lambda file: file.write_bytes(b"\xff\x00"),
    "large": lambda file: file.write_bytes(b" " * (MAX_SMALL_FILE_BYTES + 1)),
    "no permission": unreadable,
    "pipe": os.mkfifo,
    "broken link": lambda file: file.symlink_to("nowhere"),
    "link to itself": lambda file: file.symlink_to(file),
    "device": lambda file: file.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("spoil", ABSURD.values(), ids=ABSURD)
def test_absurd_file_is_replaced_at_the_next_save(file: Path, spoil: Callable[[Path], object]) -> None:
    file.parent.mkdir()
    spoil(file)
    memory = Memory(file)
    assert memory.state == DashboardState()
    bookmark(memory, "new")
    memory.save()
    assert Memory(file).state.bookmarks.jobs == ["new"]


def test_wrong_field_leaves_the_others_in_force(file: Path) -> None:
    file.parent.mkdir()
    tables = '"tips": {"home.filter": NaN}, "job": 3, "theme": {"name": "\\ud800"}, "teams": {"\\ud800": ""}'
    file.write_text(f'{{"home": {{"sort": [1], "filter": "llama"}}, {tables}}}')
    assert Memory(file).state == DashboardState(home=HomeState(filter="llama"))


def test_folder_in_place_of_the_file_is_left(file: Path) -> None:
    file.mkdir(parents=True)
    memory = Memory(file)
    bookmark(memory, "new")
    memory.save()
    assert file.is_dir()
    assert Memory(file).state == DashboardState()


def test_what_cannot_be_written_or_is_too_much_is_done_without(tmp_path: Path) -> None:
    blocked, file = tmp_path / "file", tmp_path / "layout.json"
    blocked.write_text("")
    for memory, text in ((Memory(blocked / "layout.json"), "x"), (Memory(file), "x" * MAX_SMALL_FILE_BYTES)):
        memory.put(home=HomeState(filter=text))
        memory.save()
        assert memory.state.home.filter == text
    assert not file.exists()


def test_two_dashboards_lose_nothing_of_each_other(file: Path) -> None:
    start = Memory(file)
    bookmark(start, "old", "gone")
    start.put(tips={"home.filter": 1})
    start.save()
    first, second = Memory(file), Memory(file)
    bookmark(first, "old", "gone", "first")
    first.put(home=HomeState(sort="age"), tips={"home.filter": 2}, teams={"acme": "Vision"})
    bookmark(second, "old", "second")
    second.put(home=HomeState(filter="llama"), tips={"home.filter": 2}, theme=ThemeState(name="nord"))
    first.save()
    second.save()
    bookmark(first, "old", "gone", "first", "later")
    first.save()
    assert read_state(file, DashboardState) == DashboardState(
        home=HomeState(sort="age", filter="llama"),
        bookmarks=Bookmarks(jobs=["old", "first", "second", "later"]),
        theme=ThemeState(name="nord"),
        teams={"acme": "Vision"},
        tips={"home.filter": 3},
    )


def test_a_save_while_another_process_writes_is_made_up_for_later(file: Path) -> None:
    file.parent.mkdir()
    memory = Memory(file)
    memory.put(job=JobState(tab="logs", time="utc"))
    lock = os.open(file.parent, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    memory.save()
    assert not file.exists()
    os.close(lock)
    memory.save()
    assert Memory(file).state.job == JobState(tab="logs", time="utc")


IDS = st.lists(st.sampled_from("abcdef"), unique=True)


@given(IDS, st.lists(st.tuples(st.booleans(), st.sampled_from("abcdef")), max_size=8))
def test_bookmarks_toggled_in_two_dashboards_are_all_kept(
    tmp_path_factory: pytest.TempPathFactory, before: list[str], toggled: list[tuple[bool, str]]
) -> None:
    """Each dashboard has its own jobs here: which of two contrary changes of one job counts is open."""
    file = tmp_path_factory.getbasetemp() / "layout.json"
    file.unlink(missing_ok=True)
    start = Memory(file)
    bookmark(start, *before)
    start.save()
    dashboards = {True: Memory(file), False: Memory(file)}
    expected = set(before)
    for is_first, job in toggled:
        if is_first != (job in "abc"):
            continue
        memory = dashboards[is_first]
        own = memory.state.bookmarks.jobs
        bookmark(memory, *([one for one in own if one != job] if job in own else [*own, job]))
        memory.save()
        expected ^= {job}
    assert set(Memory(file).state.bookmarks.jobs) == expected
