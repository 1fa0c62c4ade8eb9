"""All settings: types, limits, defaults, and below each field the docstring that users read.

The settings file, the environment variables and ``bt-tui config`` are derived from these classes. They are
plain dataclasses; ``tui.settings.loading`` gives them to pydantic to check values, and ``reference`` to read
the docstrings. Most starts need neither, so this module imports no pydantic and no health check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from tui.analysis.health.rules import DEFAULT_RULES, HealthRules
from tui.settings.problems import Problem
from tui.settings.runs import RunSettings

ThemeName = Literal[
    "bt-dark",
    "bt-light",
    "textual-dark",
    "textual-light",
    "nord",
    "gruvbox",
    "catppuccin-mocha",
    "dracula",
    "tokyo-night",
    "monokai",
    "flexoki",
    "catppuccin-latte",
    "catppuccin-frappe",
    "catppuccin-macchiato",
    "solarized-light",
    "solarized-dark",
    "rose-pine",
    "rose-pine-moon",
    "rose-pine-dawn",
    "atom-one-dark",
    "atom-one-light",
    "ansi-dark",
    "ansi-light",
]
"""Our themes, then Textual's, copied because checking a file must not import Textual; a test compares."""

TimeMode = Literal["clock", "utc", "relative", "elapsed", "off"]
Level = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class Limits:
    """Bounds of a value, named as in pydantic: ``Limits(ge=1)`` is ``Field(ge=1)`` without importing it."""

    def __init__(self, **bounds: float) -> None:
        self._bounds = bounds

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(source) | self._bounds


class Rule:
    """A condition on a value of the right type: ``problem`` returns why the value breaks it, or ""."""

    def __init__(self, problem: Callable[[Any], str]) -> None:
        self._problem = problem

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        def checked(value: Any) -> Any:
            if reason := self._problem(value):
                raise ValueError(reason)
            return value

        function = {"type": "no-info", "function": checked}
        return {"type": "function-after", "function": function, "schema": handler(source)}


Seconds = Annotated[float, Limits(ge=1.0, le=3600.0)]


def _command_problem(command: list[str]) -> str:
    if command and not command[0]:
        return "the first word is the program and must not be empty"
    if len(command) > 64 or any("\0" in word for word in command):
        return "must be at most 64 words without NUL characters"
    return ""


def _webhook_problem(url: str | None) -> str:
    return "" if url is None or _is_safe_url(url) else "must be an https URL (http only to this machine)"


def _regex_problem(regex: str) -> str:
    from tui.analysis.progress.lines.custom import ProgressPattern  # slow to import; few users have patterns

    try:
        ProgressPattern("it", regex)
    except ValueError as error:
        return str(error)
    return ""


@dataclass(frozen=True, slots=True)
class ThemeSettings:
    """Colors of the dashboard."""

    name: ThemeName = "bt-dark"
    """Color theme: `bt-dark` and `bt-light` (muted, color-blind safe), or one of Textual's. If unset, the
    dashboard starts with the theme chosen last."""

    no_color: bool = False
    """Use only a few of the terminal's own colors; the variable `NO_COLOR` does the same."""


@dataclass(frozen=True, slots=True)
class RefreshSettings:
    """Polling intervals in seconds (1 to 3600). Logs are streamed and have no interval."""

    fleet_s: Seconds = 5.0
    """Projects and jobs on Home."""

    status_s: Seconds = 3.0
    """Status of the open job."""

    metrics_s: Seconds = 2.0
    """Newest metrics of the open job; less often when the charts cover a long time range."""

    checkpoints_s: Seconds = 10.0
    """Checkpoints of the open job."""


@dataclass(frozen=True, slots=True)
class NotificationSettings:
    """Notifications of problems and ends of runs."""

    toast: bool = True
    """Show notifications in the corner of the dashboard; for the job on screen, its header shows them."""

    bell: bool = False
    """Ring the terminal bell."""

    title: bool = True
    """Show the state of the run in the terminal title, as in `▲ llama-70b stalled – bt-tui`."""

    osc: Literal["off", "9", "777", "auto"] = "auto"
    """Send a desktop notification through the terminal: escape sequence OSC 9 (iTerm2, WezTerm, kitty,
    Ghostty, Windows Terminal) or OSC 777 (urxvt, foot, VTE terminals). tmux needs
    `set -g allow-passthrough on`."""

    only_when_unfocused: bool = True
    """Use bell and OSC only while the terminal is not focused; tmux needs `set -g focus-events on`."""

    min_severity: Literal["info", "warning", "critical"] = "warning"
    """Minimum severity of notifications; lesser findings are only shown."""

    job_end: bool = True
    """Notify when a job completes, fails or is stopped, regardless of `min_severity`."""

    snooze_minutes: Annotated[float, Limits(gt=0, le=10_080)] = 30.0
    """How long `z` snoozes alerts, in minutes."""

    command: Annotated[list[str], Rule(_command_problem)] = field(default_factory=list)
    """Program and arguments to run for every notification, without a shell, as in
    `["notify-send", "bt-tui"]`. The program gets one JSON object on stdin and must end within ten seconds."""

    webhook: Annotated[str | None, Rule(_webhook_problem)] = None
    """HTTPS URL to which every notification is posted as a JSON object (http only for this machine)."""

    webhook_format: Literal["auto", "json", "slack", "discord", "teams"] = "auto"
    """Format of the posted notification: our JSON object, or a message for Slack, Discord or Microsoft Teams;
    `auto` depends on the host of the URL."""


