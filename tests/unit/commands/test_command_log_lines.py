"""Log entries as text and as JSON."""

import json
from datetime import UTC

import pytest

from api_client.models.logs import LogGap, LogLine
from tui.commands.logs.printing import OutputLine, ndjson_line
from tui.text.log_entries import entry_fields, entry_text, message_text

STAMP = 1_795_262_671_123_456_789
LINE = LogLine(STAMP, "first\x1b[2J\n\tsecond\u202e\n", "node-0", "ERROR", late=True)
GAP = LogGap(STAMP, STAMP + 10**9, "no\x07 answer")


def test_an_entry_as_text_is_inert_and_its_rows_stay_together() -> None:
    assert entry_text(LINE, UTC) == "2026-11-21 12:04:31.123Z  node-0  ERROR  first\n        second\ufffd"
    assert entry_text(LogLine(STAMP, "x", None, None), UTC) == "2026-11-21 12:04:31.123Z  -  x"
    assert entry_text(LogLine(10**30, "x", "a\nb", None), UTC).startswith(f"{10**30}  a␤b")
    assert (
        entry_text(GAP, UTC) == "-- gap 2026-11-21 12:04:31.123Z to 2026-11-21 12:04:32.123Z: no␇ answer --"
    )
    assert message_text(LINE) == "first\n    second\ufffd"


@pytest.mark.proves("docs/commands.md", "Output formats")
def test_a_record_keeps_every_field_as_it_was() -> None:
    assert json.loads(ndjson_line(OutputLine(LINE))) == {
        "timestamp": str(STAMP),
        "time": "2026-11-21T12:04:31.123456Z",
        "replica": "node-0",
        "level": "ERROR",
        "message": LINE.message,
        "late": True,
    }
    assert "late" not in entry_fields(LogLine(STAMP, "x", None, None))
    assert json.loads(ndjson_line(OutputLine(LogGap(0, 10**6, "why")))) == {
        "gap": {"start": "1970-01-01T00:00:00.000000Z", "end": "1970-01-01T00:00:00.001000Z", "reason": "why"}
    }
