"""A traceback that may be shown: no values of variables, no secret, nothing that a terminal would obey."""

from __future__ import annotations

import traceback
from collections.abc import Iterable

from tui.insight.text import inert_lines

REDACTED = "[key]"


def crash_text(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """The traceback as lines that a terminal can only show, without the secrets."""
    report = inert_lines("".join(traceback.format_exception(error)))
    for secret in secrets:
        report = report.replace(secret, REDACTED)
    return report
