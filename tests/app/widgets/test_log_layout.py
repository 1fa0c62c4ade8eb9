"""A message becomes rows of inert text, however hostile, at a bounded cost."""

from unicodedata import category

import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len
from rich.style import Style
from rich.text import Span

from tui.text.sanitize import sanitize_whole
from tui.widgets.log_view.renderer import MAX_MESSAGE_LENGTH, message_rows as styled_rows, styled_spans


def message_rows(message: str, cells: int | None, *, pretty: bool = False) -> tuple[str, ...]:
    return tuple(row.text for row in styled_rows(message, cells, pretty=pretty))


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


def test_a_message_of_several_lines_takes_several_rows_and_a_progress_bar_shows_its_last_state() -> None:
    assert message_rows("Traceback:\n  File x\r\nError\n", None) == ("Traceback:", "  File x", "Error")
    assert message_rows("\r 10%|█ \r 20%|██ \r", None) == (" 20%|██ ",)
    assert message_rows("".join(f"\r{number}%" for number in range(200_000)), None) == ("199999%",)


def test_a_huge_line_is_cut_and_says_by_how_much() -> None:
    rows = message_rows("x" * 1_000_000, 100)
    assert len(rows) <= MAX_MESSAGE_LENGTH / 100 + 2
    assert rows[-1].endswith(f"{1_000_000 - MAX_MESSAGE_LENGTH:,} more characters")
    assert len(message_rows("\n" * 1_000_000 + "end", None)) <= MAX_MESSAGE_LENGTH + 1


def test_the_jobs_colours_stay_with_their_words_where_lines_wrap() -> None:
    wrapped = styled_rows("ok \x1b[31mred words\x1b[0m end", 5)
    assert [row.text for row in wrapped] == ["ok re", "d wor", "ds en", "d"]
    assert "".join(row.text[span.start : span.end] for row in wrapped for span in row.spans) == "red words"


@pytest.mark.parametrize(
    ("codes", "style"),
    [
        ("2;3;7;9", Style(dim=True, italic=True, reverse=True, strike=True)),
        ("1;22;4;24", None),
        ("4:3;38:2::9:8:7", Style(underline=True, color="#090807")),
        ("38:5:12", Style(color="color(12)")),
        ("31;39;41;49", None),
        ("31;39", None),
        ("38;5;999;1", Style(color="color(255)", bold=True)),
        ("38;2;1;2", None),
        ("8;5", None),
    ],
)
@pytest.mark.proves("docs/logs.md", "The log viewer")
def test_what_codes_mean(codes: str, style: Style | None) -> None:
    assert styled_spans(f"\x1b[{codes}mx") == ("x", [Span(0, 1, style)] if style else [])


SEQUENCES = (
    "\x1b[31m",
    "\x1b[0m",
    "\x1b[1;4;38;5;208m",
    "\x1b[2J",
    "\x1b]0;t\x07",
    "\x9b7m",
    "\x1b[",
    "\x1b",
)
nasty = st.lists(st.sampled_from([*SEQUENCES, "a", "é", "\u0301", "\t", "\0", "\u202e", "漢"])).map("".join)


@given(nasty | st.text(st.characters(exclude_categories=())))
def test_styled_text_is_inert_whatever_it_was_and_spans_lie_in_it(text: str) -> None:
    plain, spans = styled_spans(text)
    assert plain == sanitize_whole(text)
    assert not [one for one in plain if category(one) in ("Cc", "Cf", "Cs")]
    done = 0
    for begin, end, style in spans:
        assert done <= begin < end <= len(plain)
        assert style
        done = end


def test_a_style_a_character_is_not_followed_forever() -> None:
    plain, spans = styled_spans("\x1b[31ma\x1b[32mb" * 10_000)
    assert plain == "ab" * 10_000
    assert len(spans) < 1_000
