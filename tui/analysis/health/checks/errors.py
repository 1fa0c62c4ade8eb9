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
    usual_s = run.progress.step_interval_s or 0.0
    # A run also survives an error if another count, such as that of a download, reaches a new maximum.
    survived_s = max(run.survived_s, run.progress.advanced_at or 0.0)
    if usual_s and run.training_since is not None:
        # Not the longest time without a line, which may have ended with this error.
        pause_s = LONGER * (run.progress.step_pause_s or 0.0)
        patience_s = 10.0 + min(10 * MINUTE_S, max(MINUTE_S, 5 * usual_s, pause_s))
    else:
        patience_s = 5 * MINUTE_S
        # Before the first step, later log lines are enough, unless the run had to restart, or the error has
        # repeated for minutes: then it may stop the run each time.
        similar = [] if errors.newest is None else _times_of_similar(run, errors.newest)
        if similar and similar[-1] >= run.attempt_since and similar[-1] - similar[0] < 5 * MINUTE_S:
            survived_s = max(survived_s, run.last_line_s - MINUTE_S)
    # Report an error that the run has not survived only after a while: it may still survive it.
    decided_s = max(run.now_s - patience_s, run.attempt_since)
    recent = [
        error
        for error in errors.kept
        if run.now_s - error.at_s <= limits.errors_within_s and error.at_s <= max(survived_s, decided_s)
    ]
    if not recent or run.has_stalled:
        return
    # Steps show that the code continues, but not that the GPUs are sound: report the driver's errors first.
    gpu_errors = [error for error in recent if DRIVER_REPORT in error.text]
    recent = gpu_errors or recent
    quote = sanitize(recent[0].text)
    ago = duration(max(0.0, run.now_s - recent[0].at_s))
    text, short = f"an error in the log, {ago} ago: {quote}", _LEVEL.sub("", quote)
    if recent[0] == errors.first and run.run.log_read:
        count, when = counted(errors.count, "error"), f", first {ago} ago"
    else:
        is_all = run.run.log_read and len(recent) < KEPT_ERRORS
        prefix = "" if is_all else "at least "
        count, when = f"{prefix}{counted(len(recent), 'error')}", f" in the last {ago}"
    if len(recent) > 1:
        text, short = f"{count} in the log{when}: {quote}", f"{count}: {short}"
    severity: Severity = "warning"
    survived = {without_digits(each.text) for each in errors.kept if each.at_s < survived_s}
    if recent[-1].at_s < survived_s:
        is_slower = _slows_down_run(run, recent[-1])
        slower = ", but slower" if is_slower else ""
        severity = "warning" if gpu_errors or is_slower else "info"
        text = f"{text} (training continued{slower})"
    elif not gpu_errors and all(without_digits(each.text) in survived for each in recent):
        severity, text = "info", f"{text} (survived before)"
    yield run.finding(severity, text, short=short, since_s=recent[0].at_s)


def _times_of_similar(run: Watched, error: ErrorLine) -> list[float]:
    """Return the times of the errors whose text differs from this error's only in numbers."""
    text = without_digits(error.text)
    return [each.at_s for each in run.progress.errors.kept if without_digits(each.text) == text]


def _slows_down_run(run: Watched, newest: ErrorLine) -> bool:
    """Return True if an error repeats, and the run has been slower since the first time.

    A process that fails and is restarted, such as an inference engine, makes the others wait for it.
    """
    similar = _times_of_similar(run, newest)
    return len(similar) > 3 and LONGER * (1 - (run.lost_speed(similar[0]) or 0.0)) < 1


CHECK = Check(
    FindingKind("errors", 150, "errors{since}", states_duration=True, quotes_log=True),
    "Errors in the log",
    "warning",
    Limits,
    find,
    needs="log lines that report a crash or an error, by the server's level or by their words; the first is"
    " quoted.",
    excused="errors that the run may still survive, and those of a stalled run, which quotes the first."
    " Reported as info: those after which it made steps, another count got further than ever, or, before the"
    " first step, the log continued; and those that differ from such errors only in numbers; but not what the"
    " driver reports of a GPU (Xid), nor an error that repeats while the run has been slower since.",
    ends="`errors_within_s` after the newest",
    costs="unknown",
    examples=(
        Example(
            "two errors",
            "2 errors: no server",
            others=((6000, "ERROR: no server"), (6600, "ValueError: again")),
        ),
        Example(
            "an error that ends a long silence",
            "RuntimeError: watchdog",
            minutes=100,
            stops_s=5400,
            others=((5890, "RuntimeError: watchdog"),),
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
