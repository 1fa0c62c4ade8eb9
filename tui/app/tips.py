"""Tips for new users above the footer: each explains a key, until the user has used the key."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from rich.text import Text
from textual.reactive import var
from textual.screen import Screen

from tui.actions.table import Scope
from tui.app.service import BaseApp, Service
from tui.screens.base import AppScreen
from tui.screens.home.screen import HomeScreen
from tui.widgets.status_footer import StatusFooter
from tui.widgets.text_panel import WrappedText
from tui.widgets.tones import tone_styles


class TipLine(WrappedText):
    """Shows ``tip``, a key and a text about it; hidden while the text is empty."""

    DEFAULT_CSS = """
    TipLine { padding: 0 1; display: none; }
    TipLine.-visible { display: block; }
    """

    tip: var[tuple[str, str]] = var(("", ""))

    def __init__(self, dismiss: Callable[[], object]) -> None:
        super().__init__()
        self._dismiss = dismiss

    def watch_tip(self, tip: tuple[str, str]) -> None:
        self.set_class(bool(tip[1]), "-visible")
        self.refresh(layout=True)

    @property
    def text(self) -> Text:
        tones = tone_styles(self.app)
        key, advice = self.tip
        return Text.assemble(("tip  ", tones["accent"]), (key, tones["key"]), (f" {advice}", tones["muted"]))

    def on_click(self) -> None:
        self._dismiss()


MIN_SCREEN_LINES = 24
"""Minimum screen height for a tip, which may take two lines on a narrow screen."""

MAX_TIMES_SHOWN = 4
"""Number of starts after which a tip is no longer shown, even if its action was never used."""


TIPS = {
    "home.open_job": "opens the selected job",
    "home.filter": "filters, e.g. llama status:running age<2d",
    "home.mark": "marks jobs to compare, stop or delete together",
    "job.show_logs": "opens the log full screen; the first tab is the overview",
    "logs.first_error": "jumps to the first error on any node",
    "job.deploy": "deploys a checkpoint, step by step",
    "app.help": "shows all keyboard shortcuts",
}
"""Texts of tips, by ``scope.id`` of the action, in order of display; the line begins with its key."""


class Tips(Service):
    """Shows tips about unused actions; remembers in how many starts each tip was shown."""

    def __init__(self, app: BaseApp, *, enabled: bool) -> None:
        super().__init__(app)
        self._is_enabled = enabled
        self._shown_names: frozenset[str] = frozenset()
        """The tips shown since the start."""
        self._current_tip: str | None = None
        self._last_screen_and_tip: tuple[AppScreen, str | None] | None = None
        """The screen whose tip line was last updated, and the tip on this line."""

    def start(self) -> None:
        """Poll for a suitable tip, because tabs and screens change; this costs next to nothing."""
        if self._is_enabled:
            self._app.set_interval(1.0, self.show)

    def show(self) -> None:
        screen = self._app.screen if self._app.screen_stack else None
        if not isinstance(screen, AppScreen) or not screen.is_mounted:
            return
        if not {Scope.HOME, Scope.JOB} & set(screen.SCOPES):
            return  # no tip is about the other screens
        # Tips on Home are about jobs; if there are none, show only tips for the whole app.
        has_no_jobs = isinstance(screen, HomeScreen) and not (screen.snapshot and screen.snapshot.jobs)
        scopes = (Scope.APP,) if has_no_jobs else (*screen.scopes, Scope.APP)
        has_room = self._app.size.height >= MIN_SCREEN_LINES
        candidates = (name for name in TIPS if has_room and self._is_suitable(name, scopes, screen))
        tip = self._current_tip = next(candidates, None)
        if self._last_screen_and_tip == (screen, tip):
            return
        line = self._tip_line_of(screen)
        if line is not None:
            self._last_screen_and_tip = (screen, tip)
            line.tip = (self._app.key_for(tip), TIPS[tip]) if tip is not None else ("", "")
        if tip is not None and tip not in self._shown_names:
            self._shown_names |= {tip}
            self._remember_count(tip, self._times_shown(tip) + 1)

    def _tip_line_of(self, screen: Screen[Any]) -> TipLine | None:
        """Return the screen's tip line; if it has none yet, mount it and return None."""
        for line in screen.query(TipLine):
            return line
        for footer in screen.query(StatusFooter):
            screen.mount(TipLine(self.dismiss), before=footer)
        return None  # the tip is shown by the next poll, when the new line is mounted

    def _times_shown(self, name: str) -> int:
        return self._app.memory.state.tips.get(name, 0)

    def _remember_count(self, name: str, shown_count: int) -> None:
        counts = {tip: self._times_shown(tip) for tip in TIPS} | {name: shown_count}
        self._app.memory.put(tips={name: count for name, count in counts.items() if count})

    def _is_suitable(self, name: str, scopes: Collection[str], screen: AppScreen) -> bool:
        scope, _, action = name.partition(".")
        return scope in scopes and action not in screen.hidden_hints and not self._is_retired(name)

    def _is_retired(self, name: str) -> bool:
        """Return True if the tip is no longer shown: it was followed, or shown in enough earlier starts."""
        return self._times_shown(name) - (name in self._shown_names) >= MAX_TIMES_SHOWN

    def mark_followed(self, name: str | None) -> None:
        if self._is_enabled and name in TIPS and not self._is_retired(name):
            self._remember_count(name, MAX_TIMES_SHOWN + 1)
            self._app.call_after_refresh(self.show)

    def dismiss(self) -> None:
        self.mark_followed(self._current_tip)
