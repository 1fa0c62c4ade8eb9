"""The explanation of a finding, for a screen, a terminal or Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from api_client.models.logs import NS_PER_S
from tui.analysis.run.finding import HealthFinding
from tui.analysis.series import Series
from tui.text.names import shortened
from tui.text.sanitize import markdown_code, sanitize, sanitize_multiline
from tui.text.times import DATE_AND_TIME, MONTH_DAY_AND_TIME

_MAX_MARKDOWN_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Clue:
    """A log line, or the newest of ``count`` lines that differ only in their numbers.

    ``text`` is not sanitized, ``at_ns`` is the line's time (epoch ns), ``node`` the replica that logged it.
    ``is_warning`` is True for warnings and errors.
    """

    text: str
    at_ns: int
    node: str | None = None
    count: int = 1
    is_warning: bool = False

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp(self.at_ns / NS_PER_S, UTC)

    @property
    def clock(self) -> str:
        """The day and time in UTC."""
        return f"{self.at:{MONTH_DAY_AND_TIME}}"


@dataclass(frozen=True, slots=True)
class Section:
    """Log lines under a title, in display order."""

    title: str
    clues: tuple[Clue, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """Series to be drawn in one chart; ``unit`` is ``%``, ``B``, ``cores`` or empty."""

    title: str
    unit: str
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A ``problem``, its likely cause, and the evidence.

    ``finding`` is None if the problem is the failure of a job. ``answer`` is a sentence about the cause;
    empty if the cause is unknown. ``facts`` are short statements. Texts come from the server and the log:
    sanitize them before display.
    """

    problem: str
    finding: HealthFinding | None = None
    answer: str = ""
    facts: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    figures: tuple[Figure, ...] = ()
    advice: str = ""
    """What to do about the run, such as stopping it; empty if unclear."""


def since_words(finding: HealthFinding | None) -> str:
    """Return the start of a finding as `` (since 2026-11-29 03:12:04 UTC)``; empty if unknown."""
    if finding is None or finding.since is None:
        return ""
    return f" (since {finding.since.astimezone(UTC):{DATE_AND_TIME}} UTC)"


def markdown(explanation: Explanation, title: str) -> str:
    """Return the explanation as Markdown, with times in UTC."""
    return "\n".join(_markdown_lines(explanation, title)) + "\n"


def _markdown_lines(explanation: Explanation, title: str) -> Iterator[str]:
    finding = explanation.finding
    yield f"### {markdown_code(title)}: {markdown_code(explanation.problem)}{since_words(finding)}"
    if explanation.answer:
        yield f"\n**{markdown_code(explanation.answer)}**"
    if explanation.advice:
        yield f"\n→ {explanation.advice}"
    if explanation.facts:
        yield ""
        yield from (f"- {markdown_code(fact)}" for fact in explanation.facts)
    for section in explanation.sections:
        yield f"\n{markdown_code(section.title)} (times in UTC):\n\n```"
        for clue in section.clues:
            # A code fence inside a line would end the block.
            text = shortened(sanitize_multiline(clue.text), _MAX_MARKDOWN_CHARACTERS).replace("```", "'''")
            count_text = f"{clue.count}× " if clue.count > 1 else ""
            yield f"{clue.clock} {sanitize(clue.node or '')} {count_text}{text}".replace("  ", " ")
        yield "```"
