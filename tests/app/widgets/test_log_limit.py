"""Beyond the limit the oldest lines leave, a mark takes their place, and they can be read again."""

import builtins
import os
from collections import Counter
from collections.abc import Sequence
from typing import NoReturn

import pytest
from hypothesis import given, settings, strategies as st
from log_lines import NS_PER_S, START_NS, finish, line, lines

from api_client.models.logs import LogEntry, LogGap, LogLine, stamp_ns
from tui.analysis.logs.not_kept import NotKept
from tui.analysis.logs.pattern import LogPattern
from tui.widgets.log_view.model import LogModel
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.store import MAX_BYTES_PER_LINE, LogStore

LIMIT = 256
BATCH = 100


def fill(store: LogStore, entries: Sequence[LogEntry]) -> None:
    for begin in range(0, len(entries), BATCH):
        store.append(entries[begin : begin + BATCH])


def kept_lines(model: LogModel) -> list[LogEntry]:
    return [entry for entry in model.entries(filtered=False) if isinstance(entry, LogLine)]


def answer(server: Sequence[LogEntry], mark: NotKept) -> list[LogEntry]:
    """What reading the time range of a mark again returns."""
    return [entry for entry in server if mark.start_ns <= stamp_ns(entry) < mark.end_ns]


@pytest.mark.proves("docs/logs.md", "Memory")
def test_the_oldest_lines_leave_and_all_others_are_found_and_filtered() -> None:
    store, given_lines = LogStore(LIMIT), lines(0, 4_000)
    model = LogModel(store)
    fill(store, given_lines)
    assert len(store) <= LIMIT + 1
    assert kept_lines(model) == given_lines[store.dropped :]
    assert next(model.entries(filtered=False)) == store.not_kept[0]
    model.options = LogOptions(nodes=frozenset({"node-1"}), pattern=LogPattern("9", case=True))
    finish(model)
    wanted = [
        entry for entry in given_lines[store.dropped :] if entry.replica == "node-1" and "9" in entry.message
    ]
    assert list(model.entries(filtered=True)) == [*store.not_kept, *wanted]


def test_lines_of_any_length_take_no_more_memory_than_the_limit() -> None:
    store = LogStore(LIMIT)
    fill(store, [line(number, "x" * 10 * MAX_BYTES_PER_LINE) for number in range(LIMIT)])
    assert sum(len(block.data) for block in store.blocks) <= LIMIT * MAX_BYTES_PER_LINE
    assert store.dropped > LIMIT * 8 // 10


def test_older_history_beyond_the_limit_is_not_kept() -> None:
    store, given_lines = LogStore(LIMIT), lines(0, 4_000)
    model = LogModel(store)
    for end in range(len(given_lines), 0, -BATCH):
        store.prepend(given_lines[end - BATCH : end])
    assert kept_lines(model) == given_lines[store.dropped :]
    assert [mark.start_ns for mark in store.not_kept] == [START_NS]


def test_twice_as_many_stay_while_a_view_does_not_follow() -> None:
    store, given_lines = LogStore(LIMIT), lines(0, 4_000)
    model, _other = LogModel(store), LogModel(store)
    model.following = False
    fill(store, given_lines[: 2 * LIMIT])
    assert kept_lines(model) == given_lines[: 2 * LIMIT]
    fill(store, given_lines[2 * LIMIT :])
    assert LIMIT < len(store) <= 2 * LIMIT + 1
    model.following = True
    store.append([])
    assert len(store) <= LIMIT + 1


def test_the_first_error_is_known_after_it_left() -> None:
    store, error = LogStore(LIMIT), line(7.5, "ERROR: out of luck")
    fill(store, sorted([*lines(0, 4_000), error, line(3_900.5, "ERROR: again")], key=stamp_ns))
    first = store.first_error
    assert first is not None
    assert store.entry(first) == error
    mark = store.not_kept_at(first.time_ns)
    assert mark is not None
    with pytest.raises(KeyError):
        store.locate(first)
    store.replace_gap(mark, [error])
    assert store.first_error != first
    assert store.first_error is not None
    assert store.locate(store.first_error)


