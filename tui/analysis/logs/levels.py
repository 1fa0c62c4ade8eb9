"""The level of a log line: the level that the server reports, otherwise the level in the line itself.

A level is recognized where loggers write it: at the beginning, after times, ranks and other brackets, or
between separators (``2026-11-21 12:00:00,123 - trainer - ERROR - …``). A word within ordinary text
(``computing ERROR bars``) is not a level.
"""

from __future__ import annotations

import re
from typing import Literal

from tui.analysis.logs.error_tally import DRIVER_REPORT

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]

LEVELS: tuple[LogLevel, ...] = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
"""Levels by ascending severity. The API's published ``LogLevel`` has all but ``CRITICAL``."""

RANKS: dict[str, int] = {"": 1} | {level: rank for rank, level in enumerate(LEVELS)}
"""The severity of each level as a number; a line without a level ("") counts as ``INFO``."""

HEAD_CHARACTERS = 160
"""Loggers write the level within the first characters of a line."""

_LEVELS_BY_NAME: dict[str, LogLevel] = {
    **dict.fromkeys(("DEBUG", "TRACE", "VERBOSE", "D"), "DEBUG"),
    **dict.fromkeys(("INFO", "NOTICE", "SUCCESS", "I"), "INFO"),
    **dict.fromkeys(("WARNING", "WARN", "W"), "WARNING"),
    **dict.fromkeys(("ERROR", "ERR", "SEVERE", "E"), "ERROR"),
    **dict.fromkeys(("CRITICAL", "FATAL", "EMERG", "ALERT", "PANIC", "F"), "CRITICAL"),
}
_LEVEL_NAME = r"DEBUG|TRACE|INFO|NOTICE|SUCCESS|WARN(?:ING)?|ERROR|SEVERE|CRITICAL|FATAL"

# The text that may precede a level at the beginning of a line: times, brackets, processes. Each alternative
# is bounded and possessive, so no input makes the match slow.
_LINE_PREFIX = (
    r"(?:\s|[|*<>#-]"
    r"|\[[^\[\]]{1,48}+\]:?"  # [rank0]: [2026-11-21 12:00:00] [trainer]
    r"|\([^()]{1,48}+\)"  # (EngineCore_0 pid=123)
    r"|\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d:\d\d)?[\d.,:+Z]*+"
    r"|\d\d:\d\d:\d\d[\d.,]*+Z?"
    r"){0,12}+"
)
_LEVEL_AT_BEGINNING = re.compile(
    rf"{_LINE_PREFIX}\[?(?P<word>{_LEVEL_NAME}|(?:[Ee]rror|[Ff]atal|[Ww]arning)(?=: ))(?=[\]\s:|)>,]|$| - )"
)
# Google's logger and others in its format (absl, torch.distributed): I1121 12:00:00.123456; torch's own C++
# code writes [E ProcessGroupNCCL.cpp:828]
_GLOG_PATTERN = re.compile(
    r"(?:\[?rank\d+\]?: ?)?\[?(?P<word>[IWEFD])(?:(?:\d{3,4}|\d{8}) \d\d:\d\d:\d\d| [A-Za-z_]{1,60}+\.cpp:\d)"
)
_LEVEL_BETWEEN_SEPARATORS = re.compile(
    rf"(?: - | ?\| ?|\[|<|[\w.\]]:)(?P<word>{_LEVEL_NAME}) *(?: - |\||\]|>|:)"
    rf"|\[(?P<module>{_LEVEL_NAME})\|"  # transformers: [INFO|trainer.py:2128]
    r"|NCCL (?P<nccl>WARN|INFO)\b"
    r"|\blevel(?:name)?[\"']?\s?[=:]\s?[\"']?(?P<pair>[A-Za-z]{3,8})\b"
)
_PYTHON_ERROR_PATTERN = re.compile(
    # Ray adds the worker and the cause: (Trainer pid=7) RayTaskError(OutOfDiskError): …
    r"(?:\[rank\d+\]: ?|\([^()]{0,48}+(?<=\d)\) )?(?:[A-Za-z_][\w.]{0,120}+(?<=Error)"
    r"|[A-Za-z_][\w.]{0,120}+(?<=Exception)|KeyboardInterrupt|SystemExit)(?:\(\w{1,48}\))?(?:: |:?$)"
)
_PYTHON_WARNING_PATTERN = re.compile(r"[^\s:]{1,120}+:\d+: [A-Z]\w{0,40}Warning: ")
_APPENDED_TRACEBACK = "\nTraceback (most recent call last):"
"""The platform may append a captured traceback to the preceding message."""
_PREFIXES_WITHOUT_LEVEL = (
    "terminate called after",
    "Segmentation fault",
    "Aborted (core dumped)",
    "Bus error",
    "*** Aborted at",
    "*** SIG",
    "KeyboardInterrupt",
    "warning: ",
    "CUDA error:",
    "npm ERR!",
)


