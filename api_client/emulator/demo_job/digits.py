"""The data: handwritten digits that ship with the package (see DATA.md)."""

from __future__ import annotations

import gzip
import random
from dataclasses import dataclass
from pathlib import Path

SIDE = 8
"""Pixels of an image's side."""
PIXELS = SIDE * SIDE
CLASSES = 10
DARKEST = 16.0
EVALUATION_SHARE = 5
"""One image in this many is kept for evaluation."""

Image = list[float]
"""64 pixels, row by row, each 0–1."""


@dataclass(frozen=True)
class Digits:
    """Images and their digits, for training and for evaluation."""

    training: list[tuple[Image, int]]
    evaluation: list[tuple[Image, int]]


def load_digits(seed: int) -> Digits:
    """Read and shuffle the data; the same seed gives the same order."""
    with gzip.open(Path(__file__).with_name("digits.csv.gz"), "rt") as lines:
        rows = [[int(number) for number in line.split(",")] for line in lines]
    examples = [([pixel / DARKEST for pixel in row[:PIXELS]], row[PIXELS]) for row in rows]
    random.Random(seed).shuffle(examples)
    held_out = len(examples) // EVALUATION_SHARE
    return Digits(training=examples[held_out:], evaluation=examples[:held_out])


def shifted(image: Image, right: int, down: int) -> Image:
    """The image moved by whole pixels; what comes in from the edge is empty."""
    moved = [0.0] * PIXELS
    for row in range(max(0, down), min(SIDE, SIDE + down)):
        for column in range(max(0, right), min(SIDE, SIDE + right)):
            moved[row * SIDE + column] = image[(row - down) * SIDE + column - right]
    return moved


def epoch_order(count: int, epoch: int, *, rank: int, ranks: int, seed: int) -> list[int]:
    """A rank's share of an epoch's shuffled order; all shares are of one length and disjoint."""
    order = list(range(count))
    random.Random(seed * 1_000_003 + epoch).shuffle(order)
    share = count // ranks
    return order[rank * share : (rank + 1) * share]
