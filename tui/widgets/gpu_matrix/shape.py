"""How nodes are laid out: a line each while they fit, else several in a line, smaller and smaller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Density = Literal["lines", "blocks", "braille"]
"""`lines`: a line a node, with name, mean and remark. `blocks`: several nodes in a line, a block a GPU.
`braille`: likewise with two GPUs in a cell."""

LABEL_GAP = 1
GAP_CELLS = 1
"""Between nodes in a line: the place of their sign."""

_LINE_CELLS = 14  # below that many cells beside the GPUs, a line says too little about its node


@dataclass(frozen=True, slots=True)
class Shape:
    """Where nodes are drawn.

    ``across`` nodes lie in a line, ``node_cells`` wide each (their gap included), after ``label_cells``;
    ``lines`` is how many lines they take in all.
    """

    density: Density
    across: int
    node_cells: int
    label_cells: int
    lines: int

    def line_of(self, index: int) -> int:
        """The line, from 0, of a node."""
        return index // self.across

    def node_at(self, line: int, column: int) -> int | None:
        """The number of the node at a cell of a line; None beside the nodes."""
        if self.density == "lines":
            return line
        place = (column - self.label_cells) // self.node_cells
        return line * self.across + place if 0 <= place < self.across else None


def shape_for(nodes: int, gpus: int, label_cells: int, width: int, height: int) -> Shape:
    """The least dense layout in which all nodes fit into ``height`` lines; the densest when none does.

    Args:
        nodes: how many there are.
        gpus: the most that any node has.
        label_cells: how wide the widest short name is.
        width: cells.
        height: lines, without header and summary.
    """
    plain = Shape("lines", 1, width, 0, nodes)
    if nodes <= height or gpus == 0 or nodes == 0:
        return plain
    best = plain
    for density, cells in (("blocks", gpus), ("braille", -(-gpus // 2))):
        node_cells = cells + GAP_CELLS
        across = max(0, (width - label_cells - LABEL_GAP) // node_cells)
        across = _round(min(across, nodes))
        if not across:
            continue
        best = Shape(density, across, node_cells, label_cells + LABEL_GAP, -(-nodes // across))  # type: ignore[arg-type]
        if best.lines <= height:
            return best
    return best


def _round(across: int) -> int:
    """Down to a number whose multiples are easy to count: 4, 8, 10, 16 and the like."""
    return max((many for many in (1, 2, 4, 5, 8, 10, 16, 20, 32, 64) if many <= across), default=0)
