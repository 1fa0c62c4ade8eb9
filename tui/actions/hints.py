"""Tips for new users, shown one at a time until the action was used or the tip was seen often enough.

Each tip starts with the current key of its action.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tui.actions.action import Scope

MOST_TIMES_SHOWN = 4
"""Number of starts after which a hint is not shown again, used or not."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A tip: ``words`` follow the key of the action ``scope.id``."""

    scope: Scope
    id: str
    words: str

    @property
    def name(self) -> str:
        """The action's full id, which identifies the hint in memory."""
        return f"{self.scope}.{self.id}"


HINTS: tuple[Hint, ...] = (
    Hint(Scope.HOME, "open_job", "opens the selected job"),
    Hint(Scope.HOME, "filter", "filters, e.g. llama status:running age<2d"),
    Hint(Scope.HOME, "mark", "marks jobs to compare, stop or delete together"),
    Hint(Scope.JOB, "show_logs", "opens the log full screen; the first tab is the overview"),
    Hint(Scope.LOGS, "first_error", "jumps to the first error on any node"),
    Hint(Scope.JOB, "deploy", "deploys a checkpoint, step by step"),
    Hint(Scope.APP, "help", "shows all keyboard shortcuts"),
)
"""In the order in which they are shown."""


def next_hint(scopes: Collection[Scope], gone: Collection[str]) -> Hint | None:
    """Return the first hint for these scopes that is not in ``gone``."""
    return next((hint for hint in HINTS if hint.scope in scopes and hint.name not in gone), None)
