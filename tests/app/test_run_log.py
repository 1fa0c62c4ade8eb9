"""The log of a run as the dashboard reads it: newest part first, gaps tried again, on a real socket."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from api_client.client import TrainingClient
from api_client.models.logs import LogEntry, LogGap, LogLine
from support.faulty import faulty_server
from support.log_server import NS_PER_S, FakeLog, FastClock, JobServer, ServedLine, hostile_lines
from support.remotes import remote_of
from tui.feeds.run_log import LogPart, RunLog
from tui.readers.watcher import RunWatcher
from tui.widgets.log_view.model import LogModel
from tui.widgets.log_view.store import LogStore

HOUR_S = 3600


class Reader:
    """Reads a server's log through a RunLog and keeps what it publishes."""

    def __init__(self, watcher: RunWatcher) -> None:
        self.parts: list[LogPart] = []
        self.taken: list[LogLine] = []
        self.news = asyncio.Event()
        self.log = RunLog(watcher, fold=self._take, publish=self.parts.append)

    def _take(self, entries: Sequence[LogEntry]) -> None:
        self.taken += (one for one in entries if isinstance(one, LogLine))
        self.news.set()

    @property
    def entries(self) -> list[LogEntry]:
        """What a viewer shows, which puts older parts before the others and filled gaps in their place."""
        shown: list[LogEntry] = []
        for part in self.parts:
            if part.filled_gap is not None:
                at = shown.index(part.filled_gap)
                shown[at : at + 1] = part.entries
            else:
                shown = [*part.entries, *shown] if part.is_older else [*shown, *part.entries]
        return shown


def job_of(lines: list[ServedLine], clock: FastClock) -> JobServer:
    now_ns = clock.server_ns()
    begin_ns = now_ns - 10 * HOUR_S * NS_PER_S
    return JobServer(FakeLog(lines, clock.server_ns, begin_ns, now_ns - 600 * NS_PER_S))


def ten_hours(clock: FastClock, count: int = 5_900) -> list[ServedLine]:
    begin_ns = clock.server_ns() - 10 * HOUR_S * NS_PER_S
    apart_ns = (10 * HOUR_S - 600) * NS_PER_S // count
    return [ServedLine(begin_ns + number * apart_ns, f"line {number}") for number in range(count)]


@asynccontextmanager
async def watching(job: JobServer, clock: FastClock) -> AsyncIterator[RunWatcher]:
    with faulty_server(job.app) as server:
        async with TrainingClient(remote_of(server), clock=clock) as client:
            yield RunWatcher(client, await client.jobs.find("job1"))


def busy_end(clock: FastClock, count: int = 2_500) -> list[ServedLine]:
    """Several pages in the last nine minutes of a job that ended ten minutes ago."""
    end_ns, apart_ns = clock.server_ns() - 600 * NS_PER_S, 540 * NS_PER_S // count
    return [ServedLine(end_ns - number * apart_ns, f"late {number}") for number in range(count, 0, -1)]


@pytest.mark.proves("docs/logs.md", "How the stream works")
async def test_the_newest_lines_come_first_and_the_rest_with_its_progress() -> None:
    clock = FastClock()
    newest = busy_end(clock)
    job = job_of([*ten_hours(clock), *newest], clock)
    async with watching(job, clock) as watcher:
        reader = Reader(watcher)
        await reader.log.read()
    assert Counter((e.timestamp_ns, e.message, e.replica) for e in reader.taken) == job.log.expected()
    assert reader.taken[0].timestamp_ns > newest[1_000].stamp_ns
    assert newest[-1].stamp_ns in [line.timestamp_ns for line in reader.taken[:1_000]]
    stamps = [entry.timestamp_ns for entry in reader.entries]
    assert stamps == sorted(stamps)
    told = [part.read_fraction for part in reader.parts if part.is_older]
    assert len(told) > 3
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert reader.log.is_read
    assert watcher.job.is_finished


