"""What the node × GPU matrix shows: a row for each node, and the words around them."""

from __future__ import annotations

from dataclasses import dataclass

from tui.insight.series import EMPTY, Series

Shares = tuple[float | None, ...]
"""One share (0–1) a GPU; None where it is not known."""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One node (or, of one node alone, one GPU).

    Attributes:
        name: its name.
        label_note: a sign and a word such as "▲ slow"; empty for none. The sign stands alone where room
            is scarce.
        values: one share (0–1) a GPU; None where it is not known.
        mean: their mean, or None.
        history: its share over time, or that times ``Frame.full``, for a matrix that shows time.
        facts: CPU, memory, disk … as texts, in the order of ``Frame.facts``.
    """

    name: str
    label_note: str
    values: Shares
    mean: float | None
    history: Series = EMPTY
    facts: tuple[str, ...] = ()

    @property
    def sign(self) -> str:
        """The note's sign alone."""
        return self.label_note[:1]


@dataclass(frozen=True, slots=True)
class Frame:
    """What a matrix shows beside its nodes.

    Attributes:
        title: what the cells show.
        over_time: a row of history a node instead of its GPUs now.
        start: where the history begins, epoch seconds.
        end: where it ends.
        full: the value in the histories that is a share of 1.
        end_label: what its end is called.
        low_is_bad: of each cell of time the lowest value is shown, else the highest.
        facts: titles of the columns beside the cells.
        remark: a few words on all nodes together, such as the cache's size, for the header.
    """

    title: str = ""
    over_time: bool = False
    start: float = 0.0
    end: float = 0.0
    full: float = 1.0
    end_label: str = "now"
    low_is_bad: bool = True
    facts: tuple[str, ...] = ()
    remark: str = ""
