"""The base classes of full screens, and of the pages that open them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual import events, on
from textual.app import App, ComposeResult
from textual.message import Message
from textual.reactive import var
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import Worker, WorkerState

from tui.actions.keymap import bindings_of, key_for, with_user_keys
from tui.actions.table import ActionFlag, Scope, actions_named, actions_of
from tui.analysis.connection import Connection
from tui.analysis.run.finding import SnoozedFindings
from tui.analysis.transfers import Transfers
from tui.tables.column import Span
from tui.widgets.background import run_in_background
from tui.widgets.connection_notice import ConnectionNotice
from tui.widgets.opening import MountsWithChildren
from tui.widgets.status_footer import StatusFooter
from tui.widgets.status_line import StatusLine
from tui.widgets.text_panel import WrappedText

if TYPE_CHECKING:  # imported later, so that Home's first picture appears sooner
    from api_client.models import TrainingJob
    from tui.analysis.run.finding import HealthFinding
    from tui.feeds.comparison import RunCache
    from tui.readers.recorded_runs import OpenRecordings
    from tui.readers.session import Session
    from tui.screens.dialogs import ConfirmScreen
    from tui.settings.model import Loaded
    from tui.settings.remembered import Memory


FeedFactory = Callable[..., Any]
"""Creates a screen's feed, given ``publish``, the callback for its snapshots."""


@dataclass(frozen=True, slots=True)
class PaletteItem:
    """An object on a screen that the command palette finds, such as a job or a metric."""

    kind: str
    name: str
    description: str
    """Facts about the object, which the palette shows after its name."""
    choose: Callable[[], object]
    """Called when the user chooses the item."""
    id: str = ""
    """Id of the object, which the palette also finds; empty if the object has none."""