@dataclass(frozen=True, slots=True)
class LogSettings:
    """How logs are displayed.

    If `time`, `wrap`, `collapse_progress` or `fold_tracebacks` is not set here, the dashboard starts with the
    values that you last chose by key.
    """

    time: TimeMode = "clock"
    """Timestamp format: local time, UTC, age, time since the start, or none."""

    wrap: bool = False
    """Wrap long lines instead of truncating them."""

    min_level: Level | None = None
    """Minimum level of lines to show; if unset, all."""

    max_lines_in_memory: Annotated[int, Limits(ge=1_000, le=5_000_000)] = 1_000_000
    """Lines of a log to keep in memory, about 150 bytes each. When there are more, a mark replaces the
    oldest lines."""

    collapse_progress: bool = True
    """Show only the latest state of a progress bar."""

    fold_tracebacks: bool = True
    """Fold tracebacks into one row until they are expanded."""


@dataclass(frozen=True, slots=True)
class PatternSettings:
    """A pattern that reads the progress of an unknown trainer; one `[[patterns]]` table each."""

    name: Annotated[str, Limits(min_length=1, max_length=80)]
    """Name of the pattern."""

    regex: Annotated[str, Limits(min_length=1, max_length=2_000), Rule(_regex_problem)]
    """Regular expression to search for in every line. Its named groups are the values: `(?P<step>\\d+)`, and
    `total`, `epoch`, `epochs`, `loss`, `eval_loss`, `lr`, `grad_norm`, `tokens_per_s`, `samples_per_s`,
    `step_time_s`, `step_time_ms`, `rank`, `checkpoint`."""


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """Defaults of `bt-tui demo`."""

    speed: Annotated[float, Limits(ge=0.1, le=1000.0)] = 1.0
    """Speed of the simulated jobs, as a multiple of real time."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """All settings."""

    remote: str | None = None
    """Remote to use: a section of `~/.trussrc`, else a profile of the Go CLI with that name. `--remote` and
    the environment take precedence."""

    readonly: bool = False
    """Read-only mode: dashboard and commands refuse to change anything on the server."""

    theme: ThemeSettings = ThemeSettings()
    refresh: RefreshSettings = RefreshSettings()
    notifications: NotificationSettings = NotificationSettings()
    logs: LogSettings = LogSettings()

    keys: dict[str, str] = field(default_factory=dict)
    """Custom keys by action id, as in `job.stop_job = "ctrl+k"`. Separate several keys with commas.
    docs/keys.md lists the ids."""

    prices: dict[str, Annotated[float, Limits(ge=0)]] = field(default_factory=dict)
    """Your price of a node in US dollars per minute, by instance type id or name, as in `"H100:8x80" = 0.65`.
    Your price overrides the list price."""

    patterns: Annotated[list[PatternSettings], Limits(max_length=50)] = field(default_factory=list)
    """Custom patterns that read progress from log lines."""

    demo: DemoSettings = DemoSettings()

    health: HealthRules = DEFAULT_RULES
    """Advanced: thresholds of the health checks. Shares are fractions from 0 to 1, times are seconds."""

    @property
    def runs(self) -> RunSettings:
        if not self.patterns:
            return RunSettings(self.health, prices=self.prices)
        from tui.analysis.progress.lines.custom import ProgressPattern

        patterns = tuple(ProgressPattern(pattern.name, pattern.regex) for pattern in self.patterns)
        return RunSettings(self.health, patterns, self.prices)


DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The effective settings and the origin of each: ``default``, ``FILE:LINE``, a variable or a flag."""

    configuration: Configuration = field(default_factory=Configuration)
    origins: Mapping[str, str] = field(default_factory=dict)
    path: Path | None = None
    problems: tuple[Problem, ...] = ()
    ignored: tuple[Problem, ...] = ()
    """Settings of earlier versions in the file, which have no effect."""

    def origin(self, setting: str, table: str = "") -> str:
        return self.origins.get(setting) or self.origins.get(table, DEFAULT)

    def is_given(self, setting: str) -> bool:
        return setting in self.origins


def _is_safe_url(url: str) -> bool:
    try:
        url_parts = urlsplit(url)
        host = url_parts.hostname
    except ValueError:
        return False
    if not host or not url.isprintable() or " " in url:
        return False
    is_loopback = host in {"localhost", "127.0.0.1", "::1"}
    return url_parts.scheme == "https" or (url_parts.scheme == "http" and is_loopback)
