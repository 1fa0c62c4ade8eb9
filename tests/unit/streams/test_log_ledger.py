"""What a repeated read brings again, and what of it is new: counted, not merged, in a single reading."""

from __future__ import annotations

from api_client.streams.ledger import Ledger
from api_client.streams.records import LogLine

NOW_NS = 1_760_000_000_000_000_000


def line(message: str) -> LogLine:
    return LogLine(NOW_NS, message, "node-0", None)


def test_of_identical_lines_as_many_are_new_as_have_come() -> None:
    ledger = Ledger()
    same, other = line("same"), line("other")

    assert ledger.admit([same], 0) == [same]
    assert ledger.admit([same, same, other, same], 0) == [same, same, other]
    assert ledger.admit([other, same, same, same], 0) == []
    assert ledger.line_count == 4
