"""Text that decides something is cut only where there is no room, and then it shows."""

from app.widgets.widget_text import WidgetApp
from textual.widget import Widget

from tui.widgets.notice import StatusLine
from tui.widgets.text_panel import WrappedText

REASON = 'Failed to pull image "registry.example/team/trainer:2.7-cu129": manifest unknown'


def shown(widget: Widget) -> list[str]:
    """The widget's rows, without trailing spaces."""
    return [widget.render_line(y).text.rstrip() for y in range(widget.size.height)]


async def test_a_reason_takes_the_rows_that_it_needs_and_a_text_without_end_shows_that_it_was_cut() -> None:
    widget = WrappedText(REASON)
    async with WidgetApp(widget).run_test(size=(80, 24)) as pilot:
        for size in ((80, 24), (60, 20), (40, 12)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert "".join(shown(widget)).replace(" ", "") == REASON.replace(" ", "")
        await pilot.resize_terminal(60, 20)
        widget.update("word " * 1000)
        await pilot.pause()
        assert len(shown(widget)) == 8
        assert shown(widget)[-1].endswith("…")


async def test_names_are_broken_between_their_parts_and_other_text_between_words() -> None:
    widget = WrappedText("meta-llama/Llama-3.1-70B-Instruct\nevery word is whole here")
    async with WidgetApp(widget).run_test(size=(20, 24)):
        assert shown(widget) == ["meta-llama/Llama-", "3.1-70B-Instruct", "every word is whole", "here"]


class TallFacts(StatusLine):
    DEFAULT_CSS = "TallFacts { max-height: 40vh; }"


FACTS = [
    [("job ", "muted"), ("llama-70b", "key")],
    [("/status:running gpu:h100", "accent")],
    [("3 of 53 jobs", "plain")],
    [("22 running", "muted")],
]


ROWS_OF_WIDTH = (
    (80, ["job llama-70b · /status:running gpu:h100 · 3 of 53 jobs · 22 running"]),
    (60, ["job llama-70b · /status:running gpu:h100 · 3 of 53 jobs"]),
    (45, ["job llama-70b · /status:running gpu:h100", "3 of 53 jobs · 22 running"]),
    (30, ["job llama-70b", "/status:running gpu:h100", "3 of 53 jobs · 22 running"]),
    (20, ["job llama-70b ·", "/status:running", "gpu:h100", "3 of 53 jobs"]),
)


async def test_essential_facts_are_never_left_out() -> None:
    widget = TallFacts(priority_count=3)
    async with WidgetApp(widget).run_test(size=(80, 24)) as pilot:
        for width, rows in ROWS_OF_WIDTH:
            await pilot.resize_terminal(width, 24)
            widget.set_facts(FACTS)
            await pilot.pause()
            assert shown(widget) == rows
            widget.set_facts(FACTS[:1])
            await pilot.pause()
            assert shown(widget) == ["job llama-70b"]
