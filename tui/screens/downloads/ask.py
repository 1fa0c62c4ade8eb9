"""Two questions before a download: where to, and what about files that are there already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input

from tui.insight.text import inert, inert_lines
from tui.screens.question import Question
from tui.widgets.wrapped_text import WrappedText

ExistingChoice = Literal["skip", "overwrite", "rename"]

NAMES_SHOWN = 4


class WhereScreen(Question[Path | None]):
    """Answers with a folder, or None."""

    CSS_PATH = "ask.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "cancel", show=False)]

    def __init__(self, title: str, about: str, folder: Path) -> None:
        super().__init__()
        self._title = title
        self._about = about
        self._folder = folder

    def compose(self) -> ComposeResult:
        """What is to be downloaded, and a field for the folder."""
        with Vertical(id="box"):
            yield WrappedText(inert_lines(f"Download {self._title}"), id="question")
            yield WrappedText(inert_lines(self._about), id="about")
            yield Input(str(self._folder), id="folder", compact=True)
            yield WrappedText(id="problem")
            with Horizontal(id="buttons"):
                yield Button("Download (enter)", variant="primary", id="yes", compact=True)
                yield Button("Cancel (esc)", id="no", compact=True)

    def on_mount(self) -> None:
        """The proposal can be taken as it is."""
        self.query_one("#folder", Input).focus()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._answer()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "yes":
            self._answer()
        else:
            self.dismiss(None)

    @on(Input.Changed)
    def _changed(self) -> None:
        self.query_one("#problem", WrappedText).update("")

    def _answer(self) -> None:
        problem = self._problem_with(self.query_one("#folder", Input).value.strip())
        if isinstance(problem, Path):
            self.dismiss(problem)
        else:
            self.query_one("#problem", WrappedText).update(problem)

    def _problem_with(self, typed: str) -> Path | str:
        """The folder that was typed, or what is wrong with it."""
        if not typed:
            return "A folder is needed; . is the one you are in."
        try:
            folder = Path(typed).expanduser()
            if folder.exists() and not folder.is_dir():
                return "That is a file; a folder is needed."
        except (OSError, RuntimeError, ValueError) as error:
            return f"That is no folder: {inert(str(error))}"
        return folder.absolute()

    def action_leave(self) -> None:
        """No download."""
        self.dismiss(None)


class ExistingScreen(Question[ExistingChoice | None]):
    """Answers what becomes of files that are there already and differ."""

    CSS_PATH = "ask.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,n", "choose('')", "cancel", show=False),
        Binding("s", "choose('skip')", "skip", show=False),
        Binding("o", "choose('overwrite')", "overwrite", show=False),
        Binding("b", "choose('rename')", "both", show=False),
        Binding("left", "app.focus_previous", "previous", show=False),
        Binding("right", "app.focus_next", "next", show=False),
    ]

    def __init__(self, folder: str, names: Sequence[str]) -> None:
        super().__init__()
        self._folder = folder
        self._names = tuple(names)

    def compose(self) -> ComposeResult:
        """The files, and the choices."""
        number = len(self._names)
        shown = [inert(name) for name in self._names[:NAMES_SHOWN]]
        if number > NAMES_SHOWN:
            shown.append(f"and {number - NAMES_SHOWN:,} more")
        what = "1 file is" if number == 1 else f"{number:,} files are"
        with Vertical(id="box"):
            yield WrappedText(f"{what} there already, with other content", id="question")
            yield WrappedText(f"In {inert(self._folder)}:\n" + "\n".join(shown), id="about")
            with Horizontal(id="buttons"):
                yield Button("Skip (s)", id="skip", compact=True)
                yield Button("Keep both (b)", id="rename", compact=True)
                yield Button("Overwrite (o)", variant="error", id="overwrite", compact=True)
                yield Button("Cancel (esc)", id="cancel", compact=True)

    def on_mount(self) -> None:
        """A stray enter must do no harm."""
        self.query_one("#skip", Button).focus()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.action_choose(event.button.id or "")

    def action_choose(self, choice: str) -> None:
        """Leave with that choice."""
        choices: dict[str, ExistingChoice] = {"skip": "skip", "overwrite": "overwrite", "rename": "rename"}
        self.dismiss(choices.get(choice))
