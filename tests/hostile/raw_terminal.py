"""A terminal, and what a person sees of what is written there."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping

from rich.cells import cell_len

from support.terminal import DASHBOARD, AtTerminal

LINES, COLUMNS = 40, 120

_WRITTEN = re.compile(
    r"\x1b\[(?P<row>[0-9]*);?(?P<column>[0-9]*)H"
    r"|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[^\[\]]"  # looks, modes, titles
    r"|(?P<text>[^\x1b\n]+|\n)"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?)?\Z")


class Picture:
    """The characters on a terminal that only goes to places and writes there: the dashboard does no more."""

    def __init__(self) -> None:
        self._rows = [[" "] * COLUMNS for _ in range(LINES)]
        self._row = self._column = 0
        self._rest = ""

    def __str__(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self._rows)

    def write(self, text: str) -> None:
        """Take what was written next; a sequence may come in two parts."""
        text = self._rest + text
        cut = _UNFINISHED.search(text)
        self._rest = text[cut.start() :] if cut else ""
        for found in _WRITTEN.finditer(text, 0, cut.start() if cut else len(text)):
            if found["row"] is not None:
                self._row, self._column = int(found["row"] or 1) - 1, int(found["column"] or 1) - 1
            elif found["text"] == "\n":
                self._row, self._column = self._row + 1, 0
            elif found["text"] is not None:
                self._put(found["text"])

    def _put(self, text: str) -> None:
        is_plain = text.isascii() and text.isprintable()  # a cell each, and nearly all there is
        cells = [*text] if is_plain else [cell for one in text for cell in _cells_of(one)]
        if self._row < LINES:
            end = min(self._column + len(cells), COLUMNS)
            self._rows[self._row][self._column : end] = cells[: max(end - self._column, 0)]
        self._column += len(cells)


def _cells_of(character: str) -> list[str]:
    return [character, *[""] * (cell_len(character) - 1)] if cell_len(character) else []


class DrawnTerminal(AtTerminal):
    """A terminal of 120×40 on which one sees the picture that what was written makes there."""

    def __init__(
        self, *arguments: str, environ: Mapping[str, str], program: tuple[str, ...] = DASHBOARD
    ) -> None:
        super().__init__(*arguments, environ=environ, lines=LINES, columns=COLUMNS, program=program)
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self.picture = Picture()

    def take(self, chunk: bytes) -> None:
        super().take(chunk)
        self.picture.write(self._decoder.decode(chunk))

    def read_until_drawn(self, holds: Callable[[str], bool]) -> None:
        self.read_until(lambda _: holds(str(self.picture)), "that picture")

    def so_far(self) -> str:
        return str(self.picture)
