"""Recognize lines between steps that announce a restart, slow work besides steps, or a setting."""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Sequence
from typing import Literal, NamedTuple

from tui.analysis.bounded import Bounded
from tui.analysis.logs.excerpt import excerpt
from tui.text.sanitize import last_carriage_segment

Kind = Literal[
    "restart", "resize", "evaluation", "other", "loading", "skipped step", "input length", "save interval"
]  # fmt: skip

MAX_CHARACTERS = 1024

# These match lowercase text. A lookahead for the first letter makes the search several times faster.
_EXPRESSIONS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (
        "restart",
        re.compile(
            r"\brestarting (?:the )?(?:worker|process|training|trainer|job|run)\b"
            r"|\bworker group restarting\b|\bgroups? will be restarted\b|\b(?:training|job|run) restarted\b"
            r"|\b(?:restart_count|bt_retry_count)[\"']?\s?[=:]\s?[\"']?[1-9]"
            r"|\battempt (?:[2-9]|\d{2,3})(?: of |/)\d+ (?:of|to) (?:start|run|train)"
            r"|\brestarting from (?:checkpoint|step|iteration)\b"
        ),
    ),
    (
        "resize",
        re.compile(
            r"\bmembership chang|\bdetected \d{1,4} new nodes?\b|\bscal(?:ing|ed) (?:up|down|in|out)\b"
            r"|\b(?:scheduled|planned) (?:node )?(?:restart|rotation|replacement|maintenance)\b"
        ),
    ),
    (
        "evaluation",
        re.compile(
            r"\*\*\* running (?:evaluation|prediction|validation)\b"
            r"|(?=[rsbepdl])\b(?:running|start(?:ing|s|ed)?|begin(?:ning)?|enter(?:ing)?|perform(?:ing)?|doing"
            r"|launching) (?:[\w-]+ ){0,3}?(?:evaluations?|validations?|evals?|inference)\b"
            r"|\bstarted: 'eval"
            r"|^\W{0,8}(?:\[[^\]]{1,60}\]\W{0,3}){0,4}(?:evaluating|validating)\b"
            r"|(?=[ev])\b(?:evaluating|validating|evaluation|validation)\b"
            r"(?:[^%]{0,60}\d{1,3}%\||(?<=ing) (?:the |on |at |model|checkpoint|epoch|step|policy))"
        ),
    ),
    (
        "other",
        re.compile(
            r"(?=[cupmg])\b(?:compiling|capturing (?:the )?(?:cuda )?graphs?|uploading|pushing\b.{1,60}\bhub"
            r"|consolidating|merging (?:lora|weights|adapter|model|shard)"
            r"|generating (?:samples?|completions?|rollouts?|responses?|images?))\b"
        ),
    ),
    ("loading", re.compile(r"\b(?:(?:down|pre|re)?loading|initiali[sz]ing|tokenizing)\b")),
    (
        "skipped step",
        re.compile(
            r"\boverflow\b.{0,60}\bskipping (?:the )?step|\bskipping (?:the )?step\b.{0,60}\boverflow"
        ),
    ),
    ("input length", re.compile(r"\bseq(?:uence)?[_. -]{0,2}len(?:gth)?\W{1,4}(\d{2,7})\b")),
    (
        "save interval",
        re.compile(
            r"(?<![\w-])(?:save|saving|checkpoint|ckpt)[\w ]{0,24}?(?:steps|interval|every|freq(?:uency)?)"
            r"[\w ]{0,12}[\"']?\s?[:=\s]\s?(\d{2,7})\b(?!\s?(?:s\b|sec|min|h\b|hour|epoch|[%.]))"
        ),
    ),
)
_NOT_A_START = re.compile(
    r"(?=[esdfctanwo])\b(?:every|skip\w*|disabled|finished|done|completed?|took|ended|after each|will be"
    r"|strategy|not|no|without|failed|error)\b|(?:evaluation|eval)_strategy|(?<!pid)(?<!ip)=\w"
)


class Announcement(NamedTuple):
    """What a line announces; ``value`` is the input length (tokens) or the save interval (steps)."""

    kind: Kind
    value: int = 0


def announced(message: str) -> Announcement | None:
    """Return what a line announces; None for other lines. ``lines.saves`` recognizes saves."""
    head = message[:MAX_CHARACTERS].lower()
    for kind, expression in _EXPRESSIONS:
        match = expression.search(head)
        if match is None:
            continue
        if kind in ("evaluation", "other", "loading"):
            clause = head[max(head.rfind(mark, 0, match.start()) for mark in (", ", "; ", "! ")) + 1 :]
            if _NOT_A_START.search(clause):
                continue
        return Announcement(kind, int(match[1]) if expression.groups else 0)
    return None


_COUNT = re.compile(
    r"(\d[\d,]{0,23}+(?:\.\d{1,12})?+)\s?[kMGT]?i?B?\s?(?:/|of)\s?(\d[\d,]{0,23}+(?:\.\d{1,12})?+)"
    r"(?![\w/:-]{0,40}\d[:-]|(?<=\b\d\d/\d\d)(?:/\d{2,4})? \d\d:\d\d:)"  # dates are not counts
)
_DIGITS = re.compile(r"[\d.%|█▏▎▍▌▋▊▉ ]+")


class MovingCounts:
    """Counts such as ``412/5000`` of work other than steps, and the time at which one last increased."""

    __slots__ = ("_counts", "_highest")

    def __init__(self) -> None:
        self._counts: Bounded[tuple[str, str, float], list[tuple[float, float]]] = Bounded(256, list)
        self._highest: Bounded[tuple[str, str, float], tuple[float, float]] = Bounded(256)
        """The highest count, and the negative time at which it was first reached."""

    def read(self, time: float, source: str, message: str) -> bool:
        """Read a line, in any order; return True if it has a count."""
        if "/" not in message and " of " not in message:
            return False
        message = last_carriage_segment(excerpt(message))[:MAX_CHARACTERS]
        match = _COUNT.search(message)
        # A count of attempts is not progress.
        if match is not None and "attempt" not in message[: match.start()].lower():
            done, total = (float(number.replace(",", "")) for number in match.groups())
            self.add(time, source, _DIGITS.sub(" ", message[: match.start()]), done, total)
        return match is not None

    def add(self, time: float, source: str, name: str, done: float, total: float) -> None:
        """Record a count, in any order."""
        key = (source, name, total)
        insort(self._counts[key], (time, done))
        del self._counts[key][:-16]
        self._highest[key] = max((done, -time), self._highest.get(key, (done, -time)))

    @property
    def moved_at(self) -> float | None:
        """Time of the newest count after two rises in a row; a number of workers may rise and fall."""
        return max(filter(None, map(_moved_at, self._counts.values())), default=None)

    @property
    def advanced_at(self) -> float | None:
        """Time at which a moving count last reached a new maximum; a start that fails again does not."""
        times = (-since for key, (_, since) in self._highest.items() if _moved_at(self._counts[key]))
        return max(times, default=None)


def _moved_at(counts: Sequence[tuple[float, float]]) -> float | None:
    times = (
        third[0]
        for first, second, third in zip(counts, counts[1:], counts[2:], strict=False)
        if first[1] < second[1] < third[1]
    )
    return max(times, default=None)
