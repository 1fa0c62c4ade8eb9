"""What differs between two jobs, as lines for a terminal, a screen or Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from api_client.models import TrainingJob
from tui.analysis.code import CodeDifferences, Difference
from tui.analysis.comparison import ComparedRun, comparison_rows
from tui.text.sanitize import sanitize
from tui.text.units import counted

_MACHINE = frozenset({"project", "instance", "gpu_type", "nodes", "gpus", "availability"})
"""The properties of a job itself, not of how it went."""
TONES = {"+": "good", "-": "bad", "@": "muted"}
"""Tones of lines by their first character."""


@dataclass(frozen=True, slots=True)
class JobDifferences:
    """What differs from one job to another; ``not_compared`` says why their code was not."""

    before: TrainingJob
    after: TrainingJob
    code: CodeDifferences = field(default_factory=CodeDifferences)
    not_compared: str = ""

    @property
    def job(self) -> list[Difference]:
        """What differs in project and hardware."""
        rows = comparison_rows([ComparedRun(self.before), ComparedRun(self.after)])
        return [Difference(row.title, *row.shown) for row in rows if row.id in _MACHINE and row.differs]

    @property
    def title(self) -> str:
        """Both jobs, sanitized."""
        return " → ".join(
            sanitize(f"{job.name} ({job.id})" if job.name else job.id) for job in (self.before, self.after)
        )

    @property
    def none_words(self) -> str:
        """Say that nothing differs; empty if something does."""
        if self.job or self.code != CodeDifferences():
            return ""
        return "the machines are the same" if self.not_compared else "no differences"

    def lines(self) -> Iterator[tuple[str, str | None]]:
        """Yield sanitized lines and their tones."""
        parts = (
            ("job", self.job),
            ("config", self.code.settings),
            ("environment (names only)", self.code.environment),
        )
        for title, differences in parts:
            if differences:
                yield from (("", None), (title, "muted"))
                yield from ((words := _words(each), TONES.get(words[0])) for each in differences)
        for file in self.code.files:
            more = f" ({counted(file.more, 'line')} more)" if file.more else ""
            yield from (("", None), (f"{file.path} {file.change}{more}", "strong"))
            yield from ((line, TONES.get(line[:1])) for line in file.lines)


def _words(difference: Difference) -> str:
    name, was, now = difference.name, difference.before, difference.after
    if was is not None and now is not None:
        return f"  {name}: {was} → {now}"
    sign, value = ("+", now) if was is None else ("-", was)
    return f"{sign} {name}" + (f" = {value}" if value != "set" else "")
