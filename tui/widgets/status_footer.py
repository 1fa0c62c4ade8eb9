"""The footer: key hints on the left; recordings, downloads and connection status on the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.dom import DOMNode
from textual.reactive import reactive, var
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from api_client.words import retrying_words
from tui.analysis.connection import Connection, ConnectionState
from tui.analysis.transfers import Transfers
from tui.tables.column import Span
from tui.text.units import age
from tui.widgets.tones import tone_styles


class Badge(Widget):
    """A short text on the right of the footer; hidden while the text is empty."""

    DEFAULT_CSS = "Badge { width: auto; height: 1; padding: 0 1; background: $surface; display: none; }"

    label: reactive[Span] = reactive(("", "plain"), layout=True)
    """The text and its tone."""

    def watch_label(self) -> None:
        self.display = bool(self.label[0])

    def render(self) -> Text:
        text, tone = self.label
        return Text(text, tone_styles(self.app)[tone], no_wrap=True, end="")


class DownloadBadge(Badge):
    """A summary of the running downloads, such as ``↓ 2 files 43% 112 MiB/s``; a click opens their list."""

    async def on_click(self) -> None:
        await self.app.run_action("app.show_downloads")


HELP_ACTION = "help"
"""The action whose hint is dropped last, because help lists all other actions."""

TYPING_HINTS = {"submit": "confirm", "back": "back"}
"""Actions that end typing, with the labels of their hints while an input field has the focus."""

MARGIN = 1
HINT_GAP = 2


@dataclass(frozen=True, slots=True)
class KeyHint:
    """A hint such as "f follow": the sign of a key, and the label of its action.

    ``owner`` is the widget, screen or app that handles the action.
    """

    key: str
    sign: str
    label: str
    action: str
    owner: DOMNode
    enabled: bool = True
    tooltip: str = ""
    is_spare: bool = False
    """True to show the hint only if there is room for it after all other hints."""

    @property
    def cells(self) -> int:
        return cell_len(self.sign) + 1 + cell_len(self.label)


def fitting(hints: Sequence[KeyHint], width: int) -> list[KeyHint]:
    """Return the hints that fit into ``width`` cells, in order; the hint of help takes precedence."""

    def cells_of(subset: Sequence[KeyHint]) -> int:
        return 2 * MARGIN + sum(hint.cells for hint in subset) + HINT_GAP * max(0, len(subset) - 1)

    hints_shown = [hint for hint in hints if hint.action == HELP_ACTION]
    for hint in hints:
        if hint not in hints_shown and cells_of([*hints_shown, hint]) <= width:
            hints_shown.append(hint)
    return [hint for hint in hints if hint in hints_shown] if cells_of(hints_shown) <= width else []


class KeyHints(Widget):
    """Hints for the keys that work in the focused widget; a click on a hint runs its action.

    Unlike Textual's Footer, it drops hints that do not fit instead of scrolling, and does not create a widget
    per hint whenever the focus changes.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"key-hints--key", "key-hints--label"}
    DEFAULT_CSS = """
    KeyHints {
        height: 1;
        width: 1fr;
        background: $footer-background;
        & > .key-hints--key { color: $footer-key-foreground; text-style: bold; }
        & > .key-hints--label { color: $footer-description-foreground; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._hints: tuple[KeyHint, ...] = ()

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)
        self._bindings_changed(self.screen)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        # While the app exits, the screen stack may be empty; then ``active_bindings`` cannot be read.
        if not (self.is_attached and screen is self.screen and self.app.screen_stack):
            return
        hints_by_action: dict[str, KeyHint] = {}
        labels: Mapping[str, str] = getattr(screen, "temporary_labels", {})
        typing_hints = TYPING_HINTS if isinstance(screen.focused, Input) else {}
        hidden_actions: frozenset[str] = getattr(screen, "hidden_hints", frozenset())
        spare_actions: frozenset[str] = getattr(screen, "LOW_PRIORITY_HINTS", frozenset())
        hidden_actions |= getattr(self.app, "refused_actions", frozenset())
        for owner, binding, enabled, tooltip in screen.active_bindings.values():
            action = binding.action
            if owner is screen and action in hidden_actions:
                continue
            if typing_hints and len(binding.key_display or "") == 1:
                continue  # in an input field, such a key types a character and runs no action
            if (
                binding.show or action in {*typing_hints, *labels, *spare_actions}
            ) and action not in hints_by_action:
                sign = self.app.get_key_display(binding)
                label = labels.get(action) or typing_hints.get(action, binding.description)
                hints_by_action[action] = KeyHint(
                    binding.key, sign, label, action, owner, enabled, tooltip, action in spare_actions
                )
        hints = tuple(sorted(hints_by_action.values(), key=lambda hint: hint.is_spare))
        if hints != self._hints:
            self._hints = hints
            self.refresh()

    def _hints_by_x(self) -> list[tuple[int, KeyHint]]:
        hints_by_x = []
        x = MARGIN
        for hint in fitting(self._hints, self.size.width):
            hints_by_x.append((x, hint))
            x += hint.cells + HINT_GAP
        return hints_by_x

    def _hint_at(self, x: int) -> KeyHint | None:
        return next((hint for start, hint in self._hints_by_x() if start <= x < start + hint.cells), None)

    def render_line(self, y: int) -> Strip:
        base = self.rich_style
        styles = {
            name: base + self.get_component_rich_style(f"key-hints--{name}", partial=True)
            for name in ("key", "label")
        }
        segments = [Segment(" " * MARGIN, base)]
        for number, (_, hint) in enumerate(self._hints_by_x()):
            if number:
                segments.append(Segment(" " * HINT_GAP, base))
            dim = Style.null() if hint.enabled else Style(dim=True)
            segments.append(Segment(hint.sign, styles["key"] + dim))
            segments.append(Segment(f" {hint.label}", styles["label"] + dim))
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        hint = self._hint_at(event.x)
        self.tooltip = hint.tooltip if hint is not None and hint.tooltip else None

    async def on_click(self, event: events.Click) -> None:
        """Run the action of the hint. Simulating its key might type a letter into an input field instead."""
        hint = self._hint_at(event.x)
        if hint is None:
            return
        if hint.enabled:
            await self.app.run_action(hint.action, hint.owner)
        else:
            self.app.bell()


STALE_AFTER_S = 15.0


def connection_label(connection: Connection, now: datetime, *, is_over: bool = False) -> Span:
    """Return the state of the connection in two or three words, with the time until the next retry.

    ``is_over`` is True on the screen of a finished job: its data are connected, but no longer live.
    """
    if connection.recorded is not None:
        return f"recording {connection.recorded()}", "warn"
    match connection.link:
        case ConnectionState.CONNECTING:
            return "○ connecting", "muted"
        case ConnectionState.RETRYING:
            retry_in_s = (connection.retry_at - now).total_seconds() if connection.retry_at else 0.0
            return f"↻ {retrying_words(retry_in_s)}", "warn"
        case ConnectionState.LOST:
            since = connection.failing_since
            return f"✗ offline {age((now - since).total_seconds())}" if since else "✗ offline", "bad"
        case ConnectionState.UNAUTHORIZED:
            return "✗ key refused", "bad"
        case ConnectionState.LIVE:
            stale_since = [resource.since for resource in connection.stale]
            since = min(stale_since) if stale_since else connection.answered_at
            stale_s = (now - since).total_seconds() if since else 0.0
            if stale_since or stale_s > STALE_AFTER_S:
                return f"○ stale {age(stale_s)}", "warn"
            return ("● connected", "muted") if is_over else ("● live", "good")


class StatusFooter(Horizontal):
    """Key hints on the left; running recordings, running downloads and the connection on the right."""

    DEFAULT_CSS = """
    StatusFooter {
        dock: bottom; height: 1; background: $surface;
        & > KeyHints { background: $surface; }
    }
    """

    connection: var[Connection] = var(Connection())

    def __init__(self) -> None:
        super().__init__()
        # Not found by queries: if a screen is closed while it opens, its footer is mounted without children.
        self._recording_badge, self._downloads_badge = Badge(id="recording"), DownloadBadge(id="downloads")
        self._connection_badge = Badge(id="connection")

    def compose(self) -> ComposeResult:
        yield from (KeyHints(), self._recording_badge, self._downloads_badge, self._connection_badge)

    def on_mount(self) -> None:
        """Watch the screen's downloads and recordings; update the connection's times every second."""
        if hasattr(self.screen, "downloads"):
            self.watch(self.screen, "downloads", self._show_downloads)
        if hasattr(self.screen, "recorded_job_ids"):
            self.watch(self.screen, "recorded_job_ids", self._show_recordings)
        self.watch_connection()
        self.set_interval(1.0, self.watch_connection)

    def _show_downloads(self, downloads: Transfers) -> None:
        self._downloads_badge.label = (downloads.indicator(), "running")

    def _show_recordings(self, job_ids: frozenset[str]) -> None:
        text = f"● rec {len(job_ids)}" if len(job_ids) > 1 else "● rec" if job_ids else ""
        self._recording_badge.label = (text, "bad")

    def watch_connection(self) -> None:
        is_over = getattr(self.screen, "has_job_ended", False)
        self._connection_badge.label = connection_label(self.connection, datetime.now(UTC), is_over=is_over)
