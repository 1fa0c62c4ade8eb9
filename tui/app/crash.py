"""What is said of an error that nobody expected, when it ends the dashboard.

Textual prints a traceback with the values of local variables: of a client, keys are among them, and of a
server's text, escape sequences in the error's own words. Ours has neither.
"""

from __future__ import annotations

from rich.text import Text
from textual.app import App

from tui.feeds.session import Session
from tui.insight.crash_text import crash_text
from tui.screens.welcome.screen import WelcomeChoice


class CrashTeller(App[WelcomeChoice]):
    """The part of the app that tells of its own end."""

    _session: Session | None

    def _fatal_error(self) -> None:
        """Leave, with a traceback that holds no values of variables, no key and no control sequence."""
        error = self._exception
        if error is None:
            super()._fatal_error()
            return
        secrets = self._session.secrets() if self._session is not None else ()
        self.bell()
        self._exit_renderables.append(Text(crash_text(error, secrets)))
        self._close_messages_no_wait()
