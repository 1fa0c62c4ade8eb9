"""The end of the deploy form: the deployment's phases, its log, and how to call it; or a dry run's config."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from api_client.models.logs import LogEntry
from tui.analysis.deployments import startup_text
from tui.feeds.deployment import DeploySnapshot
from tui.screens.base import key_on
from tui.text.sanitize import sanitize, sanitize_multiline
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.view import LogView
from tui.widgets.text_panel import WrappedText
from tui.widgets.tones import tone_styles

CALL = "Call the model ({key} copies the command):\n\n"
EMULATED_CALL = "On Baseten, you would call:\n\n"
DEPLOYMENT_STAGES = ("BUILDING", "DEPLOYING", "LOADING_MODEL", "ACTIVE")


class DeploymentPane(Vertical):
    """Status, instructions, and the deployment's log."""

    DEFAULT_CSS = """
    DeploymentPane {
        & > #follow-head { padding: 0 1; }
        & > #follow-text { height: auto; max-height: 60%; padding: 0 1; }
        & > LogView { height: 1fr; margin-left: 1; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.to_copy = ""

    def compose(self) -> ComposeResult:
        yield WrappedText(id="follow-head")
        with VerticalScroll(id="follow-text"):
            yield Static(id="follow-words")
        yield LogView(options=LogOptions(wrap=True), id="deployment-log")

    def take(self, lines: tuple[LogEntry, ...]) -> None:
        if lines:
            self.query_one(LogView).store.append(lines)

    def show(self, snapshot: DeploySnapshot) -> None:
        result, tones = snapshot.result, tone_styles(self.app)
        if result is None:
            return
        head, text = Text(), Text()
        is_dry_run = snapshot.stage == "tried"
        call = snapshot.calls.curl if snapshot.calls else ""
        self.to_copy = snapshot.truss_config if is_dry_run else call
        self.query_one(LogView).display = not is_dry_run
        if is_dry_run:
            head.append("✓ Dry run: nothing was created. ", tones["good"])
            head.append("Truss config that would be deployed:", tones["muted"])
            text.append(sanitize_multiline(snapshot.truss_config))
        else:
            self._deployment_states(head, snapshot)
            start = startup_text(snapshot.startups)
            later = snapshot.show_again  # no screen leads back here
            for line in (f"last start {start}" if start else "", result.link, later and f"later: {later}"):
                if line:
                    head.append(f"\n{sanitize(line)}", tones["muted"])
            if snapshot.pending:
                head.append(f"\n{snapshot.pending}", tones["key"])
            elif snapshot.note:
                head.append(f"\n✓ {sanitize(snapshot.note)}", tones["good"])
            if snapshot.error:
                head.append(f"\n✗ {sanitize(snapshot.error)}", tones["bad"])
            if snapshot.calls is not None:
                lead = CALL.format(key=key_on(self, "deploy.copy"))
                text.append(EMULATED_CALL if snapshot.serves_nothing else lead, tones["strong"])
                text.append("\n\n".join(map(sanitize_multiline, (call, snapshot.calls.python))))
        if snapshot.written_to is not None:
            head.append(f"\nTruss config: {sanitize(str(snapshot.written_to))}", tones["muted"])
        self.query_one("#follow-head", WrappedText).update(head)
        self.query_one("#follow-words", Static).update(text)
        self.query_one("#follow-text").display = bool(text)

    def _deployment_states(self, head: Text, snapshot: DeploySnapshot) -> None:
        """List the deployment states and mark the current one; an unknown state is shown by its name."""
        tones = tone_styles(self.app)
        name = snapshot.result.name if snapshot.result is not None else ""
        head.append(f"{sanitize(name or 'deployment')}  ", tones["strong"])
        if snapshot.deployment is not None and snapshot.deployment.is_production:
            head.append("production  ", tones["key"])
        status = (snapshot.deployment and snapshot.deployment.status) or DEPLOYMENT_STAGES[0]
        if status not in DEPLOYMENT_STAGES:
            sign, tone = self._sign(snapshot, status)
            head.append(f"{sign} {sanitize(status)}", tones[tone])
            return
        here = DEPLOYMENT_STAGES.index(status)
        for position, stage in enumerate(DEPLOYMENT_STAGES):
            sign = "✓" if position < here or snapshot.is_serving else "●" if position == here else "·"
            tone = "good" if sign == "✓" else "key" if sign == "●" else "muted"
            head.append(f"{sign} {stage.lower().replace('_', ' ')}  ", tones[tone])

    @staticmethod
    def _sign(snapshot: DeploySnapshot, status: str) -> tuple[str, str]:
        if snapshot.is_serving:
            return "✓", "good"
        if status == "INACTIVE":
            return "■", "muted"
        return ("✗", "bad") if snapshot.is_over else ("●", "warn")
