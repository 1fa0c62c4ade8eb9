"""The training data: images of handwritten digits that ship with the package (see DATA.md)."""

from __future__ import annotations

import gzip
import random
from dataclasses import dataclass
from pathlib import Path

SIDE = 8
"""Width and height of an image in pixels."""
PIXELS = SIDE * SIDE
CLASSES = 10
DARKEST = 16.0
EVALUATION_SHARE = 5
"""Keep 1/`EVALUATION_SHARE` of the images for evaluation."""

Image = list[float]
"""64 pixels, row by row, each from 0 to 1."""


@dataclass(frozen=True)
class Digits:
    """Labeled images for training and for evaluation."""

    training: list[tuple[Image, int]]
    evaluation: list[tuple[Image, int]]


def load_digits(seed: int) -> Digits:
    """Load and shuffle the data; the same seed gives the same order."""
    with gzip.open(Path(__file__).with_name("digits.csv.gz"), "rt") as lines:
        rows = [[int(number) for number in line.split(",")] for line in lines]
    examples = [([pixel / DARKEST for pixel in row[:PIXELS]], row[PIXELS]) for row in rows]
    random.Random(seed).shuffle(examples)
    held_out = len(examples) // EVALUATION_SHARE
    return Digits(training=examples[held_out:], evaluation=examples[:held_out])


def shifted(image: Image, right: int, down: int) -> Image:
    """Shift the image by whole pixels; pixels that move in from the edge are empty."""
    moved = [0.0] * PIXELS
    for row in range(max(0, down), min(SIDE, SIDE + down)):
        for column in range(max(0, right), min(SIDE, SIDE + right)):
            moved[row * SIDE + column] = image[(row - down) * SIDE + column - right]
    return moved


def epoch_order(count: int, epoch: int, *, rank: int, ranks: int, seed: int) -> list[int]:
    """Return a rank's share of the shuffled epoch. Shares are disjoint and have equal length."""
    order = list(range(count))
    random.Random(seed * 1_000_003 + epoch).shuffle(order)
    share = count // ranks
    return order[rank * share : (rank + 1) * share]