class AppScreen(MountsWithChildren, Screen[None]):
    """Base class of full screens; the app sets its ``connection``, ``downloads`` and other reactives.

    ``SCOPES`` are the scopes whose actions the screen owns, in addition to ``Scope.SCREEN``, which every
    screen owns. A screen with tabs overrides ``scopes`` to return only the scopes of the visible tab, so
    that a key can mean different things on different tabs.
    """

    AUTO_FOCUS = ""
    """Selector of the widget to focus first. Focusing it in ``on_mount`` would be too late: ``Widget.focus``
    defers, and the first keys would reach the widget that Textual chooses, even a hidden input."""
    SCOPES: ClassVar[tuple[Scope, ...]] = ()
    PANES: ClassVar[Mapping[Scope, type[Widget]]] = MappingProxyType({})
    """By scope, the pane that carries out its actions, wherever the focus is on the screen."""
    SHOWN_RESOURCES: ClassVar[frozenset[str]] = frozenset()
    """Resources whose staleness the screen shows, by their names in ``tui.analysis.connection``."""
    shown_job_id = ""
    """Id of the only job whose resources the screen shows; empty on a screen about several jobs."""
    LOW_PRIORITY_HINTS: ClassVar[frozenset[str]] = frozenset()
    """Actions whose hints the footer shows only if there is room after all other hints."""
    _user_keys: Mapping[str, str] = MappingProxyType({})
    job: TrainingJob | None = None
    """The job that the screen follows; None on a screen that follows no single job."""

    @property
    def has_job_ended(self) -> bool:
        """True if the screen follows a job that has finished, so its data no longer changes."""
        return self.job is not None and self.job.is_finished

    @property
    def chosen_job(self) -> TrainingJob | None:
        """The job that actions apply to; None if none is selected."""
        return self.job

    def require_job(self) -> TrainingJob | None:
        """Return the job that actions apply to; if there is none, notify the user and return None."""
        if self.chosen_job is None:
            self.notify("No job is selected.")
        return self.chosen_job

    @dataclass
    class Published(Message):
        """Posted when the screen's feed has a newer snapshot."""

        snapshot: Any

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, AppScreen.Published)

    _feed: Any
    """The task that reads the screen's data and publishes snapshots; its type depends on the screen."""

    def __init__(self, make_feed: FeedFactory | None = None) -> None:
        super().__init__()
        if make_feed is not None:
            self._feed = make_feed(publish=self.publish)

    connection: var[Connection] = var(Connection())
    downloads: var[Transfers] = var(Transfers())
    snoozed: var[SnoozedFindings] = var(SnoozedFindings())
    planned_stops: var[Mapping[str, str]] = var[Mapping[str, str]]({})
    """Planned stops: job id → text such as "stops after its next checkpoint"."""
    recorded_job_ids: var[frozenset[str]] = var(frozenset[str]())
    """Ids of the jobs that are being recorded."""
    hidden_hints: var[frozenset[str]] = var(frozenset[str](), init=False)
    """Actions that have no effect now. The footer hides them; their keys show a notice with the reason."""
    temporary_labels: var[Mapping[str, str]] = var(MappingProxyType[str, str]({}), init=False)
    """Temporary labels of actions whose effect differs now; the footer shows these actions."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Bind the keys of the screen's scopes; add methods for actions without a method of their own."""
        cls.BINDINGS = bindings_of(*cls.SCOPES, Scope.SCREEN)
        super().__init_subclass__(**options)
        for action in actions_of(*cls.SCOPES):
            if action.implementation:
                setattr(cls, f"action_{action.id}", _method_for_entry(action.implementation))
        for scope, pane in cls.PANES.items():
            for action in actions_of(scope):
                setattr(cls, f"action_{action.id}", _method_of_pane(pane, action.implementation or action.id))

    def on_compose(self) -> None:
        """Set the CSS classes of the screen's size before the first layout.

        Textual sets them at the first resize only, and then styles all widgets again.
        """
        for breakpoints, cells in zip(
            (self.HORIZONTAL_BREAKPOINTS, self.VERTICAL_BREAKPOINTS), self.app.size, strict=True
        ):
            self.add_class(
                *[name for min_cells, name in breakpoints or () if cells >= min_cells][-1:], update=False
            )

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.ScreenResume) and not self.stack_updates:
            event.refresh_styles = False  # the screen is new: mounting has just styled all widgets
        await super().on_event(event)

    def compose(self) -> ComposeResult:
        yield StatusLine(id="header")
        yield ConnectionNotice().data_bind(AppScreen.connection)
        yield from self.compose_body()
        yield StatusFooter().data_bind(AppScreen.connection)

    def compose_body(self) -> ComposeResult:
        yield from ()

    def publish(self, snapshot: object) -> None:
        """Pass a newer snapshot to the screen; feeds call this."""
        self.post_message(self.Published(snapshot))

    @on(Published)
    def _snapshot_published(self, message: Published) -> None:
        self.receive(message.snapshot)

    def receive(self, snapshot: Any) -> None:
        """Handle a newer snapshot from the feed: show it."""
        self.snapshot = snapshot

    @property
    def is_current(self) -> bool:
        """True if the screen is visible.

        While another full screen covers it, refreshes of this screen would repaint the covering screen.
        """
        return super().is_current and not self.is_covered

    @property
    def is_covered(self) -> bool:
        """True if another full screen is above this screen."""
        stack = self.app.screen_stack
        screens_above = stack[stack.index(self) + 1 :] if self in stack else ()
        return any(isinstance(screen, AppScreen) for screen in screens_above)

    def set_header(
        self, page: str, subject: str, facts: Sequence[Sequence[Span]] = (), priority_count: int = 1
    ) -> None:
        """Show "‹" (a click goes back), then the page's name, its subject, and facts by importance.

        The first ``priority_count`` parts are always shown; name and subject together count as one part.
        """
        title_spans = [("‹ ", "muted"), (f"{page} " if subject else page, "key"), (subject, "strong")]
        self.query_one("#header", StatusLine).set_facts([title_spans, *facts], priority_count)

    def show_text(self, selector: str, text: str | Text) -> None:
        """Show a text in the `WrappedText` that matches ``selector``; hide the widget if it is empty."""
        widget = self.query_one(selector, WrappedText)
        widget.display = bool(text)
        widget.update(text)

    def run_feed(self, name: str) -> None:
        run_in_background(self, self._feed.run, name, group="feed")

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Forward a failed worker to the app, which reports it; free the traceback of a canceled worker."""
        if event.state is WorkerState.ERROR:
            self.app.post_message(event)
        elif event.worker.error is not None:
            event.worker.error.with_traceback(None)

    def validate_connection(self, connection: Connection) -> Connection:
        """Drop the staleness of resources that this screen does not show."""
        return connection.limited_to(self.SHOWN_RESOURCES, self.shown_job_id)

    def hide_hints(self, **has_no_effect: bool) -> None:
        """Hide the footer's hints of the actions whose argument is True; show all other hints."""
        self.hidden_hints = frozenset(action for action, is_hidden in has_no_effect.items() if is_hidden)

    def watch_hidden_hints(self) -> None:
        self.refresh_bindings()

    watch_temporary_labels = watch_hidden_hints

    def bind_user_keys(self, user_keys: Mapping[str, str]) -> None:
        """Bind the user's keys, by ``scope.id`` of the action. Call this before the screen is shown."""
        self._bindings = with_user_keys(self._bindings, user_keys)
        self._user_keys = user_keys

    def key_for(self, action_id: str) -> str:
        """Return the current key of the action ``scope.id``, formatted for display."""
        return key_for(action_id, self._user_keys)

    def key_prefix(self, action_id: str) -> str:
        """Return `key_for(action_id)` as a prefix of typed text: ``/llama``, but ``f7 llama``."""
        key = self.key_for(action_id)
        return key if len(key) == 1 and not key.isalnum() else f"{key} "

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes whose actions work now."""
        return self.SCOPES

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Refuse actions of inactive scopes, so that their keys reach the actions of the active scopes.

        While an input has the focus, actions that open an input are refused too: their keys are letters, to
        be typed.
        """
        own_actions = actions_named(action, *self.SCOPES)
        if isinstance(self.focused, Input) and any(
            ActionFlag.FIELD in candidate.flags for candidate in own_actions
        ):
            return False
        return not own_actions or any(candidate.scope in self.scopes for candidate in own_actions)

    def palette_items(self) -> Iterable[PaletteItem]:
        """Return the objects on this screen that the command palette finds."""
        return ()

    def action_refresh(self) -> None:
        self._feed.refresh()
        self.notify("Refreshing…")

    @property
    def unsaved(self) -> str:
        """Sentence about unsaved input that would be lost on quitting; empty if there is none."""
        return ""

    def action_back(self) -> None:
        self.leave()

    def leave(self) -> None:
        """Close this screen; do nothing if another screen is on top, such as a dialog that opened first."""
        if self.app.screen is self:
            self.app.pop_screen()

    def confirm(self, dialog: ConfirmScreen, on_confirm: Callable[[], Any]) -> None:
        self.app.push_screen(dialog, lambda confirmed: on_confirm() if confirmed else None)


