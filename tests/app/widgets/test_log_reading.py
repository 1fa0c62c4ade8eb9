"""Reading a log: folds that open and close, the reader's line, bookmarks, errors, times, gaps."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC

from log_lines import NS_PER_S, START_NS, line, lines
from textual import on
from textual.pilot import Pilot
from widget_text import WidgetApp, shown

from api_client.models.logs import LogEntry, LogGap, LogLine
from tui.analysis.logs.pattern import LogPattern
from tui.widgets.log_view.messages import GapRetryRequested
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.view import LogView

TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "train.py", line 3, in <module>',
    "    main()",
    "RuntimeError: CUDA out of memory",
]


class ReadApp(WidgetApp):
    def __init__(self, view: LogView) -> None:
        super().__init__(view)
        self.retried: list[LogGap] = []

    @on(GapRetryRequested)
    def _gap(self, message: GapRetryRequested) -> None:
        self.retried.append(message.gap)


@asynccontextmanager
async def reading(*entries: LogEntry) -> AsyncIterator[tuple[LogView, Pilot[None], ReadApp]]:
    view = LogView(timezone=UTC)
    app = ReadApp(view)
    async with app.run_test(size=(80, 12)) as pilot:
        view.focus()
        await give(view, pilot, *entries)
        yield view, pilot, app


async def give(view: LogView, pilot: Pilot[None], *entries: LogEntry) -> None:
    view.store.append(entries)
    await settled(view, pilot)


async def settled(view: LogView, pilot: Pilot[None]) -> None:
    while not view.is_settled:  # noqa: ASYNC110
        await asyncio.sleep(0)
    await view.workers.wait_for_complete()
    view.flush()
    await pilot.pause()


def texts(view: LogView) -> list[str]:
    return [row.rstrip("│┃ ")[15:] for row in shown(view) if row.rstrip("│┃ ")]


def traceback(second: float, node: int) -> list[LogEntry]:
    return [line(second, text, node) for text in TRACEBACK]


async def test_a_traceback_is_one_row_that_says_what_went_wrong() -> None:
    async with reading(line(0, "a step", 0), *traceback(1, 0), line(2, "after it", 1)) as (view, pilot, _):
        assert texts(view)[0] == "a step"
        assert texts(view)[1].startswith("RuntimeError: CUDA out of memory")
        assert texts(view)[1].endswith("(4 lines)")
        assert texts(view)[2] == "after it"
        assert view.store.first_error and view.store.entry(view.store.first_error) == line(1, TRACEBACK[0], 0)
        assert view.viewport.go_to(view.store.first_error)
        assert [
            entry.message for entry in view.model.selected_entries() if isinstance(entry, LogLine)
        ] == TRACEBACK
        await pilot.press("enter")
        assert texts(view)[1:5] == TRACEBACK
        await pilot.press("enter")
        assert texts(view)[2] == "after it"
        view.options = LogOptions(fold_tracebacks=False)
        await settled(view, pilot)
        assert texts(view)[1:5] == TRACEBACK


async def test_interleaved_bars_collapse_to_their_last_states_live() -> None:
    def bars(percent: int) -> list[LogEntry]:
        return [
            line(percent, f"{percent}%|███       | {percent}/100 [00:01<00:09]", node) for node in range(2)
        ]

    async with reading(*bars(10), *bars(20), line(25, "between", 0)) as (view, pilot, _):
        assert len(view.model) == 3
        assert texts(view)[0].startswith("20%|")
        await give(view, pilot, *bars(30))
        assert len(view.model) == 3
        assert [text.split("%")[0] for text in texts(view)] == ["between", "30", "30"]
        assert "(3 states)" in texts(view)[1]
        view.options = LogOptions(collapse_progress=False, fold_repeats=False)
        await settled(view, pilot)
        assert len(view.model) == 7


async def test_a_wrapped_bar_is_shown_whole() -> None:
    title = "Loading the shards of the model from the cache of this node, which takes a while"
    bars = [line(done, f"{title}: {done}0%|{'█' * done}| {done}/10 [00:01<00:09]", 0) for done in range(1, 4)]
    async with reading(*bars) as (view, pilot, _):
        assert "×3" in shown(view)[0]
        view.options = LogOptions(wrap=True)
        await settled(view, pilot)
        whole = "".join(row[15:79] for row in shown(view))
        assert bars[-1].message in whole
        assert "(3 states)" in whole


async def test_the_text_stays_when_a_bar_moves_on_below_a_reader() -> None:
    async with reading(*lines(0, 30), line(31, "10%|█         | 1/10 [00:01<00:09]", 0)) as (view, pilot, _):
        await pilot.press("k", "k")
        before = texts(view)
        await give(view, pilot, line(32, "20%|██        | 2/10 [00:02<00:08]", 0))
        assert texts(view)[:-1] == before[:-1]
        assert texts(view)[-1].startswith("20%|")
        # Times ascend: the bar keeps that of its place, and says its state's own beside it.
        assert [row[1:9] for row in shown(view)[-2:]] == ["22:13:49", "22:13:51"]
        assert "2 states, now 22:13:52" in texts(view)[-1]


async def test_banners_of_many_ranks_are_one_row_with_their_number() -> None:
    banners = [line(rank / 10, f"process group is ready on rank {rank}", rank % 4) for rank in range(8)]
    async with reading(*banners, line(30, "process group is ready on rank 0", 0)) as (view, _pilot, _):
        assert len(view.model) == 2
        assert texts(view)[0].endswith("×8")
        assert len(list(view.model.entries(filtered=True))) == 9


async def test_a_match_within_a_fold_opens_it() -> None:
    async with reading(*traceback(0, 0), *lines(1, 5)) as (view, pilot, _):
        view.find(LogPattern("main()"))
        await settled(view, pilot)
        assert "    main()" in texts(view)
        assert isinstance(view.model.cursor_entry, LogLine)
        assert view.model.cursor_entry.message == "    main()"


async def test_enter_at_a_gap_asks_for_its_lines_which_take_its_place() -> None:
    gap = LogGap(START_NS + 5 * NS_PER_S, START_NS + 8 * NS_PER_S, "the server answered 500")
    async with reading(*lines(0, 5), gap, *lines(8, 12)) as (view, pilot, app):
        for _ in range(5):
            await pilot.press("k")
        await pilot.press("enter")
        assert app.retried == [gap]
        assert view.store.replace_gap(gap, lines(5, 8))
        await settled(view, pilot)
        assert texts(view) == [f"line {number}" for number in range(12)]
        assert view.model.cursor_entry == lines(8, 9)[0] or view.model.cursor_entry == lines(5, 6)[0]


async def test_enter_opens_an_object_and_nothing_where_there_is_none() -> None:
    async with reading(line(0, '{"loss": 0.5, "step": 3}', 0)) as (view, pilot, app):
        await pilot.press("enter")
        assert texts(view) == ["{", '  "loss": 0.5,', '  "step": 3', "}"]
        await pilot.press("enter")
        assert texts(view) == ['{"loss": 0.5, "step": 3}']
        view.clear()
        view.viewport.follow = True
        await give(view, pilot, line(0, "{not json", 0), line(1, "plain", 1))
        before = shown(view)
        await pilot.press("enter")
        assert shown(view) == before
        assert view.viewport.follow
        assert [notice.message for notice in app._notifications] == ["Nothing to expand on this line."]


async def test_lines_are_selected_by_keys_and_by_mouse() -> None:
    async with reading(*lines(0, 10)) as (view, pilot, _):
        await pilot.press("k", "shift+up", "shift+up")
        assert view.model.selected_entries() == lines(7, 10)
        await pilot.press("shift+down")
        assert view.model.selected_entries() == lines(8, 10)
        assert view.viewport.clear_selection()
        assert view.model.selected_entries() == lines(8, 9)
        await pilot.mouse_down(view, offset=(20, 2))
        await pilot.hover(view, offset=(20, 5))
        await pilot.mouse_up(view, offset=(20, 5))
        assert view.model.selected_entries() == lines(2, 6)


async def test_colours_of_the_job_are_shown_and_left_out_without_colour() -> None:
    async with reading(line(0, "\x1b[31mred\x1b[0m plain", 0)) as (view, _, _):
        (red,) = [segment for segment in view.render_line(0) if segment.text == "red"]
        assert red.style is not None
        assert red.style.color is not None
        assert red.style.color.number == 1


def test_the_file_of_older_lines_has_no_name_and_is_its_owners_alone() -> None:
    view = LogView(options=LogOptions(max_lines=100))
    view.store.append(lines(0, 5000))
    assert view.store.spilled_lines > 4000
    descriptor = view.store._file._file.fileno()  # type: ignore[union-attr]
    status = os.fstat(descriptor)
    assert status.st_nlink == 0
    assert status.st_mode & 0o077 == 0
    assert list(view.model.entries(filtered=False)) == lines(0, 5000)
