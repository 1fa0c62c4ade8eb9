"""What a newcomer is told, a line at a time, until it has been done or seen often enough.

They are about actions, whose keys are shown as they are at the moment.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tui.actions.action import Scope

MOST_TIMES_SHOWN = 4
"""After so many starts a hint is not shown again, done or not."""


@dataclass(frozen=True, slots=True)
class Hint:
    """``words`` follow the key of the action ``scope.id``."""

    scope: Scope
    id: str
    words: str

    @property
    def name(self) -> str:
        """The action's full id, by which it is remembered."""
        return f"{self.scope}.{self.id}"


HINTS: tuple[Hint, ...] = (
    Hint(Scope.HOME, "open_job", "opens the job under the cursor: its health, speed and cost"),
    Hint(Scope.HOME, "filter", "filters the jobs, as in: llama status:running age<2d"),
    Hint(Scope.HOME, "mark", "marks jobs, to compare, stop or delete several at once"),
    Hint(Scope.JOB, "show_logs", "shows the log over the whole screen; the first tab has all at a glance"),
    Hint(Scope.LOGS, "first_error", "goes to the first error of all nodes"),
    Hint(Scope.JOB, "deploy", "makes a model of a checkpoint, question by question"),
    Hint(Scope.APP, "help", "shows every key that works here"),
)
"""In the order in which they are shown."""


def next_hint(scopes: Collection[Scope], gone: Collection[str]) -> Hint | None:
    """The first that fits where one is and has not gone."""
    return next((hint for hint in HINTS if hint.scope in scopes and hint.name not in gone), None)
