"""What differs between two jobs, as lines for a terminal, a screen or Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from api_client.models import TrainingJob
from tui.analysis.code import FileDifference
from tui.analysis.comparison import ComparedRun, comparison_rows
from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec, counted

_MACHINE = frozenset({"project", "instance", "gpu_type", "nodes", "gpus", "availability"})
"""The properties of a job itself, not of how it went."""
TONES = {"+": "good", "-": "bad", "@": "muted"}
"""Tones of lines by their first character."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A value that differs. Sanitized."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class JobDifferences:
    """What differs from one job to another; ``not_compared`` says why their code was not."""

    before: TrainingJob
    after: TrainingJob
    files: tuple[FileDifference, ...] = ()
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
        if self.job or self.files:
            return ""
        return "the machines are the same" if self.not_compared else "no differences in hardware or code"

    def lines(self) -> Iterator[tuple[str, str | None]]:
        """Yield sanitized lines and their tones."""
        if self.job:
            yield from (("", None), ("job", "muted"))
        for difference in self.job:
            yield f"  {difference.name}: {difference.before} → {difference.after}", None
        for file in self.files:
            yield from (("", None), (_heading(file), "strong"))
            yield from ((line, TONES.get(line[:1])) for line in file.lines)


def _heading(file: FileDifference) -> str:
    name = f"{file.former_path} → {file.path}" if file.former_path else file.path
    words = f"{name} {file.change}"
    if file.lines:
        return f"{words} ({counted(file.more, 'line')} more)" if file.more else words
    if file.more:
        return f"{words}: {counted(file.more, 'line')} not shown"
    sizes = [bytes_iec(size) for size in (file.size_bytes_before, file.size_bytes_after) if size is not None]
    return words if file.change == "renamed" else f"{words}: {' → '.join(sizes)}"
