"""Decides whether a run without findings is healthy, which takes its log and its metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tui.analysis.connection import LOG, METRICS, STATUS
from tui.analysis.run.snapshot import RunSnapshot
from tui.text.units import age

PARTS = frozenset({LOG, METRICS})
"""The data that a verdict requires."""
STALE_METRICS_S = 90.0
"""A run whose metrics were last updated before this many seconds must be checked again first."""

State = Literal["findings", "checking", "stale", "unknown", "healthy"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The health of a run; ``words`` is the text to display, empty if there are findings."""

    state: State
    words: str = ""


def is_settled(run: RunSnapshot) -> bool:
    """True once all data has been checked or could not be read: no more will be known soon."""
    judged = run.judged_by if run.log_read else run.judged_by - {LOG}  # not while the log is being read again
    return judged | run.failing >= PARTS


def verdict(run: RunSnapshot) -> Verdict:
    if run.findings:
        return Verdict("findings")
    if not is_settled(run):
        return Verdict("checking", "checking health…")
    unseen_s = (run.at - run.seen_at).total_seconds()
    if STATUS in run.failing or unseen_s > run.stale_after_s:
        return Verdict("stale", f"no problems when last seen, {age(unseen_s)} ago")
    if run.failing >= PARTS:
        return Verdict("unknown", "health unknown: the log and the metrics cannot be read")
    if LOG in run.failing:
        return Verdict("unknown", "no problems in the metrics, the log cannot be read")
    if METRICS in run.failing:
        return Verdict("unknown", "no problems in the log, the metrics cannot be read")
    if run.vitals is None or run.vitals.at is None:
        return Verdict("unknown", "no problems in the log, no metrics yet")
    if run.vitals_at is not None and (run.at - run.vitals_at).total_seconds() > STALE_METRICS_S:
        return Verdict("checking", "checking health…")
    return Verdict("healthy", "healthy")
