"""The screen shown if no remote is configured: offers the demo, the emulator, or to connect with a key."""

from __future__ import annotations

from enum import StrEnum
from itertools import chain
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from api_client.errors import ApiClientError
from tui.actions.keymap import bindings_of
from tui.actions.table import Scope
from tui.screens.dialogs import ChoiceList
from tui.text.sanitize import sanitize, sanitize_multiline
from tui.widgets.text_panel import WrappedText


class WelcomeChoice(StrEnum):
    """Choices on the welcome screen."""

    DEMO = "demo"
    EMULATOR = "emulator"
    LOGIN = "login"


CHOICES = (
    (WelcomeChoice.DEMO, "Watch the demo", "Simulated runs and a real one. No account or GPU."),
    (
        WelcomeChoice.EMULATOR,
        "Start the local emulator",
        "Runs real jobs on this machine; it starts empty.",
    ),
    (WelcomeChoice.LOGIN, "Connect to Baseten", "Paste your API key: it is checked and stored."),
)

CONNECT_TEXT = """\
Create an API key in Baseten (Settings → API keys), and paste it here.

It is checked with {address}, then stored in {path} [{name}], which the truss CLI also uses and only you \
can read. To keep it out of files, start bt-tui with BASETEN_API_KEY in the environment."""


class WelcomeScreen(Screen[None]):
    """Offers three choices; the app exits with the choice, and the command carries it out.

    For ``LOGIN``, the key is checked and stored before the app exits.
    """

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
            options = [
                [Option(Text.assemble((label, "bold"), "\n", (about, "dim")), id=choice), None]
                for choice, label, about in CHOICES
            ]
            yield ChoiceList(
                *chain.from_iterable(options), id="choices"
            )  # None is a line between two options
            yield Static(Text(self._reason), id="reason")
            with Vertical(id="login"):
                yield WrappedText(id="about")
                yield Input(placeholder="API key", password=True, id="key", compact=True)
                yield WrappedText(id="outcome")
                yield Static(Text("enter connects · esc goes back"), id="other")
        yield Footer(show_command_palette=False)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        choice = WelcomeChoice(event.option.id or WelcomeChoice.LOGIN)
        if choice is WelcomeChoice.LOGIN:
            self._show_login()
        else:
            self.app.exit(choice)

    def _show_login(self) -> None:
        # imported here, because the first picture does not need it
        from tui.readers.login import credentials_path, remote_without_key

        try:
            remote = remote_without_key()
            explanation = CONNECT_TEXT.format(
                address=remote.app_url, path=credentials_path(), name=remote.name
            )
        except ApiClientError as error:
            explanation = f"✗ {error}"
        self.query_one("#about", WrappedText).update(sanitize_multiline(explanation))
        self.query_one("#box").add_class("-login")
        self.set_focus(self.query_one("#key"))

    def _show_outcome(self, outcome: str) -> None:
        self.query_one("#outcome", WrappedText).update(sanitize(outcome))

    @on(Input.Changed, "#key")
    def _key_changed(self, event: Input.Changed) -> None:
        if event.value:
            self._show_outcome("")

    @on(Input.Submitted, "#key")
    @work(exclusive=True, exit_on_error=False)
    async def _connect(self, event: Input.Submitted) -> None:
        from tui.readers.login import log_in

        key = event.value.strip()
        event.input.clear()
        if not key:
            return
        self._show_outcome("Checking the key…")
        try:
            await log_in(key)
        except ApiClientError as error:
            self._show_outcome(f"✗ {error}")
        else:
            self.app.exit(WelcomeChoice.LOGIN)

    def action_back(self) -> None:
        self.workers.cancel_all()
        self.query_one("#key", Input).clear()
        self.query_one("#box").remove_class("-login")
        self.set_focus(self.query_one("#choices"))
