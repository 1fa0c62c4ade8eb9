"""Every setting, with its default and what it does: the reference is made from these words.

A setting's description is its docstring, which ``reference`` finds: having pydantic look for them would
take time whenever the dashboard opens. Nothing unknown is accepted, and nothing of the wrong type: a
misspelt setting must not be silently without effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from tui.analysis.health.rules import HealthRules
from tui.analysis.progress.patterns.custom import ProgressPattern
from tui.analysis.run.finding import FindingKind
from tui.settings.problems import key_problems

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
"""Ours, then textual's. Spelt out so that checking a file loads no textual; a test compares them."""

TimeMode = Literal["clock", "utc", "relative", "elapsed", "off"]
Level = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
Seconds = Annotated[float, Field(ge=1.0, le=3600.0)]

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
LONGEST_COMMAND = 64
MOST_PATTERNS = 50


class Section(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)


class ThemeSettings(Section):
    """How the dashboard looks."""

    name: ThemeName = "bt-dark"
    """One of ours (`bt-dark`, `bt-light`: calm, and safe for colour-blind eyes) or of textual's. Where it is
    not set, the dashboard starts with the theme that was chosen there last."""

    no_color: bool = False
    """Only the terminal's own colours, sparingly; the variable `NO_COLOR` says the same."""


class RefreshSettings(Section):
    """How often the dashboard asks, in seconds (1 to 3600). Logs are streamed and have no such rate."""

    fleet_s: Seconds = 5.0
    """The lists of projects and jobs on Home."""

    status_s: Seconds = 3.0
    """The status of the job that is shown."""

    metrics_s: Seconds = 2.0
    """Its newest metrics; over long times they come no faster than the charts can show."""

    checkpoints_s: Seconds = 10.0
    """Its checkpoints."""


class NotificationSettings(Section):
    """How you hear of a run that falls sick or ends while you look elsewhere."""

    toast: bool = True
    """A notice in the corner of the dashboard."""

    bell: bool = False
    """The terminal's bell."""

    title: bool = True
    """The terminal's title tells the state of the run, as in `▲ llama-70b stalled – bt-tui`."""

    osc: Literal["off", "9", "777", "auto"] = "auto"
    """A notification of the desktop, by the terminal: escape sequence OSC 9 (iTerm2, WezTerm, kitty,
    Ghostty, Windows Terminal) or OSC 777 (urxvt, foot, VTE terminals). In tmux it needs
    `set -g allow-passthrough on`."""

    only_when_unfocused: bool = True
    """Bell and OSC only while the terminal has not the focus; in tmux that needs `set -g focus-events on`."""

    min_severity: Literal["info", "warning", "critical"] = "warning"
    """Findings that are less grave are shown, but not notified."""

    job_end: bool = True
    """Notify when a job completes, fails or is stopped, whatever `min_severity` says."""

    snooze_minutes: Annotated[float, Field(gt=0, le=10_080)] = 30.0
    """How long `z` keeps a finding quiet."""

    command: list[str] = []
    """A program and its arguments, run without a shell for every notification; it reads one JSON object from
    its standard input and has ten seconds. As in `["notify-send", "bt-tui"]`."""

    webhook: str | None = None
    """An https URL that gets every notification as a JSON object by POST (http to this machine alone)."""

    @field_validator("command")
    @classmethod
    def _check_command(cls, command: list[str]) -> list[str]:
        if command and not command[0]:
            raise PydanticCustomError("command", "the first word names the program and is empty")
        if len(command) > LONGEST_COMMAND or any("\0" in word for word in command):
            raise PydanticCustomError("command", "at most 64 words, none with a NUL character")
        return command

    @field_validator("webhook")
    @classmethod
    def _check_webhook(cls, url: str | None) -> str | None:
        if url is not None and not _is_safe(url):
            raise PydanticCustomError("webhook", "must be an https URL (http only to this machine)")
        return url


class LogSettings(Section):
    """How the log of a run is shown at first; keys change all of it for the moment."""

    time: TimeMode = "clock"
    """What stands before a line: local time, UTC, its age, the time since the start, or nothing."""

    wrap: bool = False
    """Long lines go on in the next row instead of beyond the edge."""

    min_level: Level | None = None
    """Only lines that are at least that grave; all, if it is not set."""

    max_lines_in_memory: Annotated[int, Field(ge=1_000, le=5_000_000)] = 200_000
    """Older lines are in a temporary file, and still there to be read and searched."""

    collapse_progress: bool = True
    """A progress bar shows its last state only."""

    fold_tracebacks: bool = True
    """A traceback is one row until it is opened."""


