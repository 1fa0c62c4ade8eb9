"""Tips for new users above the footer: a key and what it does, until the user has used it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from rich.text import Text
from textual.app import App
from textual.reactive import var
from textual.screen import Screen

from tui.actions import Scope
from tui.actions.keymap import key_for
from tui.screens.base import AppScreen
from tui.screens.home.screen import HomeScreen
from tui.settings.remembered import Memory
from tui.widgets.status_footer import StatusFooter
from tui.widgets.text_panel import WrappedText
from tui.widgets.tones import tone_styles


class HintLine(WrappedText):
    """Shows the tip in ``shown`` (keys and words); hidden while the words are empty."""

    DEFAULT_CSS = """
    HintLine { padding: 0 1; display: none; }
    HintLine.-visible { display: block; }
    """

    shown: var[tuple[str, str]] = var(("", ""))

    def __init__(self, dismiss: Callable[[], object]) -> None:
        super().__init__()
        self._dismiss = dismiss

    def watch_shown(self, shown: tuple[str, str]) -> None:
        self.set_class(bool(shown[1]), "-visible")
        self.refresh(layout=True)

    @property
    def text(self) -> Text:
        tones = tone_styles(self.app)
        keys, words = self.shown
        return Text.assemble(("tip  ", tones["accent"]), (keys, tones["key"]), (f" {words}", tones["muted"]))

    def on_click(self) -> None:
        self._dismiss()


MAX_TIMES_SHOWN = 4
"""Number of starts after which a hint is no longer shown, even if its action was never used."""


HINTS = {
    "home.open_job": "opens the selected job",
    "home.filter": "filters, e.g. llama status:running age<2d",
    "home.mark": "marks jobs to compare, stop or delete together",
    "job.show_logs": "opens the log full screen; the first tab is the overview",
    "logs.first_error": "jumps to the first error on any node",
    "job.deploy": "deploys a checkpoint, step by step",
    "app.help": "shows all keyboard shortcuts",
}
"""All hints by action, in the order in which they are shown; the words follow the action's key."""


def next_hint(scopes: Collection[Scope], gone: Collection[str]) -> str | None:
    return next((name for name in HINTS if name.partition(".")[0] in scopes and name not in gone), None)


HINT_MEMORY = "hints"
HINT_CHECK_S = 1.0
HINTED = frozenset({Scope.HOME, Scope.JOB})
"""Screens with hints, by a scope of theirs."""


class Hints:
    """Shows hints about unused actions; stored is in how many starts each was shown."""

    def __init__(self, app: App[Any], memory: Memory, keys: Mapping[str, str], *, enabled: bool) -> None:
        self._app = app
        self._memory = memory
        self._keys = keys
        self._enabled = enabled
        self._shown_names: frozenset[str] = frozenset()

    def start(self) -> None:
        """Poll for a suitable hint, because tabs and screens change; this costs next to nothing."""
        if self._enabled:
            self._app.set_interval(HINT_CHECK_S, self.show)

    def show(self) -> None:
        screen = self._app.screen if self._app.screen_stack else None
        if not isinstance(screen, AppScreen) or not screen.is_mounted or HINTED.isdisjoint(screen.SCOPES):
            return
        # Hints on Home are about jobs; if there are none, show only hints for the whole app.
        empty = isinstance(screen, HomeScreen) and not (screen.snapshot and screen.snapshot.jobs)
        hint = next_hint((Scope.APP,) if empty else (*screen.scopes, Scope.APP), self._not_now(screen))
        line = self._line_of(screen)
        if line is not None:
            line.shown = (key_for(hint, self._keys), HINTS[hint]) if hint is not None else ("", "")
        if hint is not None and hint not in self._shown_names:
            self._shown_names |= {hint}
            self._put(hint, self._times(hint) + 1)

    def _line_of(self, screen: Screen[Any]) -> HintLine | None:
        for found in screen.query(HintLine):
            return found
        for footer in screen.query(StatusFooter):
            screen.mount(HintLine(self.dismiss), before=footer)
        return None  # it is mounted by the next poll

    def _times(self, name: str) -> int:
        times = self._memory.table(HINT_MEMORY).get(name)
        return times if isinstance(times, int) else 0

    def _put(self, name: str, times: int) -> None:
        known = {one: self._times(one) for one in HINTS} | {name: times}
        self._memory.put(HINT_MEMORY, {name: count for name, count in known.items() if count})

    def _gone(self) -> set[str]:
        """Return the names of the hints that were followed, or shown in enough earlier starts."""
        return {one for one in HINTS if self._times(one) - (one in self._shown_names) >= MAX_TIMES_SHOWN}

    def _not_now(self, screen: AppScreen) -> set[str]:
        return self._gone() | {one for one in HINTS if one.partition(".")[2] in screen.unhinted}

    def done(self, name: str) -> None:
        if self._enabled and name in HINTS and name not in self._gone():
            self._put(name, MAX_TIMES_SHOWN + 1)
            self._app.call_after_refresh(self.show)

    def dismiss(self) -> None:
        screen = self._app.screen
        if isinstance(screen, AppScreen):
            hint = next_hint((*screen.scopes, Scope.APP), self._not_now(screen))
            if hint is not None:
                self.done(hint)