async def test_what_is_seen_of_a_log_that_is_being_read_has_no_hole() -> None:
    """Or a checkpoint's loss might be that of the last line before the hole."""
    clock = FastClock()
    job = job_of([*ten_hours(clock), *busy_end(clock)], clock)
    logged = {line.stamp_ns for line in job.log.lines}
    seen: set[int] = set()

    async def look(reader: Reader) -> None:
        while True:
            await reader.news.wait()
            reader.news.clear()
            async with reader.log.fold_lock:
                stamps = {line.timestamp_ns for line in reader.taken}
                oldest = min(stamps, default=0)
                assert stamps in (set(), {stamp for stamp in logged if stamp >= oldest})
                seen.add(len(stamps))

    async with watching(job, clock) as watcher:
        reader = Reader(watcher)
        looking = asyncio.create_task(look(reader))
        await reader.log.read()
        looking.cancel()
        await asyncio.wait([looking])
    assert looking.cancelled() and len(seen) > 5


async def test_a_gap_tried_again_in_vain_and_then_filled() -> None:
    clock = FastClock()
    lines = ten_hours(clock, 400)
    lost = lines[200:203]
    job = job_of(lines, clock)
    job.broken = broken = (lost[0].stamp_ns, lost[-1].stamp_ns + 1)
    async with watching(job, clock) as watcher:
        reader = Reader(watcher)
        await reader.log.read()
        [gap] = [entry for entry in reader.entries if isinstance(entry, LogGap)]
        assert gap.start_ns <= broken[0]
        assert gap.end_ns >= broken[1]

        await reader.log.retry(gap)
        still = [entry for entry in reader.entries if isinstance(entry, LogGap)]
        assert still
        assert reader.parts[-1].filled_gap == gap

        job.broken = (0, 0)
        for each in still:
            await reader.log.retry(each)
    assert not [entry for entry in reader.entries if isinstance(entry, LogGap)]
    shown = Counter((e.timestamp_ns, e.message, e.replica) for e in reader.entries)
    assert shown == job.log.expected()
    assert Counter((e.timestamp_ns, e.message, e.replica) for e in reader.taken) == shown


class Viewer:
    """A log view's store and model, which keep few lines and put parts where the log pane does."""

    def __init__(self, watcher: RunWatcher) -> None:
        self.store = LogStore(2_000)
        self.model = LogModel(self.store)
        self.log = RunLog(watcher, fold=lambda _: None, publish=self._show)

    def _show(self, part: LogPart) -> None:
        if part.filled_gap is not None:
            assert self.store.replace_gap(part.filled_gap, part.entries)
        else:
            (self.store.prepend if part.is_older else self.store.append)(part.entries)

    @property
    def lines(self) -> list[LogLine]:
        return [entry for entry in self.model.entries(filtered=False) if isinstance(entry, LogLine)]


@pytest.mark.proves("docs/logs.md", "Memory")
@pytest.mark.parametrize("from_the_start", [False, True])
async def test_lines_that_were_not_kept_are_read_again_each_once(*, from_the_start: bool) -> None:
    clock = FastClock()
    begin_ns = clock.server_ns() - 1_000 * NS_PER_S
    lines = hostile_lines(2, begin_ns, 300)
    job = JobServer(FakeLog(lines, clock.server_ns, begin_ns, begin_ns + 400 * NS_PER_S))
    async with watching(job, clock) as watcher:
        viewer = Viewer(watcher)
        await viewer.log.read()
        newest, store = viewer.lines, viewer.store
        assert len(newest) <= 2_000
        assert store.dropped == len(lines) - len(newest)
        viewer.model.following, store.max_lines, turns = False, len(lines), 0
        while store.not_kept:
            mark, turns = store.not_kept[-1], turns + 1
            await viewer.log.retry(mark, mark.start_ns if from_the_start else None)
    assert turns > 3
    assert viewer.lines[-len(newest) :] == newest
    assert Counter((e.timestamp_ns, e.message, e.replica) for e in viewer.lines) == job.log.expected()
    stamps = [line.timestamp_ns for line in viewer.lines]
    assert stamps == sorted(stamps)
    assert store.dropped == 0


async def test_lines_are_read_again_from_a_time_in_the_middle() -> None:
    clock = FastClock()
    lines = ten_hours(clock, 5_900)
    job = job_of(lines, clock)
    async with watching(job, clock) as watcher:
        viewer = Viewer(watcher)
        await viewer.log.read()
        viewer.model.following = False
        [mark] = viewer.store.not_kept
        await viewer.log.retry(mark, lines[1_000].stamp_ns)
    before, after = viewer.store.not_kept
    assert (before.start_ns, after.end_ns) == (mark.start_ns, mark.end_ns)
    assert viewer.lines[0].timestamp_ns == lines[1_000].stamp_ns
    assert viewer.store.dropped == len(lines) - len(viewer.lines)
