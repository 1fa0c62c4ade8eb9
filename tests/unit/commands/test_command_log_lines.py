"""Log entries as text and as JSON."""

import io
import json

from api_client.models.logs import LogGap, LogLine
from tui.commands.logs.printing import OutputLine, TextLines, ndjson_line
from tui.commands.support.output import Output
from tui.text.times import iso_time_of_ns

NOON_NS = 1_740_830_400_000_000_000


def log_line(message: str = "hello", **more: object) -> LogLine:
    fields = {"timestamp_ns": NOON_NS + 123_456_789, "message": message, "replica": "node-0", "level": None}
    return LogLine(**(fields | more))


def text_lines() -> TextLines:
    return TextLines(Output(io.StringIO(), io.StringIO(), {}))


def test_a_gap_is_an_object_with_gap() -> None:
    gap = LogGap(start_ns=NOON_NS, end_ns=NOON_NS + 1_000_000, reason="more lines than can be fetched")

    assert json.loads(ndjson_line(OutputLine(gap))) == {
        "gap": {
            "start": "2025-03-01T12:00:00.000000Z",
            "end": "2025-03-01T12:00:00.001000Z",
            "reason": "more lines than can be fetched",
        }
    }
    assert "more lines than can be fetched" in text_lines().render(OutputLine(gap))


def test_a_late_line_says_so_and_others_do_not() -> None:
    assert json.loads(ndjson_line(OutputLine(log_line(late=True))))["late"] is True
    assert "late" not in json.loads(ndjson_line(OutputLine(log_line())))


def test_a_line_without_replica_and_text_is_still_a_line() -> None:
    assert text_lines().render(OutputLine(log_line("", replica=None))).endswith("-  \n")
    assert json.loads(ndjson_line(OutputLine(log_line(replica=None))))["replica"] is None


def test_stamps_beyond_the_calendar_do_not_crash() -> None:
    assert iso_time_of_ns(10**30) is None
    assert str(10**30) in text_lines().render(OutputLine(log_line(timestamp_ns=10**30)))
