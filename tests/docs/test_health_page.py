"""Check that the health page covers every kind of finding and every threshold."""

from __future__ import annotations

import re

from generated import DOCUMENTS, THRESHOLDS

from tui.analysis.run.finding import FindingKind
from tui.settings.reference import entries

PAGE = (DOCUMENTS / "health.md").read_text(encoding="utf-8")


def test_every_kind_of_finding_is_told() -> None:
    assert [kind for kind in FindingKind if f"`{kind}`" not in PAGE] == []


def test_every_threshold_belongs_to_one_finding_and_is_shown() -> None:
    keys = [entry.key for entry in entries() if entry.section == "health"]
    owners = {key: [kind for kind, names in THRESHOLDS.items() if key.startswith(names)] for key in keys}
    assert {key: kinds for key, kinds in owners.items() if len(kinds) != 1} == {}
    assert re.findall(r"<!-- thresholds: ([\w-]+) -->", PAGE) == list(map(str, THRESHOLDS))