class PatternSettings(Section):
    """Reads the progress of a trainer that is not known: one table `[[patterns]]` for each."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    """What you call it."""

    regex: Annotated[str, Field(min_length=1, max_length=2_000)]
    """A regular expression, searched in every line, whose named groups are the values: `(?P<step>\\d+)`,
    and `total`, `epoch`, `epochs`, `loss`, `eval_loss`, `lr`, `grad_norm`, `tokens_per_s`, `samples_per_s`,
    `step_time_s`, `step_time_ms`, `rank`, `checkpoint`."""

    @field_validator("regex")
    @classmethod
    def _check_regex(cls, regex: str) -> str:
        try:
            ProgressPattern("it", regex)
        except ValueError as error:
            raise PydanticCustomError("pattern", "{why}", {"why": str(error)}) from None
        return regex


class DemoSettings(Section):
    """What `bt-tui demo` begins with."""

    speed: Annotated[float, Field(ge=0.1, le=1000.0)] = 1.0
    """How many times faster than real time the scripted jobs move."""


class Configuration(Section):
    """All settings."""

    remote: str | None = None
    """The section of `~/.trussrc` to connect to, where neither `--remote` nor the environment says."""

    readonly: bool = False
    """Only look: dashboard and commands refuse whatever would change something at the server."""

    theme: ThemeSettings = ThemeSettings.model_construct()
    refresh: RefreshSettings = RefreshSettings.model_construct()
    notifications: NotificationSettings = NotificationSettings.model_construct()
    logs: LogSettings = LogSettings.model_construct()

    keys: dict[str, str] = {}
    """Other keys for actions, by the action's id, as in `job.stop_job = "ctrl+k"`; several keys are separated
    by commas. The ids are in the table of actions below."""

    health: HealthRules = HealthRules()
    """What counts as sick. Shares are fractions of 1, times are seconds."""

    prices: dict[str, Annotated[float, Field(ge=0)]] = {}
    """What a node of an instance type costs you, in US dollars a minute, by its id or name, as in
    `"H100:8x80" = 0.65`; it comes before the list price."""

    patterns: Annotated[list[PatternSettings], Field(max_length=MOST_PATTERNS)] = []
    """Your own patterns of progress in log lines."""

    demo: DemoSettings = DemoSettings.model_construct()

    @field_validator("keys", mode="before")
    @classmethod
    def _flatten(cls, keys: Any) -> Any:
        """In TOML ``job.stop_job = "x"`` is a table within the table; both spellings are meant."""
        return flattened(keys) if isinstance(keys, Mapping) else keys

    @field_validator("keys")
    @classmethod
    def _check_keys(cls, keys: dict[str, str]) -> dict[str, str]:
        for where, why in key_problems(keys):
            raise PydanticCustomError("keys", "{why}", {"why": why, "below": where})
        return keys

    @field_validator("health")
    @classmethod
    def _check_health(cls, rules: HealthRules) -> HealthRules:
        for one in fields(rules):
            value = getattr(rules, one.name)
            if one.name == "off":
                kinds = {str(kind) for kind in FindingKind}
                if unknown := sorted(value - kinds):
                    why = f"no such finding: {unknown[0]}; there are {', '.join(sorted(kinds))}"
                    raise PydanticCustomError("health", "{why}", {"why": why, "below": one.name})
            elif value < 0 or (one.name.endswith("_s") and value == 0):
                what = "greater than 0" if one.name.endswith("_s") else "0 or greater"
                raise PydanticCustomError("health", "{why}", {"why": f"must be {what}", "below": one.name})
        return rules

    @property
    def progress_patterns(self) -> tuple[ProgressPattern, ...]:
        """The user's own patterns, compiled."""
        return tuple(ProgressPattern(one.name, one.regex) for one in self.patterns)


def flattened(table: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Nested tables as one, its keys joined with dots."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= flattened(value, f"{above}{key}.")
        else:
            found[f"{above}{key}"] = value
    return found


def _is_safe(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    if not host or not url.isprintable() or " " in url:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK)