def test_a_gap_stays_until_all_lines_before_its_end_have_left() -> None:
    store = LogStore(LIMIT)
    gap = LogGap(START_NS + 3_500 * NS_PER_S, START_NS + 4_100 * NS_PER_S, "lost")
    store.append([*lines(3_000, 3_500), gap, *lines(3_990, 4_240)])
    assert list(LogModel(store).entries(filtered=False))[1] == gap
    assert gap.start_ns < store.not_kept[0].end_ns < gap.end_ns


def test_a_bookmark_leaves_with_its_line() -> None:
    store = LogStore(LIMIT)
    store.append(lines(0, 10))
    store.toggle_bookmark(store.blocks[0].key(3))
    fill(store, lines(10, 1_000))
    assert store.bookmarks == []


def test_no_file_is_opened_however_long_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> NoReturn:
        raise AssertionError("a file was opened")

    for module, name in ((builtins, "open"), (os, "open"), (os, "memfd_create")):
        monkeypatch.setattr(module, name, refuse, raising=False)
    store = LogStore(LIMIT)
    fill(store, lines(0, 4_000))
    assert store.dropped > 3_000


ticks = st.lists(st.integers(0, 3), min_size=1, max_size=60)
"""Steps between lines, in tenths of a millisecond: many share a millisecond, some a nanosecond."""


@settings(max_examples=60)
@given(st.lists(ticks, min_size=4, max_size=14), st.data())
@pytest.mark.proves("docs/logs.md", "Memory")
def test_every_line_is_there_once_after_all_were_read_again(
    batches: list[list[int]], data: st.DataObject
) -> None:
    """Lines with equal times come in order and late; then the marks are opened in pieces."""
    store = LogStore(20)
    model = LogModel(store)
    server: list[LogLine] = []
    now_ns = START_NS
    for batch in batches:
        model.following = data.draw(st.booleans())
        new = []
        for step in batch:
            now_ns += step * 100_000
            new.append(LogLine(now_ns, f"line {len(server) + len(new)}", "node-0", None))
        if data.draw(st.booleans()):
            late_ns = data.draw(st.integers(START_NS, now_ns))
            new.append(LogLine(late_ns, f"late {len(server)}", None, None, late=True))
        store.append(new)
        server = sorted([*server, *new], key=stamp_ns)
        missing = [entry for entry in server if store.not_kept_at(stamp_ns(entry))]
        present = Counter(kept_lines(model))
        assert store.dropped == len(server) - present.total()
        assert not Counter(server) - present - Counter(missing)
    model.following = False
    store.max_lines = len(server)
    read = [entry._replace(late=False) for entry in server]
    while store.not_kept:
        mark = data.draw(st.sampled_from(store.not_kept))
        middle_ns = data.draw(st.integers(mark.start_ns, mark.end_ns)) // 1_000_000 * 1_000_000
        part = NotKept(mark.start_ns, middle_ns, mark.reason)
        rest = (
            [NotKept(middle_ns, mark.end_ns, mark.reason)] if mark.start_ns < middle_ns < mark.end_ns else []
        )
        assert store.replace_gap(mark, [*answer(read, part if rest else mark), *rest])
    assert Counter(entry._replace(late=False) for entry in kept_lines(model)) == Counter(read)  # type: ignore[union-attr]
    assert [stamp_ns(entry) for entry in kept_lines(model)] == [stamp_ns(entry) for entry in read]
    assert store.dropped == 0


def test_the_reader_stays_where_lines_are_read_again_above() -> None:
    store = LogStore(LIMIT)
    model = LogModel(store)
    fill(store, lines(0, 1_000))
    model.following = False
    finish(model)
    model.set_cursor(5)
    entry, mark = model.cursor_entry, store.not_kept[0]
    rest = NotKept(mark.start_ns, mark.end_ns - 100 * NS_PER_S, mark.reason)
    store.replace_gap(mark, [rest, *lines(store.dropped - 100, store.dropped)])
    finish(model)
    assert model.cursor_entry == entry
    assert model.cursor_row == 105
    assert store.not_kept == [rest]
