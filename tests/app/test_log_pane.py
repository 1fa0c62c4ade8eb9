"""Everything that can be done with the log of a run, by keyboard."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from app.log_stories import END, SECOND, line, story
from textual.message import Message
from textual.pilot import Pilot
from textual.widgets import Input

from api_client.models.logs import LogEntry, LogGap, LogLine, stamp_ns
from support.dashboard import Dashboard, Heard, job_view, opened, settle, text_of
from support.waiting import until
from tui.feeds.run_log import LogPart
from tui.screens.job import log_pane
from tui.screens.job.log_pane import LogPane
from tui.screens.job.screen import JobScreen
from tui.screens.messages import CopyRequested
from tui.text.sanitize import sanitize_whole
from tui.text.times import TIME_EXAMPLES
from tui.widgets.log_view.view import LogView

NORMAL, NARROW, WIDE = (80, 24), (60, 20), (120, 40)


class Reader:
    """Presses keys and reads the screen."""

    def __init__(self, pilot: Pilot[Any]) -> None:
        self.pilot = pilot

    async def press(self, *keys: str) -> str:
        """Press keys; return what is on the screen once it is at rest."""
        await self.pilot.press(*keys)
        await settle(self.pilot)
        while not all(view.model.rows.is_complete for view in self.pilot.app.screen.query(LogView)):
            await self.pilot.pause()
        await settle(self.pilot)
        return self.screen

    async def bar_after(self, *keys: str) -> str:
        await self.press(*keys)
        return self.bar

    async def own_after(self, *keys: str) -> str:
        await self.press(*keys)
        return self.own

    async def resize(self, width: int, height: int) -> None:
        await self.pilot.resize_terminal(width, height)
        await settle(self.pilot)

    async def take(self, part: LogPart) -> str:
        """Let a part of the log arrive; return what is on the screen then."""
        self.pane.add_part(part)
        return await self.press()

    @property
    def page(self) -> JobScreen:
        return cast(JobScreen, self.pilot.app.screen)

    @property
    def pane(self) -> LogPane:
        return self.page.log_pane

    @property
    def screen(self) -> str:
        return text_of(self.pilot.app)  # type: ignore[arg-type]

    @property
    def bar(self) -> str:
        return next(row for row in self.screen.splitlines() if row.startswith(" Log "))

    @property
    def rows(self) -> list[str]:
        return [row for row in self.screen.splitlines() if row[2:4].isdigit() and row[4:5] == ":"]

    @property
    def notices(self) -> str:
        return "\n".join(notice.message for notice in self.pilot.app._notifications)

    @property
    def own(self) -> str:
        entry = self.pane.view.model.cursor_entry
        assert entry is not None
        clock = f"{datetime.fromtimestamp(stamp_ns(entry) // SECOND, UTC):%H:%M:%S}"
        said = sanitize_whole(entry.message) if isinstance(entry, LogLine) else entry.reason
        seen = [row for row in self.screen.splitlines() if clock in row and said[:20] in row]
        return next(row for row in seen if "✗" not in row)


@asynccontextmanager
async def reading(
    entries: tuple[LogEntry, ...] | None = None,
    size: tuple[int, int] = NORMAL,
    hook: Callable[[Message], None] | None = None,
    tab: str = "logs",
) -> AsyncIterator[Reader]:
    app: Dashboard = job_view(lines=story() if entries is None else entries, tab=tab)
    async with opened(app, size, message_hook=hook) as pilot:
        yield Reader(pilot)


@pytest.mark.proves("README.md", "Is it healthy, how fast is it, which node is slow?")
async def test_the_first_error_is_pinned_by_what_went_wrong_and_one_key_away() -> None:
    async with reading(size=NARROW) as reader:
        pinned = next(row for row in reader.screen.splitlines() if "first error" in row)
        assert "e 12:50:00 node-2 torch.OutOfMemoryError" in pinned
        assert "12:50:00 n2 E▸torch.OutOfMemoryError" in await reader.own_after("e")
        assert "NCCL watchdog" in await reader.own_after("x")
        assert "NCCL watchdog" in await reader.own_after("x", "X")


async def test_the_first_error_of_another_day_is_pinned_with_its_day() -> None:
    async with reading((line(1, "fine"),)) as reader:
        for part, notice in (
            (LogPart((), is_older=True, has_ended=True, read_fraction=1), "No errors so far."),
            (LogPart((), is_settled=True), "No errors in the log; ! shows what is wrong."),
        ):
            reader.pane.add_part(part)
            await reader.press("e")
            assert reader.notices.splitlines()[-1] == notice
        await reader.take(LogPart((line(3 * 86_400, "ERROR: out of luck"),), is_older=True))
        assert " ✗ first error e 02-26 13:00:00 node-0 ERROR: out of luck" in reader.screen


@pytest.mark.proves("docs/logs.md", "The log viewer")
async def test_a_search_counts_goes_around_is_recalled_completed_and_forgotten() -> None:
    async with reading() as reader:
        assert "/worker 3 12 of 12" in await reader.bar_after("slash", *"worker 3", "enter")
        await reader.press("n")
        await until(reader.pilot, lambda: "1 of 12 wrapped around" in reader.bar)
        assert "11 of 12" in await reader.bar_after("N", "N")
        assert "not found" in await reader.bar_after("slash", *"nothing like it", "enter")
        assert "nothing like it" not in await reader.bar_after("escape")
        assert "/worker 3" in await reader.bar_after("slash", "up", "up", "enter")
        await reader.press("slash", *"no", "tab", "tab")
        field = reader.pane.field
        assert (field.is_open, field.text) == (True, "nothing like it")
        assert "/nothing like it" in await reader.bar_after("shift+tab", "enter")
        assert reader.page.tab == "logs"
        await reader.press("tab")
        assert reader.page.tab == "metrics"


@pytest.mark.proves("docs/logs.md", "The log viewer")
async def test_search_counts_while_typing_and_shows_its_old_text_again() -> None:
    async with reading() as reader:
        assert "/worker 3 12 found" in await reader.bar_after("slash", *"worker 3")
        assert "following" in reader.bar
        assert "worker 3" not in await reader.bar_after("escape") and "following" in reader.bar
        await reader.press("slash", *"worker", "enter", "slash")
        assert reader.pane.field.text == "worker"
        await reader.press(*"waiting", "enter")  # typing replaces the old text
        assert "/waiting 1 of 30" in reader.bar


@pytest.mark.proves("docs/logs.md", "The log viewer")
async def test_text_that_no_line_has_is_tried_as_a_regular_expression() -> None:
    async with reading((line(1, "worker 3"), line(2, "[rank3] up"), line(3, "rank 4 (slow)"))) as reader:
        for typed, found in (
            ("worker [0-9]", "/worker [0-9] regex 1 of 1"),
            ("[rank3]", "/[rank3] 1 of 1"),
            ("(slow)", "/(slow) 1 of 1"),
            ("(gone", "/(gone: not found"),
            ("gone|lost", "/gone|lost regex: not found"),
        ):
            await reader.press("slash", *typed, "enter")
            await until(reader.pilot, lambda found=found: found in reader.bar)
        await reader.press("escape", "ampersand", *"[0-9] .slow", "enter")
        await until(reader.pilot, lambda: "only /[0-9] .slow/" in reader.bar and len(reader.rows) == 1)
        assert "regex if no text matches" in await reader.press("ampersand")
        await reader.press("ctrl+r", "ctrl+r")
        await until(reader.pilot, lambda: "only [0-9] .slow · 0 of 3" in reader.bar)


async def test_filter_that_was_entered_is_not_forgotten_for_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    is_searched = asyncio.Event()

    async def has_match(*_args: object) -> bool:
        await is_searched.wait()
        return False

    async with reading((line(1, "worker 3"), line(2, "rank 4"))) as reader:
        monkeypatch.setattr(log_pane, "has_match", has_match)
        await reader.press("ampersand", *"[0-9]|x", "enter", "slash", *"rank", "enter")
        is_searched.set()
        await until(reader.pilot, lambda: "only /[0-9]|x/" in reader.bar and "/rank" in reader.bar)
        await reader.press("ampersand", *"|y")
        is_searched.clear()
        await reader.press("escape")
        is_searched.set()
        await settle(reader.pilot)
        assert "only /[0-9]|x/" in reader.bar


@pytest.mark.proves("docs/logs.md", "The log viewer")
async def test_a_filter_by_expression_inverted_and_by_case() -> None:
    async with reading(size=NARROW) as reader:
        assert "regex on" in await reader.press("ampersand", *"Worker (3|4)", "ctrl+r")
        assert "case smart" in reader.screen
        assert reader.rows == []  # a capital letter minds case
        assert "case aa" in await reader.press("ctrl+t", "ctrl+t")
        assert reader.rows and all("worker 3" in row for row in reader.rows)
        assert "invert on" in await reader.press("ctrl+n")
        assert reader.rows and not any("worker 3" in row for row in reader.rows)
        assert "without /Worker (3|4)/" in await reader.bar_after("enter")
        assert "✗ missing )" in await reader.press("ampersand", "(")
        assert "✗ missing )" in await reader.press("enter")  # not taken
        assert "without /zzz/" in await reader.bar_after("ctrl+u", *"zzz")
        assert "without /Worker (3|4)/" in await reader.bar_after("escape")
        assert "without" not in await reader.bar_after("escape")


def flowing(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.proves("docs/logs.md", "The log viewer")
async def test_levels_nodes_and_spans_are_told_and_esc_takes_them_back_one_by_one() -> None:
    async with reading(size=WIDE) as reader:
        assert "≥ INFO · 205 of 205" in await reader.bar_after("l")  # folded lines are not filtered out
        assert "≥ WARNING" in await reader.bar_after("l")
        assert all(" W " in row or " E" in row for row in reader.rows)
        assert any("worker 3" in row for row in reader.rows)
        await reader.press("v", "v")
        assert "node-2 hidden" in await reader.bar_after("e", "h")
        assert not any(" n2 " in row for row in reader.rows)
        for left in ("≥ WARNING", "node-2 hidden"):
            assert left in reader.bar
            assert left not in await reader.bar_after("escape")
        assert "205 lines" not in reader.bar
        await reader.press("escape")
        await until(reader.pilot, lambda: "205 lines" in reader.bar)
        await reader.press("l", "l", "ampersand")
        words = "waiting for node-2 or a collective that times out"
        reader.pane.query_one(Input).value = words
        await reader.press("enter")
        for size in (NORMAL, NARROW, (40, 12), WIDE):  # what hides lines, and how many are left
            await reader.resize(*size)
            for fact in (f"only {words}", "≥ WARNING", f"1 of {len(story())}"):  # the gap is never hidden
                assert fact in flowing(reader.screen)
        await reader.press("escape", "escape")
        reader.pane.set_options(
            replace(reader.pane.options, hidden=frozenset({"node-0", "node-1", "node-3"}))
        )
        await reader.press("e", "h")
        assert "last visible node" in reader.notices
        assert "205 lines" in await reader.bar_after("H")


async def test_following_ends_and_continues_by_a_key_and_a_span_moves_with_the_log() -> None:
    async with reading() as reader:
        assert "following" in reader.bar
        await reader.press("f")
        await reader.take(LogPart((line(-1, "one more"), line(-2, "and another"))))
        assert "paused ↓ 2 new" in reader.bar
        assert "↓ 2 new" in reader.rows[-1]
        assert not any("another" in row for row in reader.rows)
        assert "following" in await reader.bar_after("f")
        assert "and another" in reader.rows[-1]
        await reader.press("v", "v", "v", "v")
        await until(reader.pilot, lambda: not any("250 s" in row for row in reader.rows))
        before = reader.rows
        later = tuple(
            LogLine(END + step * 100 * SECOND, f"later {step}", "node-0", None) for step in range(4)
        )
        snapshot = reader.page.snapshot
        assert snapshot is not None
        reader.pane.add_part(LogPart(later))
        await until(reader.pilot, lambda: sum("later" in row for row in reader.rows) == 4)
        assert any("exit code 1" in row for row in before)
        later_at = snapshot.at + timedelta(minutes=5)
        reader.page.post_message(JobScreen.Published(replace(snapshot, at=later_at)))
        await until(reader.pilot, lambda: not any("exit code 1" in row for row in reader.rows))


class Server:
    """Reads lines again that a log of a thousand does not keep, fifty seconds of them at a time."""

    def __init__(self, lines: tuple[LogLine, ...], page: JobScreen) -> None:
        self.lines, self.pane, self.requests = lines, page.log_pane, list[int | None]()
        page._feed.retry, self.pane.view.store.max_lines = self.retry, 1_000

    async def retry(self, gap: LogGap, from_ns: int | None) -> None:
        self.requests.append(from_ns)
        start_ns = gap.end_ns - 50 * SECOND if from_ns is None else from_ns
        end_ns = gap.end_ns if from_ns is None else from_ns + 50 * SECOND
        some = [each for each in self.lines if start_ns <= each.timestamp_ns < end_ns]
        rest = (replace(gap, end_ns=start_ns), replace(gap, start_ns=end_ns))
        left = [each for each in rest if each.start_ns < each.end_ns]
        part = sorted([*some, *left], key=stamp_ns)
        self.pane.add_part(LogPart(tuple(part), filled_gap=gap, wanted_ns=from_ns or gap.end_ns))


@pytest.mark.proves("docs/logs.md", "Memory")
async def test_lines_not_kept_are_counted_and_read_again_from_their_mark() -> None:
    lines = tuple(line(9_000 - number, f"step {number}") for number in range(9_000))
    async with reading(lines[:1]) as reader:
        pane, store, server = reader.pane, reader.pane.view.store, Server(lines, reader.page)
        for begin in range(1, 9_000, 500):
            pane.add_part(LogPart(lines[begin : begin + 500]))
        await reader.press()
        dropped = store.dropped
        assert 8_000 <= dropped < 8_500
        assert f"{dropped:,} older lines not kept" in reader.bar
        assert "step 8999" in reader.rows[-1]
        await reader.press("at", *"-2h", "enter")
        assert server.requests == [END - 7_200 * SECOND - SECOND]
        assert f"step {9_000 - 7_201}" in reader.rows[0]
        await reader.press("g")
        assert server.requests[1:] == [lines[0].timestamp_ns]
        assert "step 0" in reader.rows[0]
        assert f"{dropped - 100:,} older lines not kept" in reader.bar
        pane.view.viewport.follow = True
        await reader.take(LogPart((line(0, "the newest"),)))
        dropped = store.dropped
        assert 8_001 <= dropped < 8_500
        pane.view.viewport.put_cursor(0)
        assert ") not kept in memory: open to read again ──" in await reader.press()
        await reader.press("enter")
        assert server.requests[2:] == [None]
        assert f"{dropped - 50:,} older lines not kept" in reader.bar
        assert f"step {dropped}" in reader.own
        await reader.press("k")
        assert f"step {dropped - 1}" in reader.own


async def test_the_first_error_is_gone_to_though_it_was_not_kept() -> None:
    error = line(9_000, "ERROR: out of luck")
    later = tuple(line(8_000 - number, f"step {number}") for number in range(8_000))
    async with reading((error,)) as reader:
        Server((error, *later), reader.page)
        await reader.take(LogPart(later))
        assert "ERROR: out of luck" not in "".join(reader.rows)
        assert "first error e 10:30:00 node-0 ERROR: out of luck" in reader.screen
        assert "ERROR: out of luck" in await reader.own_after("e")


@pytest.mark.proves("docs/logs.md", "The log viewer")
async def test_times_are_local_utc_ages_elapsed_or_off_and_the_day_is_told_if_it_is_not_today() -> None:
    async with reading() as reader:
        assert "12:58:20 n2" in reader.screen and "2026-03-01" in reader.bar
        assert "12:58:20Z" in await reader.press("t") and "UTC" in reader.bar
        assert "ages" in await reader.bar_after("t")
        assert "2026-03-01" not in reader.bar  # ages say it themselves
        assert "since start" in await reader.bar_after("t")
        assert "12:58:20 n2" not in await reader.press("t") and "no times" in reader.bar
        assert "no times" not in await reader.bar_after("t")
        reader.pane.add_part(LogPart((), is_restart=True))
        await reader.take(LogPart((LogLine(time.time_ns(), "now", "node-0", None),)))
        assert "now" in reader.screen
        assert f"{datetime.now(UTC):%Y-}" not in reader.bar


async def test_a_log_is_empty_only_once_it_was_read_and_followed_only_once_its_newest_part_was() -> None:
    async with reading(()) as reader:
        for part, status, told in (
            (LogPart((), has_ended=True), "job ended", "Reading the log…"),
            (
                LogPart((), is_older=True, read_fraction=1.0),
                "job ended",
                "The job ended without logging anything.",
            ),
            (LogPart((), is_restart=True), "all nodes · reading", "Reading the log…"),
            (LogPart((), is_older=True, read_fraction=0.0), "all nodes · reading", "Reading the log…"),
            (LogPart(()), "following · reading older lines", "Reading the log…"),
            (LogPart((), is_older=True, read_fraction=1.0), "following", "No log lines yet."),
        ):
            assert told in await reader.take(part) and status in reader.bar


@pytest.mark.proves("docs/logs.md", "The log viewer")
async def test_going_to_a_time_and_by_minutes_and_hours() -> None:
    async with reading(size=NARROW) as reader:
        await reader.press("at")
        for size in (NARROW, NORMAL):
            await reader.resize(*size)
            assert flowing(reader.screen).count(TIME_EXAMPLES) == 1
        assert "not a time: noon" in await reader.press(*"noon", "enter")
        assert "no such time: 99:99" in await reader.press("ctrl+u", *"99:99", "enter")
        assert "11:30:00" in await reader.own_after("ctrl+u", *"11:30", "enter")
        for key, clock in (
            ("right_curly_bracket", "11:31:00"),
            ("left_curly_bracket", "11:30:00"),
            ("right_parenthesis", "12:30:00"),
            ("left_parenthesis", "11:30:00"),
        ):
            assert clock in await reader.own_after(key)
        assert "11:32:00" in await reader.own_after("at", *"+2m", "enter")
        assert "11:00:00" in await reader.own_after("g")
        first = reader.rows
        for down, up in (("pagedown", "pageup"), ("ctrl+d", "ctrl+u"), ("ctrl+f", "ctrl+b")):
            await reader.press(down)
            further = reader.rows
            assert further != first
            await reader.press(up)
            assert reader.rows != further
        assert "following" in await reader.bar_after("G")


@pytest.mark.proves("docs/logs.md", "The log viewer")
async def test_folds_open_and_close_json_spreads_out_and_a_terminal_that_cannot_be_lent_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("PAGER", "VISUAL", "EDITOR"):
        monkeypatch.setenv(name, sys.executable)
    async with reading() as reader:
        await reader.press("g")
        top = "\n".join(reader.rows)
        assert top.count("Loading shards") == 1 and top.count("NCCL version") == 1
        assert "all bars" in await reader.bar_after("P")
        assert "\n".join(reader.rows).count("Loading shards") > 10
        assert "all repeats" in await reader.bar_after("P", "D", "g")
        assert "\n".join(reader.rows).count("NCCL version") == 4
        assert "train.py" not in await reader.press("D", "e")
        assert "train.py" in await reader.press("enter")
        assert "train.py" in await reader.press("enter", "S") and "all tracebacks" in reader.bar
        assert '"event"' in await reader.own_after("S", "at", *"12:28", "enter")
        assert '"accuracy": 0.74' in await reader.press("enter") and '"metrics": {' in reader.screen
        assert "wrapped" in await reader.bar_after("w")
        for times, key in ((1, "O"), (2, "I")):
            await reader.press(key)
            assert reader.notices.count("can't run an external program") == times


@pytest.mark.proves("docs/logs.md", "The log viewer")
async def test_bookmarks_survive_a_filter_and_a_line_or_several_are_copied() -> None:
    copied = Heard(CopyRequested)
    async with reading(hook=copied) as reader:
        await reader.press("apostrophe")
        assert "No bookmarks" in reader.notices
        await reader.press("e", "b", "x", "b", "G", "apostrophe")
        first = reader.own
        await reader.press("l", "l", "apostrophe", "quotation_mark")
        assert reader.own[2:20] == first[2:20]
        reader.pilot.app.clear_notifications()
        await reader.press("apostrophe", "b", "quotation_mark", "b", "apostrophe")
        assert "No bookmarks" in reader.notices
        await reader.press("escape", "e", "enter", "Y", "x", "x", "shift+up", "Y")
    assert copied.messages[0].text.startswith("Traceback (most recent call last):")
    assert copied.messages[-1].text == "waiting for node-2, 300 s\nNCCL watchdog: collective timed out"
    assert [message.noun for message in copied.messages] == ["line", "2 lines"]


async def test_nodes_side_by_side_where_there_is_room() -> None:
    async with reading(size=WIDE) as reader:
        await reader.press("vertical_line")
        titles = next(row for row in reader.screen.splitlines() if row.startswith(" node-0"))
        assert titles.split() == ["node-0", "node-1", "node-2"]
        assert "Log node-0 … node-2" in reader.bar
        await reader.press("full_stop", "e")
        await reader.press("right_square_bracket", "right_square_bracket")
        titles = next(row for row in reader.screen.splitlines() if row.startswith(" node-1"))
        assert titles.split() == ["node-1", "node-2", "node-3"]
        assert "Log node-1 ·" in await reader.bar_after("comma", "vertical_line")
        await reader.resize(*NARROW)
        await reader.press("vertical_line")
        assert "Side by side needs a width of 76 characters; this log has 60." in reader.notices


@pytest.mark.proves("docs/logs.md", "The log viewer")
@pytest.mark.proves("README.md", "What happened?")
async def test_nodes_side_by_side_are_lined_up_in_time() -> None:
    entries = [
        line(at, f"worker {at}", node) for node, step in ((0, 5), (1, 7)) for at in range(0, 3600, step)
    ]
    async with reading(tuple(entries), size=WIDE) as reader:
        await reader.press("vertical_line")
        for keys in (("at", *"-15m", "enter"), ("ctrl+u", "k"), ("full_stop", "k")):
            await reader.press(*keys)
            own = next(row for row in reader.screen.splitlines() if "›" in row)
            clocks = [cell.split(":") for cell in own.replace("›", " ").split() if cell.count(":") == 2]
            seconds = [int(hour) * 3600 + int(minute) * 60 + int(second) for hour, minute, second in clocks]
            assert len(seconds) == 2
            assert max(seconds) - min(seconds) <= 30, own


async def test_saving_what_is_shown_or_everything_never_over_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with reading() as reader:
        assert "whole log off" in await reader.press("ampersand", *"worker 3", "enter", "W")
        assert "llama-70b-sft-v3.log" in reader.screen
        await reader.press("enter")
        await until(reader.pilot, lambda: "Saved 13 lines" in reader.notices)  # the gap is told too
        await reader.press("W", "enter")
        await until(reader.pilot, lambda: "press enter again to replace it" in reader.screen)
        assert "whole log on" in await reader.press("ctrl+u", *"all.ndjson", "ctrl+l")
        await reader.press("enter")
        await until(reader.pilot, (tmp_path / "all.ndjson").exists)
        await reader.press("W", "ctrl+u", *"~nobody-of-that-name/x.log", "enter")
        await until(reader.pilot, lambda: "the folder does not exist" in reader.screen)
    assert len(os.listdir(tmp_path)) == 2  # noqa: PTH208
    shown = (tmp_path / "llama-70b-sft-v3.log").read_text("utf-8").splitlines()
    assert len(shown) == 13 and all("worker 3" in row or "-- gap" in row for row in shown)
    records = [json.loads(row) for row in (tmp_path / "all.ndjson").read_text("utf-8").splitlines()]
    assert len(records) == len(story())
    as_printed = "\x1b[1;32mSaving checkpoint\x1b[0m to /mnt/ckpts/checkpoint-1200"
    assert as_printed in [record.get("message") for record in records]


@pytest.mark.proves("docs/logs.md", "How the stream works")
async def test_a_gap_is_read_again_from_its_line() -> None:
    async with reading() as reader:

        async def retry(gap: LogGap, _from_ns: int | None) -> None:
            assert gap.reason == "the server answered 503"
            found = LogLine(gap.start_ns + SECOND, "found after all", "node-1", None)
            reader.pane.add_part(LogPart((found,), filled_gap=gap))

        reader.page._feed.retry = retry
        await reader.press("at", *"12:21:30", "enter")
        text = await reader.press("enter")
        assert "found after all" in text and "── gap" not in text
        assert reader.notices.count("Gap filled: 1 line.") == 1


async def test_pane_is_removed_while_it_opens() -> None:
    app = job_view()
    async with opened(app, NORMAL) as pilot:
        screen = app.screen
        assert isinstance(screen, JobScreen)
        pane = LogPane(screen.job, screen.query_one(LogPane).options)
        opening = screen.mount(pane)
        closing = pane.remove()
        await opening
        await closing
        await settle(pilot)
