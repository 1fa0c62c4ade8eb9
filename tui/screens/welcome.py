"""The screen shown if no remote is configured: offers the demo, the emulator, or how to log in."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from tui.actions import Scope
from tui.actions.keymap import bindings_of
from tui.screens.dialogs import ChoiceList


class WelcomeChoice(StrEnum):
    """Choices on the welcome screen."""

    DEMO = "demo"
    EMULATOR = "emulator"
    LOGIN = "login"


CHOICES = (
    (
        WelcomeChoice.DEMO,
        "Watch the demo",
        "A team's training runs, simulated except one, on this machine. No account or GPU needed.",
    ),
    (
        WelcomeChoice.EMULATOR,
        "Start the local emulator",
        "An empty Baseten Training on this machine that runs real jobs. Your data stays in its folder.",
    ),
    (WelcomeChoice.LOGIN, "Connect to Baseten", "How to use your API key."),
)

HOW_TO_LOG_IN = """\
1  Create an API key in Baseten: Settings → API keys.

2  Either save it in ~/.trussrc, which the truss CLI also uses:

     bt-tui login

   or put it in the environment:

     export BASETEN_API_KEY=…

3  Start bt-tui again. With several remotes: bt-tui --remote NAME"""


class WelcomeScreen(Screen[None]):
    """Offers three choices; the app exits with the choice and the command acts on it."""

    CSS_PATH = "welcome.tcss"
    AUTO_FOCUS = "#choices"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(Scope.SCREEN)
    VERTICAL_BREAKPOINTS = [(0, "-low"), (22, "-tall")]

    def __init__(self, reason: str) -> None:
        super().__init__()
        self._reason = reason

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="box", can_focus=False):
            yield Static(Text("bt-tui"), id="name")
            yield Static(Text("A dashboard for Baseten Training in your terminal."), id="claim")
            yield ChoiceList(
                *(
                    Option(Text.assemble((label, "bold"), "\n", (about, "dim")), id=choice)
                    for choice, label, about in CHOICES
                ),
                id="choices",
            )
            yield Static(Text(self._reason), id="reason")
            yield Static(Text(HOW_TO_LOG_IN), id="login")
        yield Footer(show_command_palette=False, compact=True)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        choice = WelcomeChoice(event.option.id or WelcomeChoice.LOGIN)
        if choice is WelcomeChoice.LOGIN:
            self.query_one("#box").toggle_class("-login")
            self.call_after_refresh(self.query_one("#login").scroll_visible, top=True, animate=False)
        else:
            self.app.exit(choice)

    def action_back(self) -> None:
        self.query_one("#box").remove_class("-login")
