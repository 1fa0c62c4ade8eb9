"""Give lines of 16 KiB to what reads log text: ``python tests/hostile/long_lines.py``.

Each has many times the CPU time that it needs for a line, however busy the machine is; what reads a line
again for each of its characters needs more. The kernel kills the process in the middle of the first slow
one, which is the last that it printed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from textual.geometry import Size

from api_client.models.logs import NS_PER_S, LogLine
from api_client.recordings.scrub import Scrubber
from api_client.submission.command_rules import simple_commands
from support.expressions import CHARACTERS, CPU_S, limit_cpu
from support.worlds import ONE_O_CLOCK, job
from tui.analysis.fleet.snapshot import short_reason
from tui.analysis.logs.errors import ErrorLines, TracebackReader, error_text
from tui.analysis.logs.levels import detected_level, level_of
from tui.analysis.logs.pattern import LogPattern
from tui.analysis.logs.repeats import banner_keys, progress_bar
from tui.analysis.logs.structured import pretty_rows
from tui.analysis.progress.announcements import MovingCounts, announced
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.lines.reader import Reader
from tui.analysis.run.checkpoints import step_of
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.why.explain import exit_code, explain, failure_of, late_ranks
from tui.analysis.why.lines import grouped, last_lines, line_pattern, only_on, warnings
from tui.text.names import natural_key
from tui.text.sanitize import (
    cell_width,
    last_carriage_segment,
    sanitize_multiline,
    sanitize_whole,
    strip_ansi,
)
from tui.widgets.log_view.gutter import NodeLabels
from tui.widgets.log_view.renderer import styled_spans
from tui.widgets.status_line import StatusLine
from tui.widgets.text_panel import WrappedText, break_line

SCREEN = Size(80, 24)
WORDS = """store store_ Rendezvous 0 0, 0. 0/ 0:00 a a. a.b: A [ [a] ( { " ' \\ / // = - _ ━ %| 0%| | ä
ERROR error Error: Traceback( exitcode exit_code= loss loss= step step= train_ test_ epoch checkpoint- 0/0[0<a
hf_ sk- eyJ eyJ. token= token="x "token":" ://a: authorization: cookie: my_secret=
rank Watchdog seq-len overflow saving running http://
\x1b \x1b[ \x1b] \x9b \x9d \x90a \x1b[0m \r \r0%| \v \t"""
PHRASES = (
    " ",
    "\n",
    " ERROR  ",
    "step 1 loss ",
    "Epoch 0/0 ",
    "-----BEGIN PRIVATE KEY-----",
    "login a password ",
)
LINES = [
    word * (CHARACTERS // len(word)) for word in [*WORDS.replace("\n", " ").split(" "), *PHRASES] if word
]


def _lines(message: str) -> list[LogLine]:
    texts = [("node-0", message), *(("node-1", head + message) for head in ("", "ERROR ", "Killed "))]
    return [LogLine((place + 1) * NS_PER_S, text, name, None) for place, (name, text) in enumerate(texts)]


def _fold(message: str) -> object:
    fold = ProgressFold()
    fold.add(_lines(message))
    return fold.snapshot()


def _explain(message: str) -> object:
    failed = job("broken", "FAILED", hours_ago=5, took_hours=1, error_message=message)
    return explain(RunSnapshot(failed, ONE_O_CLOCK, ONE_O_CLOCK), None, _lines(message))


def _break_line(text: str) -> object:
    shown = sanitize_whole(text)
    return break_line(shown, 80, 2) if cell_width(shown) > 80 else None


class WideStatusLine(StatusLine):
    """A status line on a screen; elsewhere its rows have one character each."""

    size = SCREEN


ENTRANCES: dict[str, Callable[[str], Any]] = {
    "explain": _explain,
    "failure_of": lambda text: failure_of(_lines(text), None, None, text),
    "late_ranks": lambda text: late_ranks(_lines(text)),
    "only_on": lambda text: only_on(_lines(text), "node-0", limit=8),
    "warnings": lambda text: warnings(_lines(text), limit=8),
    "last_lines": lambda text: last_lines(_lines(text), limit=8),
    "grouped": lambda text: grouped(_lines(text)),
    "shape": line_pattern,
    "exit_code": exit_code,
    "short_reason": short_reason,
    "error_text": lambda text: error_text(text, "ERROR"),
    "ErrorLines": lambda text: ErrorLines().take(0, text, "ERROR", None),
    "TracebackReader": lambda text: [TracebackReader().read(one) for one in ("Traceback (most recent", text)],
    "level_of": level_of,
    "detected_level": detected_level,
    "progress_bar": progress_bar,
    "banner_keys": lambda text: banner_keys([text, text]),
    "pretty_rows": lambda text: [pretty_rows(one) for one in (text, f"{text}}}")],
    "LogPattern": lambda text: [LogPattern("(a+)+b|loss", regex).matcher()(text) for regex in (True, False)],
    "Reader": lambda text: Reader().read(text),
    "ProgressFold": _fold,
    "announcements": lambda text: [
        announced(text),
        MovingCounts().read(0.0, "", text),
    ],
    "names": lambda text: [step_of(text), NodeLabels().get(text), natural_key(text)],
    "sanitize": lambda text: [
        sanitize_whole(text),
        strip_ansi(text),
        last_carriage_segment(text),
        sanitize_multiline(text),
    ],
    "styled_spans": styled_spans,
    "simple_commands": lambda text: [list(simple_commands(quote + text)) for quote in ("", "'")],
    "break_line": _break_line,
    "WrappedText": lambda text: WrappedText(sanitize_whole(text)).get_content_height(SCREEN, SCREEN, 80),
    "StatusLine": lambda text: WideStatusLine().set_facts([[(sanitize_whole(text), "plain")]]),
    "scrub": Scrubber(["own-key-0123"], ["my_secret"]),
}


def main() -> None:
    for name, read in ENTRANCES.items():
        for line in LINES:
            sys.stdout.write(f"{name}: {line[:60]!r}\n")
            sys.stdout.flush()
            limit_cpu(CPU_S)
            read(line)
    sys.stdout.write("all are fast\n")


if __name__ == "__main__":
    main()
