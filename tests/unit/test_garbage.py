from __future__ import annotations

import ctypes
import gc
import os
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.segment import Segment
from textual._styles_cache import StylesCache
from textual.color import Color
from textual.strip import Strip

from tui.system.garbage import MIN_YOUNG_COLLECTIONS, PAINT_TIME_S, IdleCollector, collect_only_when_idle

LONG_S = 2.0
"""So long after a key, all is searched if much is new."""


class Thing:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def by_hand() -> Iterator[None]:
    threshold = gc.get_threshold()
    gc.collect()
    collect_only_when_idle()
    yield
    gc.set_threshold(*threshold)


@pytest.mark.usefixtures("by_hand")
@pytest.mark.parametrize(("unused_s", "lists"), [(0.0, 210_000), (LONG_S, 210_000), (LONG_S, 0)])
def test_old_garbage_is_collected_only_while_nobody_types_and_if_much_is_new(
    unused_s: float, lists: int
) -> None:
    thing = Thing()
    gc.collect(1)
    gc.collect(1)  # now it is in the oldest generation
    alive = weakref.ref(thing)
    del thing
    made = [[[] for _ in range(7_000)] for _ in range(lists // 7_000)]  # Python would search everything
    IdleCollector().collect_if_idle(unused_s)
    assert len(made) * 7_000 == lists
    assert (alive() is None) == (unused_s >= LONG_S and lists > 0)


@pytest.mark.parametrize(
    ("unused_s", "searches", "is_searched"),
    [
        (1.0, 2 * MIN_YOUNG_COLLECTIONS, False),
        (1.0, 3 * MIN_YOUNG_COLLECTIONS, True),
        (PAINT_TIME_S, 5 * MIN_YOUNG_COLLECTIONS, True),
        (PAINT_TIME_S / 2, 20 * MIN_YOUNG_COLLECTIONS - 1, False),
        (0.0, 20 * MIN_YOUNG_COLLECTIONS, True),
    ],
)
def test_search_waits_for_the_picture_of_a_key_unless_very_much_is_new(
    monkeypatch: pytest.MonkeyPatch, unused_s: float, searches: int, is_searched: bool
) -> None:
    collected: list[bool] = []
    monkeypatch.setattr(gc, "get_count", lambda: (0, 0, searches))
    monkeypatch.setattr(gc, "collect", lambda: collected.append(True))
    IdleCollector().collect_if_idle(unused_s)
    assert bool(collected) == is_searched


def test_more_new_objects_shorten_the_pause_where_a_search_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searches, collected, seen = iter([5 * MIN_YOUNG_COLLECTIONS, 30, 30, 60]), list[int](), list[int]()
    times = iter([0.0, 0.4, 1.0, 1.4, 2.0, 2.4])
    monkeypatch.setattr(gc, "get_count", lambda: (0, 0, next(searches)))
    monkeypatch.setattr("tui.system.garbage.thread_time", lambda: next(times))
    monkeypatch.setattr(gc, "collect", lambda: collected.append(1))
    collector = IdleCollector()
    for unused_s in (PAINT_TIME_S, PAINT_TIME_S, 4.1, PAINT_TIME_S):
        collector.collect_if_idle(unused_s)
        seen.append(len(collected))
    assert seen == [1, 1, 2, 3]


@pytest.mark.usefixtures("by_hand")
def test_new_garbage_is_collected_at_any_time() -> None:
    alive = weakref.ref(Thing())
    made = [[] for _ in range(9_000)]
    assert made
    assert alive() is None


@pytest.mark.usefixtures("by_hand")
def test_objects_that_are_gone_a_moment_later_are_not_new() -> None:
    for _ in range(100):
        assert [[] for _ in range(3_000)]
    assert gc.get_count()[1:] == (0, 0)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="only glibc keeps what is free")
@pytest.mark.usefixtures("by_hand")
def test_memory_between_what_is_left_goes_back_to_the_system() -> None:
    made = [bytes(2_000) for _ in range(20_000)]
    left = made[::50]
    del made
    before = resident_bytes()
    new = [[[] for _ in range(7_000)] for _ in range(30)]
    IdleCollector().collect_if_idle(LONG_S)
    assert before - resident_bytes() > 20_000_000
    assert left
    assert new


@pytest.mark.usefixtures("by_hand")
def test_garbage_is_collected_by_a_python_without_ctypes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctypes", None)
    monkeypatch.setattr(gc, "get_count", lambda: (0, 0, MIN_YOUNG_COLLECTIONS))
    thing = Thing()
    alive = weakref.ref(thing)
    del thing
    IdleCollector().collect_if_idle(LONG_S)
    assert alive() is None


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_line_of_the_screen_is_gone_without_a_search() -> None:
    text = "a line that nothing else has"
    gc.disable()
    try:
        line = Strip([Segment(text)])
        assert [part.text for part in line.divide([len(text), 99])] == [text]
        del line
        assert [each for each in gc.get_objects() if isinstance(each, Strip) and each.text == text] == []
    finally:
        gc.enable()


def test_lines_of_a_left_widget_are_gone_without_a_search() -> None:
    lines = StylesCache()
    styles = lines.get_inner_outer(Color(1, 2, 3), Color(4, 5, 6))
    alive = weakref.ref(lines)
    del lines
    assert alive() is None
    assert StylesCache().get_inner_outer(Color(1, 2, 3), Color(4, 5, 6)) is styles
