"""A perceptron with one hidden layer and its gradients, in plain Python."""

from __future__ import annotations

import math
import random
from array import array
from dataclasses import dataclass
from operator import mul

from .digits import CLASSES, PIXELS, Image

HIDDEN = 64

_OFFSETS = (0, HIDDEN * PIXELS, HIDDEN * PIXELS + HIDDEN, HIDDEN * PIXELS + HIDDEN + CLASSES * HIDDEN)
PARAMETERS = _OFFSETS[3] + CLASSES


@dataclass(frozen=True)
class ParameterSlice:
    """A named slice of the flat parameter array."""

    name: str
    shape: tuple[int, ...]
    start: int

    @property
    def end(self) -> int:
        return self.start + math.prod(self.shape)


TENSORS = (
    ParameterSlice("hidden.weight", (HIDDEN, PIXELS), _OFFSETS[0]),
    ParameterSlice("hidden.bias", (HIDDEN,), _OFFSETS[1]),
    ParameterSlice("output.weight", (CLASSES, HIDDEN), _OFFSETS[2]),
    ParameterSlice("output.bias", (CLASSES,), _OFFSETS[3]),
)


class DigitNetwork:
    """64 pixels → 64 ReLU units → 10 classes; all parameters are in one flat array of doubles."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self.parameters = array("d", bytes(8 * PARAMETERS))
        for tensor, inputs in ((TENSORS[0], PIXELS), (TENSORS[2], HIDDEN)):
            spread = math.sqrt(2.0 / inputs)
            for index in range(tensor.start, tensor.end):
                self.parameters[index] = chance.gauss(0.0, spread)

    def forward(self, image: Image) -> tuple[list[float], list[float]]:
        """Return the hidden activations and the probability of each class."""
        flat = self.parameters
        hidden_bias, output, output_bias = _OFFSETS[1], _OFFSETS[2], _OFFSETS[3]
        weights = (flat[unit * PIXELS : (unit + 1) * PIXELS] for unit in range(HIDDEN))
        hidden = [
            max(0.0, bias + sum(map(mul, row, image)))
            for row, bias in zip(weights, flat[hidden_bias:output], strict=True)
        ]
        scores = [
            flat[output_bias + digit]
            + sum(map(mul, flat[output + digit * HIDDEN : output + (digit + 1) * HIDDEN], hidden))
            for digit in range(CLASSES)
        ]
        top = max(scores)
        powers = [math.exp(score - top) for score in scores]
        total = sum(powers)
        return hidden, [power / total for power in powers]

    def loss_and_gradient(self, batch: list[tuple[Image, int]]) -> tuple[float, array[float]]:
        """Return the mean cross-entropy of a batch and its gradient, flat like the parameters."""
        flat = self.parameters
        gradient = array("d", bytes(8 * PARAMETERS))
        output = _OFFSETS[2]
        loss = 0.0
        scale = 1.0 / len(batch)
        for image, digit in batch:
            hidden, probabilities = self.forward(image)
            loss -= math.log(max(probabilities[digit], 1e-12)) * scale
            back = [0.0] * HIDDEN
            for answer, probability in enumerate(probabilities):
                delta = (probability - (answer == digit)) * scale
                gradient[_OFFSETS[3] + answer] += delta
                start = output + answer * HIDDEN
                for unit, activation in enumerate(hidden):
                    if activation:
                        gradient[start + unit] += delta * activation
                        back[unit] += delta * flat[start + unit]
            for unit, delta in enumerate(back):
                if delta:
                    gradient[_OFFSETS[1] + unit] += delta
                    start = unit * PIXELS
                    for pixel, value in enumerate(image, start):
                        if value:
                            gradient[pixel] += delta * value
        return loss, gradient

    def evaluate(self, examples: list[tuple[Image, int]]) -> tuple[float, float]:
        loss, right = 0.0, 0
        for image, digit in examples:
            _, probabilities = self.forward(image)
            loss -= math.log(max(probabilities[digit], 1e-12))
            right += probabilities.index(max(probabilities)) == digit
        return loss / len(examples), right / len(examples)
