"""Log entries for the tests of the log view."""

from api_client.models.logs import LogLine

START_NS = 1_700_000_000_000_000_000  # 22:13:20 UTC
NS_PER_S = 1_000_000_000


def line(second: float, message: str, node: int | None = 0, **more: object) -> LogLine:
    """A line so many seconds after the start."""
    replica = None if node is None else f"node-{node}"
    return LogLine(START_NS + int(second * NS_PER_S), message, replica, None, **more)  # type: ignore[arg-type]


def lines(first: int, last: int) -> list[LogLine]:
    """Lines "line FIRST" … "line LAST-1", one a second, from four nodes in turn."""
    return [line(number, f"line {number}", number % 4) for number in range(first, last)]
