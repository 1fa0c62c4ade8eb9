import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.analysis.logs.pattern import LogPattern


@pytest.mark.parametrize(
    ("pattern", "message", "expected"),
    [
        (LogPattern("loss"), "Loss 0.9", True),
        (LogPattern("Loss"), "loss 0.9", False),
        (LogPattern("Loss"), "Loss 0.9", True),
        (LogPattern("Loss", case=False), "LOSS", True),
        (LogPattern("loss", case=True), "Loss", False),
        (LogPattern("a.c"), "abc", False),
        (LogPattern("a.c", regex=True), "abc", True),
        (LogPattern(r"\S+ERR", regex=True), "xerr", False),
        (LogPattern(r"\Serr", regex=True), "xERR", True),
        (LogPattern(r"step \d{2}$", regex=True), "step 41", True),
        (LogPattern(r"step \d{2}$", regex=True), "step 417", False),
        (LogPattern("loss: 3"), "\x1b[1mloss\x1b[0m: 3", True),
        (LogPattern("31m"), "\x1b[31mred", False),
        (LogPattern("x", regex=True), "\ud800x", True),
        (LogPattern("größe", regex=True), "GRÖSSE Größe", True),
    ],
)
def test_a_message_matches_as_it_is_shown(pattern, message, expected):
    assert pattern.matcher()(message) is expected


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("(", "missing"),
        ("[z-a]", "range"),
        ("*", "no argument"),
        ("a(?=b)", "look-ahead"),
        ("(a)\\1", "escape"),
    ],
)
def test_a_bad_expression_says_what_is_wrong_and_matches_nothing(expression, words, capfd):
    pattern = LogPattern(expression, regex=True)
    assert words in pattern.problem
    assert not pattern.matcher()("ab")
    assert pattern.spans("ab") == []
    assert capfd.readouterr().err == ""


def test_what_is_plain_has_no_problem_whatever_it_is():
    assert LogPattern("(").problem == ""
    assert LogPattern("(").matcher()("f(x)")


@given(st.text(st.characters(exclude_categories=()), max_size=30), st.text("aAbBéÉß", min_size=1, max_size=3))
def test_plain_spans_are_those_of_the_text(text, needle):
    for case in (None, True, False):
        pattern = LogPattern(needle, case=case)
        flags = 0 if pattern.minds_case else re.IGNORECASE
        expected = [match.span() for match in re.finditer(re.escape(needle), text, flags)]
        lowered_same = len(text.lower()) == len(text)
        if pattern.minds_case or lowered_same:
            assert pattern.spans(text) == expected or not pattern.minds_case
        for begin, end in pattern.spans(text):
            part = text[begin:end]
            assert part == needle or (not pattern.minds_case and part.lower() == needle.lower())


@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_expression_spans_are_positions_in_the_text(text):
    spans = LogPattern("[a-m0-9]+", regex=True, case=True).spans(text)
    assert spans == [match.span() for match in re.finditer("[a-m0-9]+", text)]


def test_empty_matches_mark_nothing():
    assert LogPattern("x*", regex=True).spans("axa") == [(1, 2)]
    assert LogPattern("").spans("axa") == []
    assert not LogPattern("")


def test_no_expression_takes_more_than_linear_time():
    # Python's own engine would not come back from any of these.
    matches = LogPattern("(a+)+$", regex=True).matcher()
    assert not matches("a" * 200_000 + "!")
    assert not LogPattern("(x+x+)+y", regex=True).matcher()("x" * 200_000)
    assert not LogPattern(".*.*.*=", regex=True).matcher()("z" * 200_000)