@dataclass
class PageServices:
    """The parts of the app that pages need."""

    app: App[Any]
    session_or_none: Session | None
    """The session with the remote; None only on the welcome screen, which opens no pages."""
    settings: Loaded
    memory: Memory
    fleet_feed: FeedFactory
    """Creates the feed of Home."""
    label: Callable[[], str]
    """Returns the text for Home's header: the remote, the team, and a mark for demo data."""
    team: Callable[[], str]
    """Returns the chosen team; empty for all teams."""
    recent_findings: Callable[[TrainingJob], tuple[HealthFinding, ...]]
    """Returns Home's findings for a job."""
    recordings: OpenRecordings | None
    """The recordings that the remote replays; None for any other remote."""

    @property
    def session(self) -> Session:
        assert self.session_or_none is not None
        return self.session_or_none

    @cached_property
    def compared_runs(self) -> RunCache:
        """The runs that Compare has read, so that opening it again does not read them again."""
        from tui.feeds.comparison import RunCache

        return RunCache()

    def now_s(self) -> float:
        return self.session.clock.now().timestamp()


@dataclass(frozen=True, eq=False)
class Page(ABC):
    """A screen that can be opened, and an entry of the navigation history.

    A page is defined below its screen, and opened with ``OpenPage``. Its fields are the subject of the
    screen, such as a job; the default ``ids`` suits pages whose fields have an ``id``.
    """

    changes_server: ClassVar[bool] = False
    """True if the page is a form whose answers change something on the server.

    A read-only dashboard refuses it. The history leaves it out, because closing it drops the answers.
    """

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the page's subject. Pages of one class with the same ids are equal."""
        values = [getattr(self, field.name) for field in fields(self)]
        return tuple(value.id for value in values if hasattr(value, "id"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Page) and (type(self), self.ids) == (type(other), other.ids)

    def __hash__(self) -> int:
        return hash((type(self), self.ids))

    @abstractmethod
    def open(self, services: PageServices) -> AppScreen:
        """Return a new screen with its feed."""


FindPage = Callable[[PageServices], Coroutine[Any, Any, Page | None]]
"""Reads the subject of a page from the server, and returns the page. If the subject does not exist, it
notifies the user and returns None."""


class AppMessage(Message):
    """Base class of requests to the app. A read-only dashboard refuses a request with ``changes_server``."""

    changes_server: bool = False


@dataclass
class OpenPage(AppMessage):
    """Request to open a page. The screen ``replaces`` is closed first; it must be the screen on top."""

    page: Page | FindPage
    replaces: AppScreen | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.changes_server = isinstance(self.page, Page) and self.page.changes_server


def _method_for_entry(entry: str) -> Callable[[AppScreen], Awaitable[object]]:
    """Return a screen's method for an action, from its entry in ``tui.actions.table.IMPLEMENTATIONS``."""

    async def act(screen: AppScreen) -> None:
        if entry.endswith(")"):
            await screen.run_action(entry)
            return
        module, _, name = entry.rpartition(".")
        page_class = getattr(import_module(f"tui.screens.{module}"), name)
        if not fields(page_class):
            screen.post_message(OpenPage(page_class()))
        elif (job := screen.require_job()) is not None:
            screen.post_message(page_class(job))

    return act


def _method_of_pane(pane: type[Widget], action: str) -> Callable[[AppScreen], Awaitable[object]]:
    """Return a screen's method that runs an action of one of its panes."""

    async def act(screen: AppScreen) -> None:
        await screen.query_one(pane).run_action(action)

    return act


def key_for_widget(widget: Widget, action_id: str) -> str:
    """Return the current key of the action ``scope.id`` on the screen of a widget."""
    screen = widget.screen
    return screen.key_for(action_id) if isinstance(screen, AppScreen) else key_for(action_id, {})
