"""The end of the deploy form: the deployment's phases, its log, and how to call it; or a dry run's config."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll

from api_client.deployment import DeploymentUpdate, truss_config_yaml
from tui.analysis.deployments import startup_text, status_tone, status_word
from tui.feeds.deployment import DeploySnapshot
from tui.screens.base import key_on
from tui.text.sanitize import sanitize, sanitize_multiline
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.view import LogView
from tui.widgets.text_panel import WrappedText
from tui.widgets.tones import tone_styles

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
        self._shown_lines = 0

    def compose(self) -> ComposeResult:
        yield WrappedText(id="follow-head")
        with VerticalScroll(id="follow-text"):
            yield WrappedText(scrolls=True, id="follow-words")
        yield LogView(options=LogOptions(wrap=True), id="deployment-log")

    def show(self, snapshot: DeploySnapshot) -> None:
        if snapshot.sent is None:
            return
        tones, result = tone_styles(self.app), snapshot.sent.result
        head, text, self.to_copy = Text(), Text(), ""
        is_dry_run = snapshot.stage == "tried"
        log = self.query_one(LogView)
        log.display = not is_dry_run
        if lines := snapshot.lines[self._shown_lines :]:
            log.store.append(lines)
            self._shown_lines = len(snapshot.lines)
        if is_dry_run:
            self.to_copy = truss_config_yaml(result.truss_config)
            head.append("✓ Dry run: nothing was created. ", tones["good"])
            head.append("Truss config that would be deployed:", tones["muted"])
            text.append(sanitize_multiline(self.to_copy))
        else:
            head.append(f"{sanitize(result.name or 'deployment')}  ", tones["strong"])
            self._append_status(head, snapshot.update)
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
            self.to_copy = snapshot.calls.curl
            lead = f"Call the model ({key_on(self, 'deploy.copy')} copies the command):\n\n"
            text.append(
                "On Baseten, you would call:\n\n" if snapshot.serves_nothing else lead, tones["strong"]
            )
            text.append("\n\n".join(map(sanitize_multiline, (snapshot.calls.curl, snapshot.calls.python))))
        if snapshot.sent.written_to is not None:
            head.append(f"\nTruss config: {sanitize(str(snapshot.sent.written_to))}", tones["muted"])
        self.query_one("#follow-head", WrappedText).update(head)
        self.query_one("#follow-words", WrappedText).update(text)
        self.query_one("#follow-text").display = bool(text)

    def _append_status(self, head: Text, update: DeploymentUpdate | None) -> None:
        """Append the states of a start and mark the current one; append any other state by its name."""
        tones = tone_styles(self.app)
        status = (update and update.status) or DEPLOYMENT_STAGES[0]
        if update is not None and update.deployment.is_production:
            head.append("production  ", tones["key"])
        if status in DEPLOYMENT_STAGES:
            current = DEPLOYMENT_STAGES.index(status)
            for position, stage in enumerate(DEPLOYMENT_STAGES):
                is_done = position < current or status == DEPLOYMENT_STAGES[-1]
                sign, tone = ("✓", "good") if is_done else ("·", "muted")
                if position == current and not is_done:
                    sign, tone = "●", "key"
                head.append(f"{sign} {status_word(stage)}  ", tones[tone])
        else:
            sign = {"good": "✓", "bad": "✗", "muted": "■"}.get(status_tone(status), "●")
            head.append(f"{sign} {sanitize(status)}", tones[status_tone(status)])
