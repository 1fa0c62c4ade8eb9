"""A dashboard that notes what it writes to the terminal."""

from __future__ import annotations

from typing import Any

from support.dashboard import Dashboard
from support.worlds import StubRunFeed, run
from tui.analysis.run.snapshot import RunSnapshot
from tui.screens.job.screen import JobScreen
from tui.settings.loading import validated
from tui.settings.model import Loaded

HEALTHY = run(findings=())


def settings(**tables: Any) -> Loaded:
    return Loaded(validated(tables))


class NotingDashboard(Dashboard):
    """Keeps what would have gone to the terminal."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.written: list[str] = []

    def write_to_terminal(self, sequence: str) -> None:
        if sequence:
            self.written.append(sequence)

    @property
    def titles(self) -> list[str]:
        return [one[4:-1] for one in self.written if one.startswith("\x1b]2;")]


def watched(first: RunSnapshot = HEALTHY, **tables: Any) -> NotingDashboard:
    """The job screen on a run that is told of by ``app.screen.post_message``."""
    feed = lambda job, **given: StubRunFeed(first, job, **given)  # noqa: E731
    return NotingDashboard(lambda: JobScreen(first.job, feed), settings=settings(**tables))
