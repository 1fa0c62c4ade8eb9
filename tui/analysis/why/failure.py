"""Find the first error of a failed run, and tell it apart from the errors that follow from it.

When a rank dies, the others report timeouts and closed connections, and the launcher reports every process
that it stops. The cause is the first error that is none of these, and after which the run made no more steps
and tried nothing again.
"""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from api_client.models.logs import NS_PER_S, LogLine
from tui.analysis.logs.errors import SAME_ERROR_NS, TEXT_CHARACTERS, TracebackReader, error_text
from tui.analysis.logs.excerpt import excerpt
from tui.analysis.why.explanation import Clue
from tui.analysis.why.lines import shape, shown
from tui.text.names import shortened

_CONSEQUENCE = re.compile(
    r"collective operation timeout|Watchdog caught|ProcessGroup(?:NCCL|Gloo)|DistBackendError"
    r"|NCCL (?:communicator was aborted|operations have failed)|ncclRemoteError|remote process exited"
    r"|ncclSystemError|ncclInternalError|Connection (?:reset|closed|refused)|Broken pipe"
    r"|[Ss]ocket (?:closed|Timeout)"
    r"|recvValue failed|recvBytes|sendBytes|TCPStore|Rendezvous\w{0,40}Error|store\w{0,40} (?:closed|timeout)"
    r"|ChildFailedError|torch\.?distributed|elastic|closing signal|SignalException|SIGTERM|signal 15"
    r"|exit ?code|exited with|exit status|stopping the others|Killing subprocess|terminated by"
    r"|srun: error|mpirun|The actor (?:died|is dead)|ActorDiedError|WorkerCrashedError|RayActorError"
    r"|exits with return code|Fatal Python error: Aborted|Root Cause|Traceback \(most recent call last\):$",
)
"""Errors that follow when another process has died."""

_RETRY = re.compile(r"\bretry(?:ing)?\b|\bwill be retried\b", re.IGNORECASE)
"""Errors after which the program tries again; the cause is the one after which it gave up."""

_DEATHS = re.compile(
    r"^\s*(?:[\w./-]+: line \d+: +\d+ )?(?:Killed|Segmentation fault|Bus error|Aborted)\b"
    r"|Out of memory: Killed process|oom-kill|oom_reaper|exitcode *: *-?\d+|srun: error",
    re.IGNORECASE,
)
"""Deaths of a process that are reported without a level."""

_EXIT = re.compile(
    r"\b(?:exit(?:ed)?(?: with)?[ _-]?|return )(?:code|status)(?: of| is)?\s{0,4}[:=]?\s*+\(?(-?\d{1,3})\b",
    re.IGNORECASE,
)
_TRACE_LINES = 20
_FOLLOWING = 8
_SLACK_S = 20.0
_SHELL_SIGNAL_BASE = 128


@dataclass(frozen=True, slots=True)
class RunFailure:
    """The first error of a failed run (None: not found), its lines, and the errors that followed."""

    cause: Clue | None = None
    trace: tuple[Clue, ...] = ()
    following: tuple[Clue, ...] = ()
    exit_code: int | None = None


def failure_of(
    lines: Sequence[LogLine], last_step_ns: int | None, step_interval_s: float | None, message: str
) -> RunFailure:
    """Return the failure in the last lines of a run, in time order; ``message`` is the platform's."""
    slack_ns = int((_SLACK_S + (step_interval_s or 0.0)) * NS_PER_S)
    since = 0 if last_step_ns is None else last_step_ns - slack_ns
    errors = [line for line in lines if line.timestamp_ns >= since and _is_error(line)]
    causes = [line for line in errors if not _CONSEQUENCE.search(_error(line))]
    code = exit_code(message)
    if code is None:
        code = next((parsed for line in errors if (parsed := exit_code(shown(line))) is not None), None)
    if not causes:
        return RunFailure(None, (), _following(errors, None), code)
    cause = next((line for line in causes if not _RETRY.search(_error(line))), causes[0])
    clue = Clue(_error(cause), cause.timestamp_ns, cause.replica, is_warning=True)
    trace = _trace(lines, cause)
    later = [line for line in errors if line not in trace and line.timestamp_ns >= cause.timestamp_ns]
    following = _following(later, cause)
    shown_trace = tuple(Clue(shown(line), line.timestamp_ns, line.replica) for line in trace)
    return RunFailure(clue, shown_trace, following, code)


def _is_error(line: LogLine) -> bool:
    return error_text(line.message, line.level) is not None or _DEATHS.search(shown(line)) is not None


def _error(line: LogLine) -> str:
    return error_text(line.message, line.level) or shortened(shown(line).strip(), TEXT_CHARACTERS)


def _trace(lines: Sequence[LogLine], cause: LogLine) -> list[LogLine]:
    """Return the error with the lines of its traceback, which may be interleaved with other ranks'."""
    reader = TracebackReader()
    parts: list[tuple[LogLine, str | None]] = []
    for line in lines:
        if line.replica == cause.replica and abs(line.timestamp_ns - cause.timestamp_ns) <= SAME_ERROR_NS:
            part = reader.read(shown(line))
            if part is not None or line is cause:
                parts.append((line, part.lane if part is not None else None))
    index, lane = next((index, lane) for index, (line, lane) in enumerate(parts) if line is cause)
    around = parts[max(0, index - _TRACE_LINES) : index + 1]
    return [line for line, its_lane in around if its_lane == lane]


def _following(errors: Sequence[LogLine], cause: LogLine | None) -> tuple[Clue, ...]:
    """Return the errors other than the cause: each once, with how many nodes or lines report it."""
    own = shape(_error(cause)) if cause is not None else ""
    clues = [Clue(_error(line), line.timestamp_ns, line.replica, is_warning=True) for line in errors]
    counts = Counter(shape(clue.text) for clue in clues)
    first = {shape(clue.text): clue for clue in reversed(clues)}
    return tuple(replace(first[key], count=often) for key, often in counts.items() if key != own)[:_FOLLOWING]


def exit_code(text: str) -> int | None:
    """Return the exit code that a message names; None for none and for 0."""
    match = _EXIT.search(excerpt(text))
    return (int(match[1]) or None) if match else None


def exit_words(code: int) -> str:
    """Return an exit code in words: shells add 128 to a signal, Python negates it."""
    number = -code if code < 0 else code - _SHELL_SIGNAL_BASE
    try:
        name = signal.Signals(number).name if number > 0 else ""
    except ValueError:
        name = ""
    return f"exit code {code} ({name})" if name else f"exit code {code}"
