"""Dialogs: a question, details, an optional field, and buttons; also a list of choices for screens.

A dialog is answered only once, even if its keys are pressed twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from textual import on, work
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, OptionList

from api_client.files import why_not_written
from tui.analysis.export import ExportTable
from tui.system.saved_files import delivery_path, parse_typed_path, save_tables
from tui.text.sanitize import sanitize, sanitize_multiline
from tui.text.units import counted
from tui.widgets.background import run_in_background
from tui.widgets.opening import MountsWithChildren
from tui.widgets.text_panel import WrappedText

if TYPE_CHECKING:
    from tui.guard.rules import GuardRules

Answer = TypeVar("Answer")


class Dialog(MountsWithChildren, ModalScreen[Answer], Generic[Answer]):
    """A question, details and buttons, and an input field if one is given."""

    CSS_PATH = "dialogs.tcss"
    ABOUT_ID = "about"
    """Id of the widget with the details, which selects its style."""

    def __init__(
        self, question: str, details: str, buttons: Sequence[Button], field: Input | None = None
    ) -> None:
        super().__init__()
        self._question = question
        self._details = details
        self._buttons = buttons
        self._field = field

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield WrappedText(sanitize_multiline(self._question), id="question")
            yield WrappedText(sanitize_multiline(self._details), id=self.ABOUT_ID)
            if self._field is not None:
                yield self._field
                yield WrappedText(id="problem")
            with Horizontal(id="buttons"):
                yield from self._buttons

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Close with this answer; do nothing if this screen is no longer on top.

        A second Enter, typed before the first has closed the dialog, reaches it too. Textual would then close
        the screen below, and the app if that is the last screen.
        """
        if self.app.screen is not self:
            return AwaitComplete()
        return super().dismiss(result)


@dataclass(frozen=True, slots=True)
class Choice(Generic[Answer]):
    """An answer that the user can choose by a key or a button."""

    id: str
    keys: str
    """Names of the keys, separated by commas; the button shows the first key."""
    label: str
    """Label of the button; empty for no button."""
    answer: Answer


