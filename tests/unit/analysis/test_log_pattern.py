import re

import pytest
from hypothesis import given, strategies as st

from tui.analysis.logs.pattern import LogPattern


@pytest.mark.parametrize(
    ("pattern", "message", "expected"),
    [
        (LogPattern("loss"), "Loss 0.9", True),
        (LogPattern("Loss"), "loss 0.9", False),
        (LogPattern("Loss", case=False), "LOSS", True),
        (LogPattern("loss", case=True), "Loss", False),
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
    [("(", "missing"), ("[z-a]", "range"), ("*", "no argument"), ("a(?=b)", "look-ahead")],
)
def test_a_bad_expression_says_what_is_wrong_and_matches_nothing(expression, words, capfd):
    pattern = LogPattern(expression, regex=True)
    assert words in pattern.problem
    assert not pattern.matcher()("ab")
    assert pattern.spans("ab") == []
    assert capfd.readouterr().err == ""
    assert LogPattern(expression).problem == "", "as plain text it is none"


@given(st.text(st.characters(exclude_categories=()), max_size=30), st.text("aAbBéÉß", min_size=1, max_size=3))
def test_spans_are_those_of_the_text(text, needle):
    expression = LogPattern("[a-m0-9]+", regex=True, case=True).spans(text)
    assert expression == [match.span() for match in re.finditer("[a-m0-9]+", text)]
    exact = LogPattern(needle, case=True).spans(text)
    assert exact == [match.span() for match in re.finditer(re.escape(needle), text)]
    for begin, end in LogPattern(needle, case=False).spans(text):
        assert text[begin:end].lower() == needle.lower()
    if text.isascii():
        assert len(LogPattern(needle, case=False).spans(text)) == text.lower().count(needle.lower())


def test_empty_matches_mark_nothing():
    assert LogPattern("x*", regex=True).spans("axa") == [(1, 2)]
    assert LogPattern("").spans("axa") == []
    assert not LogPattern("")


@pytest.mark.proves("docs/logs.md", "The log viewer")
def test_no_expression_takes_more_than_linear_time():
    # Python's own engine would not come back from any of these.
    matches = LogPattern("(a+)+$", regex=True).matcher()
    assert not matches("a" * 200_000 + "!")
    assert not LogPattern("(x+x+)+y", regex=True).matcher()("x" * 200_000)
    assert not LogPattern(".*.*.*=", regex=True).matcher()("z" * 200_000)
