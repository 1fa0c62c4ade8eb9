"""A message becomes rows of inert text, however hostile, at a bounded cost."""

from __future__ import annotations

from datetime import UTC
from unicodedata import category

from hypothesis import given
from hypothesis import strategies as st
from log_lines import START_NS
from rich.cells import cell_len

from tui.widgets.log_view.gutter import NodeLabels, TimeColumn, level_of
from tui.widgets.log_view.layout import SHOWN_CHARACTERS, message_rows

hostile = st.text(st.characters(), max_size=80).map(lambda text: text + "\x1b[31m\x00\u202e\ud800 z")


@given(hostile, st.one_of(st.none(), st.integers(2, 30)))
def test_rows_hold_no_control_character_and_fit(message: str, cells: int | None) -> None:
    rows = message_rows(message, cells)
    assert rows
    for row in rows:
        assert all(character.isprintable() or category(character) == "Co" for character in row)
        assert cells is None or cell_len(row) <= cells


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200), st.integers(1, 40))
def test_wrapping_loses_nothing(message: str, cells: int) -> None:
    assert "".join(message_rows(message, cells)) == message


def test_a_message_of_several_lines_takes_several_rows() -> None:
    assert message_rows("Traceback:\n  File x\r\nError\n", None) == ("Traceback:", "  File x", "Error")


def test_a_progress_bar_shows_its_last_state() -> None:
    assert message_rows("\r 10%|█ \r 20%|██ \r", None) == (" 20%|██ ",)


def test_a_huge_line_is_cut_and_says_by_how_much() -> None:
    rows = message_rows("x" * 1_000_000, 100)
    assert len(rows) <= SHOWN_CHARACTERS / 100 + 2
    assert rows[-1].endswith(f"{1_000_000 - SHOWN_CHARACTERS:,} more characters")
    assert len(message_rows("\n" * 1_000_000 + "end", None)) <= SHOWN_CHARACTERS + 1


def test_a_huge_progress_bar_shows_its_last_state() -> None:
    message = "".join(f"\r{number}%" for number in range(200_000))
    assert message_rows(message, None) == ("199999%",)


def test_levels_come_from_the_server_or_from_the_line() -> None:
    assert level_of("anything", "ERROR") == "error"
    assert level_of("ERROR: x", "INFO") == ""
    assert level_of("2026-01-01 [WARNING] slow", None) == "warning"
    assert level_of("Traceback (most recent call last):", None) == "error"
    assert level_of("RuntimeError: CUDA out of memory", None) == "error"
    assert level_of("{'loss': 0.3, 'error_rate': 0.1}", None) == ""
    assert level_of("x" * 500 + " ERROR", None) == ""


def test_labels_are_short_steady_and_distinct() -> None:
    labels = NodeLabels()
    assert labels.get("node-0")[0] == "n0"
    assert labels.get("node-12")[0] == "n12"
    assert labels.get("node-0") == labels.get("node-0")
    assert labels.get("node-1")[1] != labels.get("node-2")[1]
    assert labels.get("other-0")[0] != "n0"
    assert labels.get(None)[0] == ""
    assert labels.get("g00r0-abcdefgh")[0] == "g00r0…"
    assert labels.get("\x1b[2Jx")[0].isprintable()
    assert labels.width >= 3


def test_times_are_shown_in_the_chosen_way() -> None:
    times = TimeColumn(lambda: START_NS / 1e9 + 75, UTC)
    times.origin_ns = START_NS
    assert times.text(START_NS) == "22:13:20"
    times.mode = "relative"
    assert times.text(START_NS) == "  1m"
    times.mode = "elapsed"
    assert times.text(START_NS + 3_725_000_000_000) == " 1:02:05"
    assert times.text(START_NS - 5_000_000_000) == "-0:00:05"
    times.mode = "off"
    assert times.text(START_NS) == ""
    assert times.clock(10**30) == "--:--:--"
