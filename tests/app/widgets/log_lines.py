"""Log entries for the tests of the log view, and a model that has done all its work."""

from api_client.models.logs import LogLine
from tui.analysis.logs.pattern import LogPattern
from tui.widgets.log_view.model import LogModel
from tui.widgets.log_view.search import LogSearch

START_NS = 1_700_000_000_000_000_000  # 22:13:20 UTC
NS_PER_S = 1_000_000_000


def line(second: float, message: str, node: int | None = 0, **more: object) -> LogLine:
    """A line so many seconds after the start."""
    replica = None if node is None else f"node-{node}"
    return LogLine(START_NS + int(second * NS_PER_S), message, replica, None, **more)  # type: ignore[arg-type]


def lines(first: int, last: int) -> list[LogLine]:
    """Lines "line FIRST" … "line LAST-1", one a second, from four nodes in turn."""
    return [line(number, f"line {number}", number % 4) for number in range(first, last)]


def finish(model: LogModel) -> None:
    """Filter and fold all lines, in the shortest slices."""
    while not model.rows.build(lambda: False):
        pass


def match_count(search: LogSearch) -> int:
    """The number of matches in all lines that pass, searched in the shortest slices."""
    while not search.search_blocks(lambda: False):
        pass
    return search.total


def matches_of(model: LogModel, text: str) -> int:
    return match_count(LogSearch(model.rows, LogPattern(text, case=True)))