class ChoiceScreen(Dialog[Answer], Generic[Answer]):
    """A question with a few answers, each with keys and a button.

    ``safest_id`` is the id of the choice with the focus, so that an accidental Enter does no harm; the button
    of the choice ``dangerous_id`` is red.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "app.focus_previous", "other", show=False),
        Binding("right,tab", "app.focus_next", "other", show=False),
    ]

    def __init__(
        self,
        question: str,
        details: str,
        choices: Sequence[Choice[Answer]],
        *,
        safest_id: str,
        dangerous_id: str,
    ) -> None:
        buttons = [
            Button(
                f"{choice.label} ({choice.keys.partition(',')[0].replace('escape', 'esc')})",
                variant="error" if choice.id == dangerous_id else "default",
                id=choice.id,
                compact=True,
            )
            for choice in choices
            if choice.label
        ]
        super().__init__(question, details, buttons)
        self._answers = {choice.id: choice.answer for choice in choices}
        self._safest_id = safest_id
        for choice in choices:
            self._bindings.bind(choice.keys, f"choose('{choice.id}')", show=False)

    def on_mount(self) -> None:
        self.set_focus(self.query_one(f"#{self._safest_id}"))

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.action_choose(event.button.id or self._safest_id)

    def action_choose(self, choice_id: str) -> None:
        self.dismiss(self._answers[choice_id])


class ConfirmScreen(ChoiceScreen[bool]):
    """A confirmation dialog that names its object; the result is True only after an explicit yes."""

    ABOUT_ID = "consequence"

    def __init__(self, question: str, consequence: str, yes_label: str, no_label: str = "Cancel") -> None:
        choices = (Choice("yes", "y", yes_label, True), Choice("no", "n,escape,q", no_label, False))
        super().__init__(question, consequence, choices, safest_id="no", dangerous_id="yes")


class QuitScreen(ConfirmScreen):
    """Asks whether to quit despite unsaved answers, running downloads, or planned stops."""

    def __init__(self, download_count: int, stop_count: int, unsaved_sentences: Iterable[str] = ()) -> None:
        sentences = list(unsaved_sentences)
        if download_count:
            subject = counted(download_count, "download is", "downloads are")
            sentences.append(
                f"{subject} running. Partial files are kept; download to the same folder to resume."
            )
        if stop_count:
            sentences.append(f"{planned_stops_text(stop_count)}, but only as long as this dashboard is open.")
        super().__init__("Quit?", "\n".join(sentences), "Quit", "Stay")


def planned_stops_text(stop_count: int) -> str:
    return f"{counted(stop_count, 'job is', 'jobs are')} to be stopped later"


StopAnswer: TypeAlias = "Literal['now', 'after checkpoint', 'when', 'keep', 'as before'] | GuardRules"
"""When to stop: now, after a checkpoint, on conditions, or never; "as before" changes nothing."""


class StopScreen(ChoiceScreen[StopAnswer]):
    """Asks when to stop a running job.

    ``is_planned`` is True if a later stop is planned already: the dialog then cancels it only on request.
    ``parse_rules`` parses typed conditions. ``read_unsaved`` reads which work stopping now would lose; None
    for a job that has nothing to lose. The dialog opens before the result is known, because keys typed
    meanwhile would be lost otherwise.
    """

    ABOUT_ID = "consequence"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-normal")]

    def __init__(
        self,
        question: str,
        consequence: str,
        *,
        is_planned: bool,
        parse_rules: Callable[[str], GuardRules],
        read_unsaved: Callable[[], Coroutine[Any, Any, str]] | None = None,
    ) -> None:
        later: tuple[Choice[StopAnswer], ...] = (
            Choice("after", "c", "After checkpoint", "after checkpoint"),
            Choice("when", "w", "When…", "when"),
        )
        choices: tuple[Choice[StopAnswer], ...] = (
            Choice("now", "y", "Stop now", "now"),
            *(() if is_planned else later),
            Choice("keep", "n", "Keep", "keep"),
            Choice("back", "escape,q", "Back" if is_planned else "", "as before"),
        )
        details = consequence if read_unsaved is None else f"{consequence}\nUnsaved work: reading …"
        super().__init__(
            question, details, choices, safest_id="back" if is_planned else "keep", dangerous_id="now"
        )
        self._consequence = consequence
        self._parse_rules = parse_rules
        self._read_unsaved = read_unsaved

    def on_mount(self) -> None:
        if self._read_unsaved is not None:
            run_in_background(self, partial(self._show_unsaved, self._read_unsaved), "unsaved work")

    async def _show_unsaved(self, read: Callable[[], Coroutine[Any, Any, str]]) -> None:
        unsaved_text = await read() or "Unsaved work: unknown."
        self.query_one(f"#{self.ABOUT_ID}", WrappedText).update(
            sanitize_multiline(f"{self._consequence}\n{unsaved_text}")
        )

    def action_choose(self, choice_id: str) -> None:
        """Close with the answer; "when" first asks for conditions, and if that is canceled, stays open."""
        if choice_id != "when":
            super().action_choose(choice_id)
            return

        def on_closed(rules: GuardRules | None) -> None:
            if rules is not None:
                self.call_later(self._answer_rules, rules)  # once the other dialog has closed

        self.app.push_screen(StopRulesScreen(self._question, self._parse_rules), on_closed)

    def _answer_rules(self, rules: GuardRules) -> None:
        self.dismiss(rules)


class PathDialog(Dialog[Answer]):
    """Asks for a path or other text; stays open and shows the problem until the input is valid."""

    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "cancel", show=False)]

    def __init__(self, question: str, details: str, field: Input, yes_label: str) -> None:
        buttons = (
            Button(f"{yes_label} (enter)", variant="primary", id="yes", compact=True),
            Button("Cancel (esc)", id="no", compact=True),
        )
        super().__init__(question, details, buttons, field)

    async def answer(self, typed: str) -> Answer:
        """Convert the typed text to the answer. Raises ValueError or OSError if it is not valid."""
        raise NotImplementedError

    @on(Input.Changed)
    def _show_problem(self, problem: object) -> None:
        """Show an error. When the text changes, ``problem`` is the event, and the error is cleared."""
        text = sanitize_multiline(str(problem)) if isinstance(problem, Exception) else ""
        self.query_one("#problem", WrappedText).update(text)

    @on(Input.Submitted)
    @work(exclusive=True, group="answer")
    async def _submitted(self) -> None:
        try:
            answer = await self.answer(self.query_one(Input).value)
        except OSError as error:
            self._show_problem(ValueError(f"not saved: {why_not_written(error)}"))
        except ValueError as problem:
            self._show_problem(problem)
        else:
            self.dismiss(answer)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "yes":
            self._submitted()
        else:
            self.action_leave()

    def action_leave(self) -> None:
        self.dismiss(None)


class StopRulesScreen(PathDialog["GuardRules"]):
    """Asks on which conditions to stop a run; the result is the parsed conditions, or None if canceled."""

    def __init__(self, question: str, parse_rules: Callable[[str], GuardRules]) -> None:
        details = (
            "A finding, an amount, a time, or several: the first that applies stops the job. Add "
            "after-checkpoint to stop it only after the next checkpoint. Watches only while this dashboard "
            "is open; bt-tui guard watches without it."
        )
        field = Input(placeholder="loss-not-finite stalled 200usd 06:00", id="rules", compact=True)
        super().__init__(f"{question} When?", details, field, "Watch")
        self._parse_rules = parse_rules

    async def answer(self, typed: str) -> GuardRules:
        return self._parse_rules(typed)


class DownloadFolderScreen(PathDialog[Path]):
    """Dialog for the target folder of a download; the result is None if the user cancels."""

    def __init__(self, title: str, details: str, folder: Path, refusal_of: Callable[[Path], str]) -> None:
        field = Input(str(folder), id="folder", compact=True)
        super().__init__(f"Download {title}", details, field, "Download")
        self._refusal_of = refusal_of
        """Returns why a folder cannot be used; empty if it can."""

    async def answer(self, typed: str) -> Path:
        return self._checked_folder(typed.strip())

    def _checked_folder(self, typed: str) -> Path:
        if not typed:
            raise ValueError("Enter a folder; . is the current one.")
        try:
            folder = Path(typed).expanduser()
            is_file = folder.exists() and not folder.is_dir()
            problem = "That's a file; enter a folder." if is_file else self._refusal_of(folder)
        except (OSError, RuntimeError, ValueError) as error:
            raise ValueError(f"Not a valid folder: {error}") from error
        if problem:
            raise ValueError(problem)
        return folder.absolute()


class ExportScreen(PathDialog[tuple[Path, ...]]):
    """Asks where to save tables, and saves them; the result is the paths written, None if canceled."""

    def __init__(self, noun: str, tables: Sequence[ExportTable], proposal: Path) -> None:
        rows = sum(len(table.rows) for table in tables)
        tables_note = (
            f" in {counted(len(tables), 'table')}; CSV writes one file each" if len(tables) > 1 else ""
        )
        details = f"{counted(rows, 'row')}{tables_note}. .json saves JSON, any other name CSV."
        field = Input(str(proposal), id="file", compact=True)
        super().__init__(f"Export {sanitize(noun)}", details, field, "Save")
        self._tables = tuple(tables)
        self._replaceable: Path | None = None
        """Existing file that the user was warned about; saving to it again replaces it."""

    async def answer(self, typed: str) -> tuple[Path, ...]:
        path = parse_typed_path(typed)
        replace = path == self._replaceable
        target = delivery_path(self.app, path)
        try:
            files = await asyncio.to_thread(save_tables, self._tables, target, replace=replace)
        except FileExistsError:
            self._replaceable = path
            raise ValueError(f"{path} already exists; press enter again to replace it") from None
        return tuple(files)


ExistingChoice = Literal["skip", "overwrite", "rename"]

MAX_SHOWN_NAMES = 4


class FileConflictScreen(ChoiceScreen[ExistingChoice | None]):
    """Asks what to do with existing files of different content: skip, overwrite, or keep both."""

    def __init__(self, folder: str, names: Sequence[str]) -> None:
        file_count = len(names)
        shown_names = [sanitize(name) for name in names[:MAX_SHOWN_NAMES]]
        if file_count > MAX_SHOWN_NAMES:
            shown_names.append(f"and {file_count - MAX_SHOWN_NAMES:,} more")
        subject = counted(file_count, "file already exists", "files already exist")
        choices: tuple[Choice[ExistingChoice | None], ...] = (
            Choice("skip", "s", "Skip", "skip"),
            Choice("rename", "b", "Keep both", "rename"),
            Choice("overwrite", "o", "Overwrite", "overwrite"),
            Choice("cancel", "escape,q,n", "Cancel", None),
        )
        details = f"In {sanitize(folder)}:\n" + "\n".join(shown_names)
        question = f"{subject} with different content"
        super().__init__(question, details, choices, safest_id="skip", dangerous_id="overwrite")


class ChoiceList(OptionList):
    """An OptionList with the dashboard's list keys, and with enter among the key hints."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "choose"),
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
        Binding("g", "first", show=False),
        Binding("G", "last", show=False),
    ]

    def on_mount(self) -> None:
        if self.highlighted is None:
            self.action_first()

    def _move_page(self, direction: Literal[-1, 1]) -> None:
        """Move by a page; do nothing before the layout, when the list has no lines."""
        if self.scrollable_content_region:
            super()._move_page(direction)
