"""What an action is, and where it works."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """Where an action works; the order is that of help, palette and docs/keys.md."""

    HOME = "home"
    JOB = "job"  # the job screen, whatever its tab
    LOGS = "logs"  # the log of a run: the tabs Live and Logs
    CHARTS = "charts"  # the charts of a run: the tabs Live and Metrics
    METRICS = "metrics"  # the tab Metrics alone
    CHECKPOINTS = "checkpoints"  # the tab Checkpoints
    FILES = "files"  # the files of a checkpoint
    CACHE = "cache"  # the cache of a project
    DOWNLOADS = "downloads"
    COMPARE = "compare"
    CAPACITY = "capacity"
    SUBMIT = "submit"
    DEPLOY = "deploy"
    SCREEN = "screen"  # every screen, each in its own way
    APP = "app"  # the same everywhere


OFF = "Off: read-only."
"""Said of a dangerous action in a read-only dashboard."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do.

    ``keys`` are textual's key names, separated by commas; ``label`` is the footer's word, ``help`` a
    full sentence. ``in_footer`` asks for a place in the footer, where room is scarce. ``dangerous``
    ones change something on the server: they ask before they do, and are off when the dashboard is
    read-only. What is typed after one that
    ``opens_field`` goes into the field, however fast it comes.
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
        """The help; in a read-only dashboard, of what would change something, that it is off."""
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
    Scope.SCREEN: "Each",
    Scope.APP: "All",
}
"""What people call them, in help and docs/keys.md."""
