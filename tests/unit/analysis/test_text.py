"""Text of servers and long names: made inert, measured, cut to fit, and told apart."""

import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings, strategies as st
from rich.cells import cell_len

from tui.analysis.fleet.snapshot import brief
from tui.analysis.health.registry import KINDS
from tui.analysis.run.finding import SHORT_CHARACTERS, HealthFinding
from tui.text.names import abbreviated_names, clip_middle
from tui.text.sanitize import (
    MAX_SHOWN_LENGTH,
    cell_width,
    clip,
    last_carriage_segment,
    sanitize,
)

# Lone surrogates included: a server's JSON may hold them.
any_text = st.text(st.characters(exclude_categories=()))
ESCAPES = ["\x1b[31m", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x1bP", "\x9b2J", "\x1b"]
CONTROLS = ["\t", "\n", "\r", "\0", "\x7f", "\x85", "\u2028", "\xa0", "\xad"]
INVISIBLE = ["\u202e", "\u2066", "\u200d", "\ufeff", "\ud800", "\U000e0041"]
MARKED = ["e\u0301", "❤\ufe0f", "\u0301\u0301\u0301\u0301", "漢", "🧪"]
nasty = st.lists(st.sampled_from([*ESCAPES, *CONTROLS, *INVISIBLE, *MARKED, *"a0m[]\\"])).map("".join)


@given(any_text | nasty)
def test_inert_text_holds_nothing_a_terminal_would_obey(text):
    shown = sanitize(text)
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp", "Cn"}
    assert sanitize(shown) == shown


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E)))
@example("größer – 漢字 ▇▇ … 🧪 e\u0301")
def test_harmless_text_in_any_language_stays_as_it_is(text):
    assert sanitize(text) == text


SHOWN = {
    "\x1b[1;31mred\x1b[0m": "red",
    "\x1b]0;evil title\x07done": "done",
    "\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\": "link",
    "\x1bPq#0;2;0;0;0\x1b\\after": "after",
    "\x9b2Jcleared": "cleared",
    "\x1b(0lqk": "lqk",
    "unfinished \x1b]0;the rest stays visible": "unfinished 0;the rest stays visible",
    "\x1b\x1b[31m[32mx": "␛[32mx",
    "a\0b\x07c\x7f": "a␀b␇c␡",
    "two\nlines": "two␤lines",
    "abc\td\te": "abc d   e",
    "ab\u202ecd\u2066": "ab\ufffdcd\ufffd",
    "lone \ud83d surrogate": "lone \ufffd surrogate",
    "no\xa0break\u3000wide": "no break  wide",
    "❤\ufe0f": "❤",
    "z" + "\u0301" * 40: "z\u0301\u0301",
    "icon \ue0b0": "icon \ue0b0",
}


def test_what_cannot_be_shown_gets_a_stand_in():
    assert {text: sanitize(text) for text in SHOWN} == SHOWN


@pytest.mark.parametrize("character", ["x", "\x1b", "\u202e", "\t", "\u3000", "e\u0301\u0301\u0301", "漢"])
def test_long_name_costs_no_more_than_its_visible_part(character: str) -> None:
    name = f"begin {character * 1_000_000}ä end"
    shown = sanitize(name)
    assert len(shown) <= MAX_SHOWN_LENGTH
    assert shown.startswith("begin ")
    assert shown.endswith("ä end")
    assert sanitize(shown) == shown


def test_of_an_overwritten_line_the_last_state_is_shown():
    states = {"10%\r90%\r": "90%", "line\r\n": "line", "\r 46%|x": " 46%|x", "\r": ""}
    assert {text: last_carriage_segment(text) for text in states} == states


CLUSTERS = ["漢字", "▇▇█", "🧪", "é", "❤️", "👩\u200d🚀", "🇩🇪", "👍🏽", "1️⃣", "ﾊﾟ", "\x00a"]


@given(any_text | nasty | st.lists(st.sampled_from(CLUSTERS)).map("".join))
def test_the_width_of_text_is_that_of_rich(text: str) -> None:
    assert cell_width(text) == cell_len(text)


@given(any_text | nasty, st.integers(0, 30))
def test_clipped_text_fits(text, cells):
    shown = clip(sanitize(text), cells)
    assert cell_width(shown) <= cells
    if cells > 0 and cell_width(sanitize(text)) <= cells:
        assert shown == sanitize(text)


def test_clipping():
    texts = "too long", "漢字漢字", "x" * 1_000_000
    assert [clip(text, 5) for text in texts] == ["too …", "漢字…", "xxxx…"]


JOB = "baseten-training-job-lqz4o0q-multinode"
HOSTS = ["ip-10-0-12-131.us-west-2.compute.internal", "ip-10-0-9-131.us-west-2.compute.internal"]


@pytest.mark.parametrize(
    ("names", "cells", "shown"),
    [
        ([f"{JOB}-0", f"{JOB}-11"], 7, ["…node-0", "…ode-11"]),
        (HOSTS, 8, ["…12…", "…9…"]),
        (["alpha-" + "x" * 30, "beta-" + "x" * 30], 8, ["alpha-x…", "beta-xx…"]),
        (["節点" * 12 + "0", "節点" * 12 + "1"], 7, ["…節点0", "…節点1"]),
    ],
)
def test_what_tells_names_apart_is_kept(names, cells, shown):
    assert abbreviated_names(names, cells) == shown


@settings(max_examples=25)
@given(st.lists(st.text("ab-0 節é\u0301…", max_size=40).map(sanitize), max_size=8), st.integers(-1, 45))
def test_never_wider_than_asked(names, cells):
    cut = abbreviated_names(names, cells)
    assert len(cut) == len(names)
    assert all(cell_width(name) <= max(0, cells) for name in cut)
    assert all(cell_width(clip_middle(name, cells)) <= max(0, cells) for name in names)


@pytest.mark.parametrize(("count", "cells"), [(10, 6), (11, 7), (64, 6)])
def test_ranks_are_always_told_apart(count: int, cells: int) -> None:
    names = [f"{JOB}-{rank}" for rank in range(count)]
    assert len(set(abbreviated_names(names, cells))) == count


def test_a_finding_says_what_is_wrong_whatever_its_node_is_called():
    node, what = f"{JOB}-2", "is slow: GPUs at 60%, the others at 95%"
    slow = HealthFinding(KINDS["straggler"], "warning", "", node, short=f"{node} {what}")
    assert len(slow.short) <= SHORT_CHARACTERS
    assert slow.short.startswith("basete…") and slow.short.endswith(f"-2 {what}")
    shown = brief(slow, datetime.now(UTC))
    assert shown.endswith("node-2 slow") and len(shown) < 26
