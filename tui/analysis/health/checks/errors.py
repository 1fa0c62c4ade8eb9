"""Errors in the log: their number, and the text of the first."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui.analysis.health.check import (
    LONGER,
    MINUTE_S,
    Check,
    Example,
    FindingKind,
    Findings,
    Severity,
    Watched,
    limit,
)
from tui.analysis.logs.error_tally import DRIVER_REPORT, KEPT_ERRORS, ErrorLine
from tui.analysis.logs.excerpt import without_digits
from tui.text.sanitize import sanitize
from tui.text.units import counted, duration

_LEVEL = re.compile(r"^(?:\W{0,8}+(?:ERROR|CRITICAL|FATAL|Error)\b)++\W{0,4}(?=\S)")


@dataclass(frozen=True, slots=True)
class Limits:
    errors_within_s: float = limit(1800.0, "How long errors are reported after the newest one.")


def find(run: Watched, limits: Limits) -> Findings:
    errors = run.progress.errors
    last_step_s, usual_s = run.last_step_s or 0.0, run.progress.step_interval_s or 0.0
    # A count that gets further than ever, of a download or a preparation, shows as much as a step.
    survived_s = max(last_step_s - max(10.0, usual_s), run.progress.advanced_at or 0.0)
    if usual_s and run.training_since is not None:
        patience_s = 10.0 + min(10 * MINUTE_S, max(MINUTE_S, 5 * usual_s, run.survived_pause_s))
    else:
        patience_s = 5 * MINUTE_S
        # Before the first step, lines that go on show as much, unless the run had to start again.
        alike = [] if errors.newest is None else _alike(run, errors.newest)
        # What comes again and again stops it each time.
        if alike and alike[-1] >= run.attempt_since and alike[-1] - alike[0] < 5 * MINUTE_S:
            survived_s = max(survived_s, run.last_line_s - MINUTE_S)
    # What comes next may not have had the time since.
    decided_s = max(run.now_s - patience_s, run.attempt_since)
    recent = [
        error
        for error in errors.kept
        if run.now_s - error.at_s <= limits.errors_within_s and error.at_s <= max(survived_s, decided_s)
    ]
    if not recent or run.has_stalled:
        return
    # Steps show that the code goes on, but not that a GPU is well.
    of_gpus = [error for error in recent if DRIVER_REPORT in error.text]
    recent = of_gpus or recent
    quote = sanitize(recent[0].text)
    ago = duration(max(0.0, run.now_s - recent[0].at_s))
    text, short = f"an error in the log, {ago} ago: {quote}", _LEVEL.sub("", quote)
    if recent[0] == errors.first and run.run.log_read:
        count, when = counted(errors.count, "error"), f", first {ago} ago"
    else:
        is_all = run.run.log_read and len(recent) < KEPT_ERRORS
        least = "" if is_all else "at least "
        count, when = f"{least}{counted(len(recent), 'error')}", f" in the last {ago}"
    if len(recent) > 1:
        text, short = f"{count} in the log{when}: {quote}", f"{count}: {short}"
    severity: Severity = "warning"
    survived = {without_digits(each.text) for each in errors.kept if each.at_s < survived_s}
    if recent[-1].at_s < survived_s:
        is_slower = _slows(run, recent[-1])
        how = ", but slower" if is_slower else ""
        severity = "warning" if of_gpus or is_slower else "info"
        text = f"{text} (training continued{how})"
    elif not of_gpus and all(without_digits(each.text) in survived for each in recent):
        severity, text = "info", f"{text} (survived before)"
    yield run.finding(severity, text, short=short, since_s=recent[0].at_s)


def _alike(run: Watched, error: ErrorLine) -> list[float]:
    """Return the times of the errors that differ from one only in numbers."""
    text = without_digits(error.text)
    return [each.at_s for each in run.progress.errors.kept if without_digits(each.text) == text]


def _slows(run: Watched, newest: ErrorLine) -> bool:
    """Return True if an error comes again and again, and the run has been slower since it came first.

    What fails and is started again, such as an inference engine, costs what the others wait for it.
    """
    alike = _alike(run, newest)
    return len(alike) > 3 and LONGER * (1 - (run.lost_speed(alike[0]) or 0.0)) < 1


CHECK = Check(
    FindingKind("errors", 150, "errors{since}", states_duration=True, quotes_log=True),
    "Errors in the log",
    "warning",
    Limits,
    find,
    needs="log lines that report a crash or an error, by the server's level or by their words; the first is"
    " quoted.",
    excused="errors that the run may still survive, and those of a stalled run, which quotes the first. To a"
    " remark (info): those after which it made steps, another count got further than ever, or, before the"
    " first step, the log went on without them; and those that differ from such ones only in numbers; but not"
    " what the driver reports of a GPU (Xid), nor what comes again and again while the run has been slower"
    " since it came first.",
    ends="`errors_within_s` after the newest",
    costs="unknown",
    examples=(
        Example(
            "two errors",
            "2 errors: no server",
            others=((6000, "ERROR: no server"), (6600, "ValueError: again")),
        ),
        Example(
            "a GPU whose driver reports errors",
            "2 errors: [6000.1] NVRM: Xid",
            others=tuple((at, f"[{at}.1] NVRM: Xid (PCI:0000:9b:00): 92, pid=71") for at in (6000, 6600)),
        ),
        Example(
            "what TensorFlow always prints, and XLA while it compiles",
            stops_s=0,
            others=(
                (600, "E0302 08:02:11.120101 cuda_dnn.cc:8310] Unable to register cuDNN factory"),
                (700, "E0302 08:03:51.586937    4000 slow_operation_alarm.cc:73] ****************"),
                (701, "ERROR: [Compiling module jit_step for CUDA] Very slow compile?"),
            ),
        ),
    ),
)
