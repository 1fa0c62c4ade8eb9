"""The log view follows, keeps still under a reader, filters, finds, and shows everything as inert text."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC

import pytest
from hypothesis import given, strategies as st
from log_lines import NS_PER_S, START_NS, line, lines
from textual import events, on
from textual.pilot import Pilot
from widget_text import WidgetApp, full_lines, shown

from api_client.models.logs import LogEntry, LogGap, LogLine
from tui.analysis.logs.pattern import LogPattern
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.renderer import highlights
from tui.widgets.log_view.view import LogView, StatusChanged

SIZE = (60, 20)
TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "train.py", line 3, in <module>',
    "    main()",
    "RuntimeError: CUDA out of memory",
]


class LogApp(WidgetApp):
    """Keeps what the log view says."""

    def __init__(self, view: LogView) -> None:
        super().__init__(view)
        self.statuses: list[tuple[bool, int]] = []

    @on(StatusChanged)
    def _status(self) -> None:
        view = self.query_one(LogView)
        self.statuses.append((view.viewport.follow, view.model.unseen))


@asynccontextmanager
async def running(
    entries: list[LogEntry] | None = None, size: tuple[int, int] = SIZE
) -> AsyncIterator[tuple[LogView, Pilot[None], LogApp]]:
    view = LogView(timezone=UTC)
    app = LogApp(view)
    async with app.run_test(size=size) as pilot:
        view.focus()
        if entries:
            await give(view, pilot, entries)
        yield view, pilot, app


async def give(view: LogView, pilot: Pilot[None], entries: list[LogEntry]) -> None:
    view.store.append(entries)
    await settled(view, pilot)


async def settled(view: LogView, pilot: Pilot[None]) -> None:
    while not view.model.rows.is_complete:  # noqa: ASYNC110
        await asyncio.sleep(0)
    await view.workers.wait_for_complete()
    view._paint()
    await pilot.pause()


def messages(view: LogView) -> list[str]:
    return [row.rstrip("│┃ ").split("↓")[0].rstrip()[15:] for row in shown(view)]


def texts(view: LogView) -> list[str]:
    return [text for text in messages(view) if text]


def traceback(second: float, node: int) -> list[LogEntry]:
    return [line(second, text, node) for text in TRACEBACK]


@pytest.mark.proves("docs/logs.md", "The log viewer")
async def test_text_stays_under_a_reader_who_scrolled_up() -> None:
    async with running(list(lines(0, 100))) as (view, pilot, app):
        await pilot.press("pageup")
        assert not view.viewport.follow
        before = messages(view)
        assert before[0] == "line 61"
        await give(view, pilot, list(lines(100, 150)))
        assert messages(view)[:-1] == before[:-1]
        await give(view, pilot, [line(3.5, "late", 1, late=True)])
        assert view.store.prepend([line(-number, f"older {number}") for number in range(30, 0, -1)]) == 30
        await settled(view, pilot)
        assert messages(view)[:-1] == before[:-1]
        assert view.model.unseen == 50
        assert "↓ 50 new" in shown(view)[-1]
        await pilot.press("G")
        assert messages(view)[-1] == "line 149"
        assert view.model.unseen == 0
        assert app.statuses == [(False, 0), (False, 50), (True, 0)]


async def test_days_are_shown_only_where_lines_are_not_of_the_newest_day() -> None:
    days = [
        LogLine(START_NS + (day * 86_400 + second) * NS_PER_S, f"line {second}", None, None)
        for day in range(2)
        for second in range(20)
    ]
    for wrap in (False, True):
        async with running(days, size=(40, 6)) as (view, pilot, _):
            view.options = LogOptions(wrap=wrap)
            await settled(view, pilot)
            assert all(row[1:9].count(":") == 2 for row in shown(view))  # no day before the time
            await pilot.press("g")
            await settled(view, pilot)
            assert all(row[1:15].count("-") == 1 for row in shown(view))
            await pilot.press("G")
            await settled(view, pilot)
            assert all(row[1:9].count(":") == 2 for row in shown(view))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("{'loss': 0.9, 'lr': 2e-05}", [("name", "'loss':"), ("number", "0.9"), ("name", "'lr':")]),
        ("100%|██████| 9/9 [00:01<00:00]", [("number", "100"), ("bar", "██████")]),
        ("saved to /mnt/ckpts/step-4 in 3 s", [("path", "/mnt/ckpts/step-4"), ("number", "3")]),
        ("INFO: loss=0.5", [("name", "INFO"), ("name", "loss="), ("number", "0.5")]),
        ("rank6 v2.21.5+cuda, a/b", []),
    ],
)
def test_names_and_bars_step_back_and_numbers_and_paths_stand_out(
    text: str, parts: list[tuple[str, str]]
) -> None:
    styled = [(kind, text[start:stop]) for start, stop, kind in highlights(text)]
    assert styled[: len(parts)] == parts and bool(styled) == bool(parts)


@given(st.text(alphabet=st.sampled_from("a1 .=:/'\"{█#-e,INFO"), max_size=300))
def test_highlights_are_in_order_and_within_the_text(text: str) -> None:
    edges = [edge for start, stop, _ in highlights(text) for edge in (start, stop)]
    assert edges == sorted(edges) and all(0 <= edge <= len(text) for edge in edges)


async def test_the_cursor_moves_line_by_line_and_follows_again_at_the_end() -> None:
    async with running(list(lines(0, 100)), size=(60, 4)) as (view, pilot, _):
        await pilot.press("k")
        assert not view.viewport.follow
        assert messages(view) == [f"line {number}" for number in range(96, 100)]
        assert shown(view)[-1].startswith("›")
        await pilot.press("k", "up", "up", "up")
        assert messages(view)[0] == "line 95"
        assert view.model.cursor_entry == lines(95, 96)[0]
        await pilot.press("j", "j", "j", "j")
        assert not view.viewport.follow
        await pilot.press("down")
        assert view.viewport.follow
        await pilot.press("home", "end")
        assert messages(view)[-1] == "line 99"


async def test_the_wheel_the_badge_and_the_scroll_bar_scroll() -> None:
    async with running(list(lines(0, 1000))) as (view, pilot, _):
        await pilot._post_mouse_events([events.MouseScrollUp], view, offset=(5, 5))
        await pilot.pause()
        assert messages(view)[-1] == "line 996"
        await give(view, pilot, list(lines(1000, 1010)))
        await pilot.click(view, offset=(SIZE[0] - 5, SIZE[1] - 1))
        assert view.viewport.follow
        await pilot.click(view, offset=(SIZE[0] - 1, 10))
        assert not view.viewport.follow
        assert 400 < int(messages(view)[0].removeprefix("line ")) < 600
        await pilot.click(view, offset=(SIZE[0] - 1, SIZE[1] - 1))
        assert view.viewport.follow


async def test_click_on_the_scroll_bar_of_an_empty_log_is_harmless() -> None:
    async with running() as (view, pilot, _):
        await pilot.click(view, offset=(SIZE[0] - 1, SIZE[1] - 5))
        assert not view.viewport.follow


@pytest.mark.proves("docs/logs.md", "How the stream works")
async def test_late_lines_stand_where_they_belong_and_gaps_are_seen() -> None:
    gap = LogGap(START_NS + 5 * NS_PER_S, START_NS + 9 * NS_PER_S, "the server answered 500")
    async with running([*lines(0, 5), gap, line(9, "line 9", 1)]) as (view, pilot, _):
        elsewhere = line(10, "line 10")._replace(replica="e7")
        await give(view, pilot, [line(2.5, "was late", 3, late=True), elsewhere])
        assert messages(view)[:6] == ["line 0", "line 1", "line 2", "was late", "line 3", "line 4"]
        assert shown(view)[3].startswith(" 22:13:22↶n3 ")
        assert shown(view)[6].startswith(" ── gap 22:13:25–22:13:29 (4s): the server answered 500 ──")
        assert messages(view)[7:9] == ["line 9", "line 10"] and "e7" in shown(view)[8]


async def test_the_reader_keeps_the_time_when_the_filter_changes() -> None:
    async with running(list(lines(0, 400))) as (view, pilot, _):

        async def of_nodes(*names: str, all_of_them: bool = False) -> None:
            view.options = replace(view.options, nodes=None if all_of_them else frozenset(names))
            await settled(view, pilot)

        view.viewport.go_to_time(START_NS + 100 * NS_PER_S)
        before = SIZE[1] // 3
        assert messages(view)[0] == f"line {100 - before}"  # what led to it is shown, too
        await of_nodes("node-2")
        assert messages(view)[before] == "line 102"
        await of_nodes(all_of_them=True)
        assert messages(view)[before] == "line 100"
        # A line gone to while others are hidden stays where it is as they come back: what is around it?
        await of_nodes("node-2")
        await pilot.press("j", "j", "j")
        await of_nodes(all_of_them=True)
        assert messages(view)[before + 3] == "line 114"
        assert [row[0] for row in shown(view)].index("›") == before + 3
        await of_nodes()
        assert any("No lines match the filter." in row for row in shown(view))


async def test_wrapping_and_panning_show_the_rest_of_long_lines() -> None:
    text = " ".join(f"word{number}" for number in range(30))
    async with running([line(0, "short"), line(1, text)]) as (view, pilot, _):
        assert "word29" not in "\n".join(shown(view))
        assert ["…" in row for row in shown(view)[:2]] == [False, True]
        view.options = LogOptions(wrap=True)
        assert "word29" in "\n".join(shown(view)).replace("\n" + " " * 15, "")
        view.options = LogOptions()
        await pilot.press(*["right"] * 20)
        assert shown(view)[1].startswith(" 22:13:21 n0") and "word29" in shown(view)[1]
        await pilot.press(*["left"] * 20)
        assert shown(view)[0].endswith("short")


async def test_resizing_keeps_the_top_line_and_the_size() -> None:
    async with running(list(lines(0, 100)), size=(100, 30)) as (view, pilot, _):
        view.viewport.go_to_time(START_NS + 40 * NS_PER_S)
        for size in ((60, 20), (30, 5), (10, 2), (120, 40)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            full_lines(view)
        assert messages(view)[0] == "line 30"


async def test_interleaved_bars_collapse_to_their_last_states_live() -> None:
    def bars(percent: int) -> list[LogEntry]:
        return [
            line(percent, f"{percent}%|███       | {percent}/100 [00:01<00:09]", node) for node in range(2)
        ]

    async with running([*bars(10), *bars(20), line(25, "between", 0)], (80, 12)) as (view, pilot, _):
        await give(view, pilot, [*bars(30)])
        assert [text.split("%")[0] for text in texts(view)] == ["between", "30", "30"]
        assert "(3 states)" in texts(view)[1]


async def test_the_text_stays_when_a_bar_moves_on_below_a_reader() -> None:
    entries = [*lines(0, 30), line(31, "10%|█         | 1/10 [00:01<00:09]", 0)]
    async with running(entries, (80, 12)) as (view, pilot, _):
        await pilot.press("k", "k")
        before = texts(view)
        await give(view, pilot, [line(32, "20%|██        | 2/10 [00:02<00:08]", 0)])
        assert texts(view)[:-1] == before[:-1]
        assert texts(view)[-1].startswith("20%|")
        # Times ascend: the bar keeps that of its place, and says its state's own beside it.
        assert [row[1:9] for row in shown(view)[-2:]] == ["22:13:49", "22:13:51"]
        assert "2 states, now 22:13:52" in texts(view)[-1]


async def test_a_match_within_a_fold_opens_it() -> None:
    async with running([*traceback(0, 0), *lines(1, 5)], (80, 12)) as (view, pilot, _):
        view.find(LogPattern("main()"))
        await settled(view, pilot)
        assert "    main()" in texts(view)
        assert isinstance(view.model.cursor_entry, LogLine)
        assert view.model.cursor_entry.message == "    main()"


async def test_lines_are_selected_by_dragging() -> None:
    async with running([*lines(0, 10)], (80, 12)) as (view, pilot, _):
        await pilot.mouse_down(view, offset=(20, 2))
        await pilot.hover(view, offset=(20, 5))
        await pilot.mouse_up(view, offset=(20, 5))
        assert view.model.selected_entries() == lines(2, 6)
