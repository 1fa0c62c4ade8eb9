"""What a row of a log view shows: a line, a gap marker, or a fold of lines."""

from __future__ import annotations

from typing import NamedTuple

from tui.widgets.log_view.fold_book import FoldKind


class Face(NamedTuple):
    """Everything a row's look depends on but its texts; so it is the key under which that is remembered.

    Attributes:
        seq: the number of the line in whose place the row is.
        shown: the number of the line whose text is shown.
        fold: why lines are folded here; empty for a line that stands for itself.
        lines: how many lines the row stands for.
        is_open: whether the fold's lines are all shown.
        pretty: whether an object in the message is spread over several rows.
    """

    seq: int
    shown: int
    fold: FoldKind | None = None
    lines: int = 1
    is_open: bool = False
    pretty: bool = False


class Marks(NamedTuple):
    """What the reader put on a row, or did to it.

    Attributes:
        cursor: the reader's line.
        selected: among the selected lines.
        bookmark: marked.
        match: where the search has come to.
    """

    cursor: bool = False
    selected: bool = False
    bookmark: bool = False
    match: bool = False
