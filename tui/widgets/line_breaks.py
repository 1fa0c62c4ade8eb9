"""Where a long line of text is broken into rows."""

from __future__ import annotations

from rich.cells import chop_cells

HANGING_CELLS = 2
"""Rows after the first stand so much further in than the line does."""

PARTS_OF_NAMES = "-_/:=,"
"""A name too long for a row is broken after one of these."""

Row = tuple[int, int]
"""Of a row, the characters of the line that it shows: the first, and the one after the last."""


def hanging_cells(text: str, cells: int) -> int:
    """How far in the rows after the first stand, where nothing else is wanted."""
    return min(len(text) - len(text.lstrip(" ")) + HANGING_CELLS, cells // 2)


def break_line(text: str, cells: int, hanging: int) -> list[Row]:
    """The rows of an inert line, of at most ``cells``, those after the first of ``hanging`` fewer.

    Broken between words, else between the parts of a name, where a row of half the cells or more comes of it;
    spaces there are shown nowhere.
    """
    rows: list[Row] = []
    begin, room = 0, cells
    while True:
        piece = text[begin : begin + room]
        # Marks alone take no cells, and are no piece.
        pieces = [piece] if piece.isascii() else chop_cells(piece, room) or [piece]
        end = begin + max(1, len(pieces[0]))
        if end >= len(text):
            return [*rows, (begin, len(text))]
        space = text.rfind(" ", begin + room // 2, end + 1)
        part = max(text.rfind(sign, begin + room // 2, end) for sign in PARTS_OF_NAMES) + 1
        if space > begin and not text[begin:space].isspace():
            end = space
        elif part > begin:
            end = part
        rows.append((begin, end))
        begin = end
        while begin < len(text) and text[begin] == " ":
            begin += 1
        if begin == len(text):
            return rows
        room = max(1, cells - hanging)
