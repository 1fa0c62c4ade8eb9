"""The log model holds what it is given, in order, and keeps the reader's place through everything."""

import gc

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from log_lines import START_NS, finish, line, lines, match_count, matches_of

from api_client.models.logs import LogEntry, LogGap, LogLine, stamp_ns
from tui.analysis.logs.levels import RANKS, level_rank
from tui.analysis.logs.pattern import LogPattern
from tui.widgets.log_view.folds import FoldDetector
from tui.widgets.log_view.line import LineKey
from tui.widgets.log_view.model import LogModel, ScrollPosition
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.search import LogSearch
from tui.widgets.log_view.store import LogStore

LIMIT = 1_000
"""More lines than come, and so few that blocks are small."""

TEXTS = (
    "plain {}",
    "WARNING slow {}",
    "\x1b[31mERROR\x1b[0m half {}",
    "日本語 {} \ud800",
    "{}: 12%|█         | 12/100 [00:01<00:09]",
    "initialised process group on rank {}",
    "Traceback (most recent call last):",
    '  File "x.py", line {}',
    "ValueError: {}",
    "two\nlines {}",
    "",
)


def passes(entry: LogEntry, wanted: LogOptions) -> bool:
    """The filter, said once more and differently."""
    if isinstance(entry, LogGap):
        return wanted.since_ns is None or entry.start_ns >= wanted.since_ns
    if wanted.nodes is not None and entry.replica not in wanted.nodes:
        return False
    if entry.replica in wanted.hidden:
        return False
    if wanted.min_level is not None and level_rank(entry.message, entry.level) < RANKS[wanted.min_level]:
        return False
    if wanted.since_ns is not None and entry.timestamp_ns < wanted.since_ns:
        return False
    return not wanted.pattern or wanted.pattern.matcher()(entry.message) is not wanted.invert


def kept(entries: list[LogEntry], wanted: LogOptions) -> list[LogEntry]:
    return [entry for entry in entries if passes(entry, wanted)]


filters = st.builds(
    LogOptions,
    nodes=st.one_of(st.none(), st.frozensets(st.sampled_from(["node-0", "node-1", "node-2"]))),
    hidden=st.frozensets(st.sampled_from(["node-0", "node-1"])),
    min_level=st.sampled_from([None, None, "WARNING", "ERROR"]),
    pattern=st.sampled_from([None, LogPattern("1"), LogPattern("ERROR"), LogPattern("an|語", regex=True)]),
    invert=st.booleans(),
    fold_tracebacks=st.booleans(),
    collapse_progress=st.booleans(),
    fold_repeats=st.booleans(),
)


