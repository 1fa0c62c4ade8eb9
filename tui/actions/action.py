"""Define actions and the scopes they work in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, StrEnum, auto


class Scope(StrEnum):
    """Where an action works. Help, palette and docs/keys.md use this order."""

    HOME = "home"
    JOB = "job"  # the job screen, on any tab
    LOGS = "logs"  # the log of a run: the Live and Logs tabs
    CHARTS = "charts"  # the charts of a run: the Live and Metrics tabs
    METRICS = "metrics"  # the tab Metrics only
    CHECKPOINTS = "checkpoints"  # the Checkpoints tab
    FILES = "files"  # the files of a checkpoint
    CACHE = "cache"  # the cache of a project
    DOWNLOADS = "downloads"
    COMPARE = "compare"
    CAPACITY = "capacity"
    SUBMIT = "submit"
    DEPLOY = "deploy"
    SCREEN = "screen"  # every screen, each with its own behavior
    APP = "app"  # the same on every screen


SCOPE_TITLES = {scope: scope.capitalize() for scope in Scope} | {
    Scope.LOGS: "Log",
    Scope.SCREEN: "Every screen",
}
"""Headings in help and docs/keys.md."""

OFF = "Off: read-only."
"""Appended to the help of a dangerous action in a read-only dashboard."""


class Mark(Flag):
    """What is special about an action."""

    FOOTER = auto()
    """It asks for a place in the footer, where space is scarce."""
    DANGEROUS = auto()
    """It changes something on the server: it asks for confirmation, and is off in a read-only dashboard."""
    FIELD = auto()
    """It opens a field. Keys typed after it go into the field, however fast they come."""


PLAIN = Mark(0)


@dataclass(frozen=True, slots=True)
class Action:
    """Something the user can do.

    ``keys`` are Textual key names, separated by commas. ``label`` is the text in the footer and the
    palette; ``help`` is one short sentence.
    """

    scope: Scope
    id: str
    keys: str
    label: str
    help: str
    marks: Mark = PLAIN

    def sentence(self, *, read_only: bool) -> str:
        """Return the help text, with a note if the action is off in a read-only dashboard."""
        return f"{self.help} {OFF}" if read_only and Mark.DANGEROUS in self.marks else self.help
