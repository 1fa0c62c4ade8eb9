"""One line over a log that says what is shown of it, and how: what differs from the default comes first."""

from __future__ import annotations

from dataclasses import dataclass

from tui.insight.logs.pattern import LogPattern
from tui.insight.text import inert
from tui.insight.units import count, percent
from tui.screens.job.log_choice import LogChoice, pattern_words
from tui.widgets.line import FactLine
from tui.widgets.log_view.messages import MatchChanged
from tui.widgets.log_view.view import LogView
from tui.widgets.tones import Span

TIME_WORDS = {"utc": "UTC", "relative": "ages", "elapsed": "since start", "off": "no times"}


@dataclass(frozen=True, slots=True)
class LogStanding:
    """What the bar tells."""

    choice: LogChoice
    columns: tuple[str, ...]
    following: bool
    unseen: int
    ended: bool
    read_part: float | None
    lines: int
    shown: int
    pattern: LogPattern | None
    match: MatchChanged | None
    view: LogView
    day: str
    dropped: int


class LogBar(FactLine):
    """The bar: what hides lines comes first, with how many of how many are shown, and is never left out."""

    DEFAULT_CSS = """
    LogBar { padding: 0 1; max-height: 40vh; background: $surface; color: $text-muted; }
    """

    def show(self, standing: LogStanding) -> None:
        """Say this."""
        facts = [_whose(standing), _follows(standing)]
        if standing.pattern is not None:
            facts.append(match_words(standing.pattern, standing.match))
        shown, lines = standing.shown, standing.lines
        restrictions = standing.choice.words()
        facts += restrictions
        if restrictions or standing.choice.node is not None:
            facts.append([(f"{count(shown)} of {count(lines)}", "plain")])
        essential = len(facts)
        if standing.dropped:
            facts.append([(f"{count(standing.dropped)} oldest lines dropped", "warn")])
        facts += _switched(standing.view)
        if standing.read_part is not None and standing.read_part < 1:
            facts.append([(f"reading older lines {percent(standing.read_part)}", "muted")])
        if not restrictions and standing.choice.node is None:
            facts.append([(f"{count(lines)} lines", "muted")])
        if standing.day:
            facts.append([(standing.day, "plain")])
        self.set_facts(facts, essential)


def _whose(standing: LogStanding) -> list[Span]:
    if standing.columns:
        names = [inert(name) for name in standing.columns]
        return [("Log ", "title"), (f"{names[0]} … {names[-1]}", "plain")]
    node = standing.choice.node
    return [("Log ", "title"), (inert(node) if node else "all nodes", "plain")]


def _follows(standing: LogStanding) -> list[Span]:
    if standing.ended and (standing.following or not standing.unseen):
        is_reading = standing.read_part is not None and standing.read_part < 1
        return [("job ended" if is_reading else "complete", "muted")]
    if standing.following:
        return [("following", "good")]
    words: list[Span] = [("paused", "warn")]
    if standing.unseen:
        words.append((f" ↓ {count(standing.unseen)} new", "accent"))
    return words


def match_words(pattern: LogPattern, match: MatchChanged | None) -> list[Span]:
    """What is looked for, and which of how many it is."""
    words: list[Span] = [(f"/{pattern_words(pattern).strip('/')}", "accent")]
    if match is None:
        return words
    if match.entry is None:
        if match.total_is_final:
            words.append((": not found", "warn"))
        return words
    more = "" if match.total_is_final else "+"
    words.append((f" {count(match.position)} of {count(match.total)}{more}", "plain"))
    if match.wrapped:
        words.append((" wrapped around", "warn"))
    return words


def _switched(view: LogView) -> list[list[Span]]:
    """The ways of the view that differ from the default."""
    facts: list[list[Span]] = []
    if view.time_mode in TIME_WORDS:
        facts.append([(TIME_WORDS[view.time_mode], "accent")])
    if view.wrap:
        facts.append([("wrapped", "accent")])
    open_kinds = [
        name
        for name, folded in (
            ("tracebacks", view.fold_tracebacks),
            ("bars", view.collapse_progress),
            ("repeats", view.fold_repeats),
        )
        if not folded
    ]
    if open_kinds:
        facts.append([("all ", "muted"), (", ".join(open_kinds), "accent")])
    return facts