class ReadingWhileLinesCome(RuleBasedStateMachine):
    """Lines come at both ends and in between, filters and folds change; what is read stays where it is."""

    def __init__(self) -> None:
        super().__init__()
        self.store = LogStore(LIMIT)
        self.model = LogModel(self.store)
        self.model.following = False
        self.other = LogModel(self.store)
        self.other.options = LogOptions(nodes=frozenset({"node-1"}))
        self.expected: list[LogEntry] = []
        self.next_second = 1000
        self.first_second = 500
        self.serial = 0
        self.read: LogEntry | None = None
        self.cursor: LogEntry | None = None
        self.marked: list[LogEntry] = []
        self.gaps: list[LogGap] = []
        self.search: LogSearch | None = None

    def new(self, second: float, node: int, text: str, *, late: bool = False) -> LogLine:
        self.serial += 1
        request_id = f"r{self.serial}" if self.serial % 5 == 0 else None
        return line(second, text.format(self.serial), node, late=late, request_id=request_id)

    def sort(self, more: list[LogEntry]) -> None:
        self.expected = sorted([*self.expected, *more], key=stamp_ns)

    @rule(count=st.integers(1, 30), node=st.integers(0, 2), text=st.sampled_from(TEXTS))
    def lines_come(self, count: int, node: int, text: str) -> None:
        batch: list[LogEntry] = [
            self.new(self.next_second + index // 2, node, text) for index in range(count)
        ]
        self.next_second += count // 2
        self.store.append(batch)
        self.expected += batch

    @precondition(lambda self: self.expected)
    @rule(
        back=st.lists(st.integers(1, 400), min_size=1, max_size=4),
        node=st.integers(0, 2),
        text=st.sampled_from(TEXTS),
    )
    def late_lines_come(self, back: list[int], node: int, text: str) -> None:
        batch: list[LogEntry] = [
            self.new(self.next_second - seconds, node, text, late=True)
            for seconds in sorted(back, reverse=True)
        ]
        self.store.append(batch)
        self.sort(batch)
        # A late line can come between a match and what was its context until then.
        passing = kept(self.expected, self.model.options)
        self.read = self.read if self.read in passing else None
        self.cursor = self.cursor if self.cursor in passing else None

    @precondition(lambda self: self.expected)
    @rule(count=st.integers(1, 30), text=st.sampled_from(TEXTS))
    def older_lines_come(self, count: int, text: str) -> None:
        self.first_second -= count
        batch: list[LogEntry] = [self.new(self.first_second + index, 0, text) for index in range(count)]
        if stamp_ns(batch[-1]) > stamp_ns(self.expected[0]):
            return
        assert self.store.prepend(batch) == count
        self.expected = [*batch, *self.expected]

    @rule()
    def a_gap_comes(self) -> None:
        self.next_second += 2
        begin = START_NS + self.next_second * 1_000_000_000
        gap = LogGap(begin, begin + 1, f"lost {self.serial}")
        self.store.append([gap])
        self.expected.append(gap)
        self.gaps.append(gap)

    @precondition(lambda self: self.gaps)
    @rule(count=st.integers(0, 3), data=st.data())
    def a_gap_is_filled(self, count: int, data: st.DataObject) -> None:
        gap = data.draw(st.sampled_from(self.gaps))
        second = (gap.start_ns - START_NS) / 1_000_000_000
        lines: list[LogEntry] = [self.new(second, 1, "filled {}") for _ in range(count)]
        assert self.store.replace_gap(gap, lines)
        assert not self.store.replace_gap(gap, lines)
        self.expected = [entry for entry in self.expected if entry is not gap]
        self.gaps.remove(gap)
        self.sort(lines)
        if self.read == gap:
            self.read = None
        if self.cursor == gap:
            self.cursor = None
        self.marked = [entry for entry in self.marked if entry != gap]

    @rule(wanted=filters)
    def another_filter(self, wanted: LogOptions) -> None:
        self.model.options = wanted
        self.read = None

    @rule(pattern=st.sampled_from([LogPattern("1"), LogPattern("er"), LogPattern("^", regex=True)]))
    def look_for(self, pattern: LogPattern) -> None:
        self.search = LogSearch(self.model.rows, pattern)

    @precondition(lambda self: len(self.model) and self.model.rows.is_complete)
    @rule(data=st.data())
    def the_reader_goes_somewhere(self, data: st.DataObject) -> None:
        row = data.draw(st.integers(0, len(self.model) - 1))
        cursor = data.draw(st.integers(0, len(self.model) - 1))
        self.model.set_top(ScrollPosition(row))
        self.model.set_cursor(cursor)
        self.read = self.store.entry(self.model.rows.key(row))
        self.cursor = self.store.entry(self.model.rows.key(cursor))

    @precondition(lambda self: len(self.model) and self.model.rows.is_complete)
    @rule(data=st.data())
    def a_row_is_opened_or_closed(self, data: st.DataObject) -> None:
        self.model.toggle_fold(data.draw(st.integers(0, len(self.model) - 1)))
        self.read = None

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def a_line_is_marked(self, data: st.DataObject) -> None:
        keys = [block.key(index) for block in self.store.blocks for index in range(len(block))]
        key = data.draw(st.sampled_from(keys))
        entry = self.store.entry(key)
        if self.store.toggle_bookmark(key):
            self.marked.append(entry)
        else:
            self.marked.remove(entry)

    @invariant()
    def all_is_well(self) -> None:
        finish(self.model)
        finish(self.other)
        assert list(self.model.entries(filtered=False)) == self.expected
        for model in (self.model, self.other):
            assert list(model.entries(filtered=True)) == kept(self.expected, model.options)
        self.folds_hide_lines_from_sight_only()
        if self.search is not None:
            matches = self.search.pattern.matcher()
            passing = self.model.entries(filtered=True)
            matching = [entry for entry in passing if isinstance(entry, LogLine) and matches(entry.message)]
            assert match_count(self.search) == len(matching)
        first = next((entry for entry in self.expected if is_error(entry)), None)
        assert first == (self.store.first_error and self.store.entry(self.store.first_error))
        if self.read is not None:
            assert self.store.entry(self.model.rows.key(self.model.top.row)) == self.read
        if self.cursor is not None and self.model.cursor is not None:
            assert self.store.entry(self.model.cursor) == self.cursor
        marked = sorted(self.marked, key=self.expected.index)
        assert [self.store.entry(key) for key in self.store.bookmarks] == marked

    def folds_hide_lines_from_sight_only(self) -> None:
        all_block_rows = self.model.rows.all_block_rows
        seen: list[LineKey] = []
        for row in range(len(self.model)):
            block_rows, index = self.model.rows.locate(row)
            fold = block_rows.fold_at(index)
            folded = (
                fold.serials if fold is not None and not fold.is_open else [block_rows.block.serials[index]]
            )
            seen += map(block_rows.key, folded)
        assert sorted(seen) == [rows.block.key(index) for rows in all_block_rows for index in rows.passing]


def is_error(entry: LogEntry) -> bool:
    return isinstance(entry, LogLine) and level_rank(entry.message, entry.level) >= RANKS["ERROR"]


TestReadingWhileLinesCome = ReadingWhileLinesCome.TestCase
TestReadingWhileLinesCome.settings = settings(max_examples=15, stateful_step_count=15)


def test_a_new_filter_shows_the_newest_lines_first() -> None:
    model = LogModel(LogStore(100_000))
    model.store.append(lines(0, 10_000))
    model.options = LogOptions(nodes=frozenset({"node-1"}))
    assert not model.rows.build(lambda: False)
    assert model.store.entry(model.rows.key(len(model) - 1)) == line(9997, "line 9997", 1)
    assert len(model) < 2_500
    finish(model)
    assert len(model) == 2_500


def test_a_slice_of_folding_is_shorter_than_a_block_once_the_newest_is_shown() -> None:
    model = LogModel(LogStore(100_000))
    model.store.append(lines(0, 10_000))
    finish(model)
    model.options = LogOptions(collapse_progress=False)
    newest = len(model.store.blocks[-1])
    model.rows.build(lambda: False)
    assert len(model) == newest, "the newest block is not cut short"
    model.rows.build(lambda: False)
    assert len(model) == newest, "a whole block of the slowest lines takes too long for one slice"
    model.store.append([line(5_000.5, "late")])  # changes a block that may be half done
    finish(model)
    assert len(model) == 10_001


def test_progress_bar_stays_one_row_between_many_different_lines() -> None:
    texts = [f"loaded shard number {number} of the data set" for number in range(1_200)]
    texts[::100] = [f"epochs: {step:3}%|█         | {step}/100 [00:01<00:09]" for step in range(12)]
    model = LogModel(LogStore(100_000), LogOptions())
    model.store.append([line(number, text) for number, text in enumerate(texts)])
    finish(model)
    assert sum("epochs" in str(model.store.entry(model.rows.key(row))) for row in range(len(model))) == 1


def test_open_folds_are_remembered_for_the_last_block_only() -> None:
    def detectors() -> int:
        return sum(isinstance(each, FoldDetector) for each in gc.get_objects())

    before, model = detectors(), LogModel(LogStore(100_000))
    page = model.store.block_lines - 1  # two of them are more than a block
    for first in reversed(range(0, 4 * page, page)):
        model.store.prepend(lines(first, first + page))
        finish(model)
    assert len(model.store.blocks) == 4
    assert detectors() - before == 1


def test_a_text_that_begins_with_a_sign_is_found_on_every_line_that_has_it() -> None:
    model = LogModel(LogStore(100_000))
    model.store.append([line(number, f"'loss': {number}\nloss: {number}") for number in range(90)])
    model.store.append([line(100, "loss 'los"), line(101, "s': none"), line(102, "été 'loss'")])
    finish(model)
    counts = {text: matches_of(model, text) for text in ("'loss': 8", "'loss'", "'lossy", " 'los")}
    assert counts == {"'loss': 8": 11, "'loss'": 91, "'lossy": 0, " 'los": 2}
