"""A cache's files as a table for people, a line after the other: there may be 100,000."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from api_client.models.cache_listing import ListedPath
from tui.commands.official_options import LocalTimes
from tui.commands.output import Output
from tui.commands.tables import COLUMN_GAP
from tui.insight.text import cell_width, inert
from tui.insight.units import bytes_iec

UNKNOWN = "Unknown"
DIRECTORY = "directory"


def table_lines(files: Sequence[ListedPath], output: Output) -> Iterator[str]:
    """The header and a line for each file, every one ended.

    They are what ``tables.render_table`` makes of these columns; but that keeps every cell of a table at
    once, and looks at words again that all files share.
    """
    times = LocalTimes()
    size_cells = max(len("SIZE"), *(len(bytes_iec(file.size_bytes)) for file in files))
    when_cells = _widest("MODIFIED", {_when_width_key(times.of(file.modified)) for file in files})
    kind_cells = _widest("TYPE", {file.file_type or UNKNOWN for file in files})
    mode_cells = _widest("PERMISSIONS", {file.permissions or UNKNOWN for file in files})
    kinds: dict[str, str] = {}
    modes: dict[str, str] = {}

    header = (
        _cell("SIZE", size_cells, right=True),
        _cell("MODIFIED", when_cells),
        _cell("TYPE", kind_cells),
        _cell("PERMISSIONS", mode_cells),
    )
    yield COLUMN_GAP.join(output.paint(title, "muted") for title in (*header, "PATH")) + "\n"
    for file in files:
        kind, mode = file.file_type or UNKNOWN, file.permissions or UNKNOWN
        if kind not in kinds:
            kinds[kind] = _cell(kind, kind_cells)
        if mode not in modes:
            modes[mode] = output.paint(_cell(mode, mode_cells), "muted")
        when = output.paint(_cell(times.of(file.modified), when_cells), "muted")
        path = inert(file.path)
        if kind == DIRECTORY:
            path = output.paint(path, "strong")
        yield (
            f"{bytes_iec(file.size_bytes):>{size_cells}}{COLUMN_GAP}{when}{COLUMN_GAP}{kinds[kind]}"
            f"{COLUMN_GAP}{modes[mode]}{COLUMN_GAP}{path}\n"
        )


_DIGITS = str.maketrans("123456789", "0" * 9)


def _when_width_key(when: str) -> str:
    """Times differ in their digits alone: a hundred thousand become one word to measure."""
    return when.translate(_DIGITS)


def _widest(title: str, texts: Iterable[str]) -> int:
    return max(len(title), *(cell_width(inert(text)) for text in texts))


def _cell(text: str, cells: int, *, right: bool = False) -> str:
    shown = inert(text)
    padding = " " * (cells - cell_width(shown))
    return padding + shown if right else shown + padding
