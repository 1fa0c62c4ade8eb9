"""Define actions and the scopes they work in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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


OFF = "Off: read-only."
"""Appended to the help of a dangerous action in a read-only dashboard."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something the user can do.

    ``keys`` are Textual key names, separated by commas. ``label`` is the text in the footer and the
    palette; ``help`` is one short sentence. ``in_footer`` asks for a place in the footer, where space
    is scarce. A ``dangerous`` action changes something on the server: it asks for confirmation and is
    off in a read-only dashboard. Keys typed after an action that ``opens_field`` go into the field,
    however fast they come.
    """

    id: str
    scope: Scope
    keys: str
    label: str
    help: str
    in_footer: bool = False
    dangerous: bool = False
    opens_field: bool = False

    def sentence(self, *, read_only: bool) -> str:
        """Return the help text, with a note if the action is off in a read-only dashboard."""
        return f"{self.help} {OFF}" if read_only and self.dangerous else self.help


SCOPE_TITLES: dict[Scope, str] = {
    Scope.HOME: "Home",
    Scope.JOB: "Job",
    Scope.LOGS: "Log",
    Scope.CHARTS: "Charts",
    Scope.METRICS: "Metrics",
    Scope.CHECKPOINTS: "Checkpoints",
    Scope.FILES: "Files",
    Scope.CACHE: "Cache",
    Scope.DOWNLOADS: "Downloads",
    Scope.COMPARE: "Compare",
    Scope.CAPACITY: "Capacity",
    Scope.SUBMIT: "Submit",
    Scope.DEPLOY: "Deploy",
    Scope.SCREEN: "Every screen",
    Scope.APP: "App",
}
"""Headings in help and docs/keys.md."""