def level_of(message: str, server_level: str | None = None) -> LogLevel | Literal[""]:
    """Return the server's level if valid, else the level in the message; empty if it has none."""
    if server_level:
        level = _LEVELS_BY_NAME.get(server_level) or _LEVELS_BY_NAME.get(server_level.upper())
        if level:
            return level
    detected = detected_level(message)
    if "\n" in message and RANKS[detected] < RANKS["ERROR"] and _APPENDED_TRACEBACK in message:
        return "ERROR"
    return detected


def detected_level(message: str) -> LogLevel | Literal[""]:
    """Return the level in the message itself; empty for ordinary output.

    Fast for ordinary output: only a few substring searches in its first characters.
    """
    head = message[:HEAD_CHARACTERS] if len(message) > HEAD_CHARACTERS else message
    if "ERROR" in head or "WARN" in head or "INFO" in head or "DEBUG" in head:
        return _head_level(head)
    if "rror" in head or "raceback" in head or "xception" in head or "Warning" in head:
        return _python_level(head) or _head_level(head)
    if head[1:5].isdigit() or head[2:6].isdigit() or head[:1] == "[":
        glog = _GLOG_PATTERN.match(head)
        if glog is not None:
            return _LEVELS_BY_NAME[glog["word"]]
    if "FATAL" in head or "CRITICAL" in head or "atal" in head or "level" in head or "TRACE" in head:
        return _head_level(head)
    return _level_of_prefix(head)


def level_rank(message: str, server_level: str | None = None) -> int:
    return RANKS[level_of(message, server_level)]


def _head_level(head: str) -> LogLevel | Literal[""]:
    match = _LEVEL_AT_BEGINNING.match(head)
    if match is not None:
        return _LEVELS_BY_NAME[match["word"].upper()]
    separated = _LEVEL_BETWEEN_SEPARATORS.search(head)
    if separated is not None:
        name = separated["word"] or separated["module"] or separated["nccl"] or separated["pair"]
        return _LEVELS_BY_NAME.get(name.upper(), "")
    glog = _GLOG_PATTERN.match(head)
    if glog is not None:
        return _LEVELS_BY_NAME[glog["word"]]
    return _python_level(head) or _level_of_prefix(head)


def _python_level(head: str) -> LogLevel | Literal[""]:
    if "raceback" in head:
        start = head.find("Traceback (most recent call last)")
        if start >= 0 and (
            head[:start].endswith("Exception Group ") or not _SENTENCE_PATTERN.search(head, 0, start)
        ):
            return "ERROR"
    if head.startswith("Fatal Python error"):
        return "CRITICAL"
    if _PYTHON_ERROR_PATTERN.match(head):
        return "ERROR"
    return "WARNING" if _PYTHON_WARNING_PATTERN.match(head) else ""


# A traceback's heading may follow a rank or the tree of an exception group; after a sentence, it is quoted.
_SENTENCE_PATTERN = re.compile(r"[A-Za-z]{3} [A-Za-z]{2}")


def _level_of_prefix(head: str) -> LogLevel | Literal[""]:
    if not head.startswith(_PREFIXES_WITHOUT_LEVEL):
        return "ERROR" if DRIVER_REPORT in head else ""
    return "WARNING" if head.startswith("warning: ") else "ERROR"
