"""Aligned columns of text: as wide as the content when piped, fitted to the width of a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tui.insight.text import cell_width, clip, inert

COLUMN_GAP = "  "
NOTHING = "–"
"""What stands for a value that is not there."""
SMALLEST_SHRUNK_CELLS = 8

Paint = Callable[[str, str | None], str]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: ``shrinks`` marks those whose text may be clipped when the terminal is narrow."""

    title: str
    right: bool = False
    shrinks: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: text of any origin, and the name of its tone."""

    text: str
    tone: str | None = None


def render_table(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *, width_cells: int | None, paint: Paint
) -> str:
    """The table with its header, every line ended; ``width_cells`` None means no limit."""
    texts = [[inert(cell.text) for cell in row] for row in rows]
    titles = [inert(column.title) for column in columns]
    widths = [
        max([cell_width(title), *(cell_width(row[index]) for row in texts)])
        for index, title in enumerate(titles)
    ]
    if width_cells is not None:
        widths = _fit(columns, widths, width_cells)
    lines = [_line(columns, titles, ["muted"] * len(columns), widths, paint)]
    for row, row_texts in zip(rows, texts, strict=True):
        lines.append(_line(columns, row_texts, [cell.tone for cell in row], widths, paint))
    return "".join(line + "\n" for line in lines)


def render_facts(facts: Sequence[tuple[str, Cell]], *, paint: Paint) -> str:
    """Two columns, ``name  value``, every line ended; the values are never clipped."""
    names = [inert(name) for name, _cell in facts]
    width = max(map(cell_width, names), default=0)
    return "".join(
        f"{paint(name + ' ' * (width - cell_width(name)), 'muted')}{COLUMN_GAP}"
        f"{paint(inert(cell.text), cell.tone)}\n"
        for name, (_name, cell) in zip(names, facts, strict=True)
    )


def _fit(columns: Sequence[Column], widths: Sequence[int], width_cells: int) -> list[int]:
    """Take cells from the widest shrinking column, one after the other, until the line fits."""
    fitted = list(widths)
    surplus = sum(fitted) + len(COLUMN_GAP) * (len(fitted) - 1) - width_cells
    while surplus > 0:
        candidates = [
            index
            for index, column in enumerate(columns)
            if column.shrinks and fitted[index] > SMALLEST_SHRUNK_CELLS
        ]
        if not candidates:
            break
        fitted[max(candidates, key=fitted.__getitem__)] -= 1
        surplus -= 1
    return fitted


def _line(
    columns: Sequence[Column],
    texts: Sequence[str],
    tones: Sequence[str | None],
    widths: Sequence[int],
    paint: Paint,
) -> str:
    pieces = []
    for column, text, tone, width in zip(columns, texts, tones, widths, strict=True):
        shown = clip(text, width)
        padding = " " * (width - cell_width(shown))
        painted = paint(shown, tone)
        pieces.append(padding + painted if column.right else painted + padding)
    return COLUMN_GAP.join(pieces).rstrip()
