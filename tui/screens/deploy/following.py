"""What became of it: the truss config of a dry run, or the deployment as it comes up and how to call it."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from api_client.streams.records import LogEntry
from tui.feeds.deployment import DeploySnapshot
from tui.insight.text import inert, inert_lines
from tui.widgets.log_view.view import LogView
from tui.widgets.tones import tone_styles
from tui.widgets.wrapped_text import WrappedText

CALL = "Call it (ctrl+y copies the command):\n\n"
EMULATED_CALL = "This emulator serves no model. On Baseten, the call would be like this:\n\n"
WAY_UP = ("BUILDING", "DEPLOYING", "LOADING_MODEL", "ACTIVE")


class FollowPane(Vertical):
    """Status, words, and the deployment's log."""

    DEFAULT_CSS = """
    FollowPane {
        & > #follow-head { padding: 0 1; }
        & > #follow-text { height: auto; max-height: 60%; padding: 0 1; }
        & > LogView { height: 1fr; margin-left: 1; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.to_copy = ""

    def compose(self) -> ComposeResult:
        """Where it stands, how to call it, its log."""
        yield WrappedText(id="follow-head")
        with VerticalScroll(id="follow-text"):
            yield Static(id="follow-words")
        log = LogView(id="deployment-log", empty_text="no lines of the deployment yet")
        log.wrap = True
        yield log

    def take(self, lines: tuple[LogEntry, ...]) -> None:
        """More of the log."""
        if lines:
            self.query_one(LogView).append(lines)

    def show(
        self,
        snapshot: DeploySnapshot,
        *,
        truss_config: str,
        call: tuple[str, str] | None,
        serves_nothing: bool,
    ) -> None:
        """Say where it stands."""
        tones = tone_styles(self.app)
        result = snapshot.result
        head, words = Text(), Text()
        tried = snapshot.stage == "tried"
        self.query_one(LogView).display = not tried
        if result is None:
            return
        if tried:
            head.append("✓ Dry run: nothing was created. ", tones["good"])
            head.append("This is the Truss config that would be deployed.", tones["muted"])
            words.append(inert_lines(truss_config))
            self.to_copy = truss_config
        else:
            self._stations(head, snapshot)
            if result.link:
                head.append(f"\n{inert(result.link)}", tones["muted"])
            if snapshot.error:
                head.append(f"\n✗ {inert(snapshot.error)}", tones["bad"])
            if call is not None:
                words.append(EMULATED_CALL if serves_nothing else CALL, tones["strong"])
                words.append("\n\n".join(inert_lines(form) for form in call))
                self.to_copy = call[0]
        if snapshot.written_to is not None:
            head.append(f"\nWritten to {inert(str(snapshot.written_to))}", tones["muted"])
        self.query_one("#follow-head", WrappedText).update(head)
        self.query_one("#follow-words", Static).update(words)
        self.query_one("#follow-text").display = bool(words)

    def _stations(self, head: Text, snapshot: DeploySnapshot) -> None:
        """The states on the way up, the present one marked; any other state by its own name."""
        tones = tone_styles(self.app)
        name = snapshot.result.name if snapshot.result is not None else ""
        head.append(f"{inert(name or 'deployment')}  ", tones["strong"])
        status = snapshot.status or WAY_UP[0]
        if status not in WAY_UP:
            head.append(
                f"{'✗' if snapshot.is_over else '●'} {inert(status)}",
                tones["bad" if snapshot.is_over else "warn"],
            )
            return
        here = WAY_UP.index(status)
        for position, station in enumerate(WAY_UP):
            sign = "✓" if position < here or snapshot.is_serving else "●" if position == here else "·"
            tone = "good" if sign == "✓" else "key" if sign == "●" else "muted"
            head.append(f"{sign} {station.lower().replace('_', ' ')}  ", tones[tone])
