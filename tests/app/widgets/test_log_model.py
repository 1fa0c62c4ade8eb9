"""The log model holds what it is given, in order, and keeps the reader's place through everything."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from log_lines import START_NS, line, lines

from api_client.streams.records import LogEntry, LogGap, LogLine, stamp_ns
from tui.widgets.log_view.model import LogModel
from tui.widgets.log_view.rows import LineFilter
from tui.widgets.log_view.viewport import Place

ROOM = 64


def finish(model: LogModel) -> None:
    while not model.build(lambda: False):
        pass


class ReadingWhileLinesCome(RuleBasedStateMachine):
    """Lines come at both ends and in between, filters change; an entry that is read stays where it is."""

    def __init__(self) -> None:
        super().__init__()
        self.model = LogModel(ROOM)
        self.expected: list[LogEntry] = []
        self.next_second = 1000
        self.first_second = 1000
        self.serial = 0
        self.read: LogEntry | None = None
        self.match: LogEntry | None = None

    def new(self, second: float, node: int = 0, *, late: bool = False) -> LogLine:
        self.serial += 1
        return line(second, f"line {self.serial}", node, late=late)

    def drop(self) -> None:
        if len(self.expected) > ROOM:
            self.expected = self.expected[len(self.expected) - (ROOM - ROOM // 16) :]

    @rule(count=st.integers(1, 9), node=st.integers(0, 2))
    def lines_come(self, count: int, node: int) -> None:
        batch = [self.new(self.next_second + index // 2, node) for index in range(count)]
        self.next_second += count // 2
        self.model.append(batch, following=False)
        self.expected += batch
        self.drop()

    @precondition(lambda self: self.expected)
    @rule(back=st.lists(st.integers(1, 40), min_size=1, max_size=4), node=st.integers(0, 2))
    def late_lines_come(self, back: list[int], node: int) -> None:
        batch = [
            self.new(self.next_second - seconds, node, late=True) for seconds in sorted(back, reverse=True)
        ]
        self.model.append(batch, following=False)
        self.expected = sorted([*self.expected, *batch], key=stamp_ns)
        self.drop()

    @precondition(lambda self: self.expected)
    @rule(count=st.integers(1, 9))
    def older_lines_come(self, count: int) -> None:
        self.first_second = min(self.first_second, 500) - count
        batch = [self.new(self.first_second + index) for index in range(count)]
        if stamp_ns(batch[-1]) > stamp_ns(self.expected[0]):
            return
        accepted = self.model.prepend(batch)
        assert accepted == min(count, ROOM - len(self.expected))
        self.expected = [*batch[count - accepted :], *self.expected]

    @rule(nodes=st.one_of(st.none(), st.sets(st.integers(0, 2))), text=st.sampled_from(["", "1", "LINE 2"]))
    def another_filter(self, nodes: set[int] | None, text: str) -> None:
        wanted = None if nodes is None else frozenset(f"node-{node}" for node in nodes)
        self.model.set_filter(LineFilter(wanted, text))
        self.read = self.match = None

    @rule()
    def filter_goes_on(self) -> None:
        self.model.build(lambda: False)
        if not self.model.visible.is_complete:
            self.read = self.match = None

    @precondition(lambda self: self.model.visible.is_complete and self.model.rows)
    @rule(data=st.data())
    def the_reader_goes_somewhere(self, data: st.DataObject) -> None:
        rows = self.model.rows
        row = data.draw(st.integers(0, len(rows) - 1))
        match = data.draw(st.integers(0, len(rows) - 1))
        self.model.go(Place(row))
        self.model.match = match
        self.read, self.match = rows[row], rows[match]

    @invariant()
    def everything_is_held_in_order(self) -> None:
        assert self.model.store.entries == self.expected
        assert len(self.model.store) <= ROOM

    @invariant()
    def rows_are_what_passes_the_filter(self) -> None:
        if self.model.visible.is_complete:
            wanted = self.model.visible.filter.select(self.expected)
            assert list(self.model.rows) == wanted

    @invariant()
    def the_reader_stays(self) -> None:
        rows = self.model.rows
        if self.read is not None and any(entry is self.read for entry in rows):
            assert rows[self.model.top.row] is self.read
        if self.match is not None and any(entry is self.match for entry in rows):
            assert self.model.match is not None
            assert rows[self.model.match] is self.match


TestReadingWhileLinesCome = ReadingWhileLinesCome.TestCase
TestReadingWhileLinesCome.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_a_new_filter_shows_the_newest_lines_first() -> None:
    model = LogModel(100_000)
    model.append(lines(0, 10_000), following=True)
    model.set_filter(LineFilter(frozenset({"node-1"})))
    assert not model.build(lambda: False)
    assert isinstance(model.rows[-1], LogLine)
    assert model.rows[-1].message == "line 9997"
    assert len(model.rows) < 2_500
    finish(model)
    assert len(model.rows) == 2_500


def test_gaps_pass_every_filter() -> None:
    model = LogModel(100)
    gap = LogGap(START_NS + 1, START_NS + 2, "lost")
    model.append([line(0, "a"), gap, line(1, "b")], following=True)
    model.set_filter(LineFilter(frozenset({"node-9"}), "nothing"))
    finish(model)
    assert model.rows == [gap]


def test_what_had_to_go_is_counted() -> None:
    model = LogModel(160)
    model.append(lines(0, 161), following=True)
    assert (len(model.store), model.store.dropped) == (150, 11)
    model.append(lines(161, 500), following=True)
    assert len(model.store) + model.store.dropped == 500
    assert model.store.entries[-1] == line(499, "line 499", 499 % 4)


def test_only_unread_lines_that_are_shown_count_as_unseen() -> None:
    model = LogModel(100)
    model.append(lines(0, 8), following=True)
    assert model.unseen == 0
    model.set_filter(LineFilter(frozenset({"node-1"})))
    finish(model)
    model.append(lines(8, 16), following=False)
    assert model.unseen == 2


def test_a_late_line_just_above_the_reader_moves_nothing() -> None:
    model = LogModel(100)
    model.append(lines(0, 10), following=False)
    model.go(Place(5))
    model.match = 5
    read = model.rows[5]
    model.append([line(4.5, "late", late=True)], following=False)
    assert model.rows[model.top.row] is read
    assert model.rows[model.match] is read
    model.append([line(5.0, "late, at the same time", late=True)], following=False)
    assert model.rows[model.top.row] is read
