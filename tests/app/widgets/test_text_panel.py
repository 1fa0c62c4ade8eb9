"""A panel of text: long lines are wrapped, nothing of them is lost, and only what is seen is drawn."""

from app.widgets.widget_text import WidgetApp, shown
from hypothesis import given, strategies as st
from rich.cells import cell_len
from rich.text import Text

from tui.text.sanitize import sanitize_whole
from tui.widgets.text_panel import Line, TextPanel, WrappedText, break_line, hanging_indent

SIZE = (30, 8)
PROSE = "a line of words that is longer than the panel is wide, so it goes on below"


@given(st.text(alphabet="ab c世é\u0301…", max_size=200), st.integers(4, 40))
def test_rows_fit_and_hold_all_but_the_spaces_they_were_broken_at(text: str, cells: int) -> None:
    line = sanitize_whole(text)
    hanging = hanging_indent(line, cells)
    rows = break_line(line, cells, hanging)
    for number, (begin, end) in enumerate(rows):
        assert cell_len(line[begin:end]) <= cells - (hanging if number else 0)
    assert "".join(line[begin:end] for begin, end in rows).replace(" ", "") == line.replace(" ", "")


async def test_a_text_without_end_shows_that_it_was_cut() -> None:
    text = WrappedText("word " * 1000)
    async with WidgetApp(text).run_test(size=(60, 20)):
        assert text.size.height == 8
        assert text.render_line(7).text.rstrip().endswith("…")


async def test_a_long_line_goes_on_below_further_in_and_a_fact_where_it_began() -> None:
    panel = TextPanel()
    async with WidgetApp(panel).run_test(size=SIZE) as pilot:
        lines: list[Line] = [PROSE, Text(PROSE, "bold"), [(PROSE[:20], "strong"), (PROSE[20:], "muted")]]
        for line in lines:
            panel.set_lines([line, [("modules  ", "muted"), ("q_proj, k_proj, v_proj, o_proj", "plain")]])
            await pilot.pause()
            assert shown(panel)[:5] == [
                "a line of words that is",
                "  longer than the panel is",
                "  wide, so it goes on below",
                "modules  q_proj, k_proj,",
                "         v_proj, o_proj",
            ]


async def test_another_width_keeps_the_place_and_another_text_leaves_nothing_behind() -> None:
    panel = TextPanel()
    async with WidgetApp(panel).run_test(size=SIZE) as pilot:
        panel.set_lines([*[PROSE] * 40, "here", *[PROSE] * 40])
        await pilot.pause()
        panel.scroll_to(y=120, animate=False)
        await pilot.pause()
        assert shown(panel)[0] == "here"
        for width in (100, 20, SIZE[0]):
            await pilot.resize_terminal(width, 8)
            await pilot.pause()
            assert shown(panel)[0] == "here"
        panel.focus()
        panel.set_lines([PROSE] * 20)
        await pilot.press("G")
        while panel.scroll_offset.y < panel.max_scroll_y:
            await pilot.pause()
        assert shown(panel)[-1] == "  wide, so it goes on below"
        panel.set_lines(["short"])
        await pilot.pause()
        assert shown(panel) == ["short", *[""] * 7]
