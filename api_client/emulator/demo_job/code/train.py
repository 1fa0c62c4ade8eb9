"""Train a linear classifier on images of handwritten digits, one process per node.

Reads two environment variables besides the documented BT_ variables: ``STEPS`` (number of steps) and
``PACE_S`` (minimum seconds per step, because the job is a guest on somebody's laptop). A resumed job
continues from the newest checkpoint in ``BT_LOAD_CHECKPOINT_DIR``. It runs on any Python since 3.9.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import sys
import time
import zlib
from array import array
from datetime import timedelta
from multiprocessing.connection import Client, Connection, Listener
from operator import mul
from pathlib import Path
from typing import Any

PIXELS, CLASSES = 64, 10
WEIGHTS = CLASSES * PIXELS
PARAMETERS = WEIGHTS + CLASSES
BATCH_SIZE = 64
"""Images per rank and training step."""
SEED = 20

Example = tuple[list[float], int]
"""An image's 64 pixels from 0 to 1, row by row, and its digit."""


def load_digits() -> list[Example]:
    """Load the images that ship with the package (see DATA.md), shuffled."""
    with gzip.open(Path(__file__).with_name("digits.csv.gz"), "rt") as lines:
        rows = [[int(number) for number in line.split(",")] for line in lines]
    random.Random(SEED).shuffle(rows)
    return [([pixel / 16 for pixel in row[:PIXELS]], row[PIXELS]) for row in rows]


def probabilities(parameters: array[float], image: list[float]) -> list[float]:
    """Return the probability of each class."""
    scores = [
        parameters[WEIGHTS + digit] + sum(map(mul, parameters[digit * PIXELS : (digit + 1) * PIXELS], image))
        for digit in range(CLASSES)
    ]
    exponentials = [math.exp(score - max(scores)) for score in scores]
    return [exponential / sum(exponentials) for exponential in exponentials]


def loss_and_gradient(parameters: array[float], batch: list[Example]) -> tuple[float, array[float]]:
    """Return the mean cross-entropy of a batch and its gradient, flat like the parameters."""
    gradient, loss = array("d", bytes(8 * PARAMETERS)), 0.0
    for image, digit in batch:
        class_probabilities = probabilities(parameters, image)
        loss -= math.log(max(class_probabilities[digit], 1e-12)) / len(batch)
        for label, probability in enumerate(class_probabilities):
            delta = (probability - (label == digit)) / len(batch)
            gradient[WEIGHTS + label] += delta
            for index, value in enumerate(image, label * PIXELS):
                gradient[index] += delta * value
    return loss, gradient


def connect(rank: int, world_size: int) -> list[Connection]:
    """Connect the leader (rank 0) to all other ranks, or another rank to the leader; return the connections.

    The leader listens at BT_LEADER_ADDR, on MASTER_PORT or a port derived from the job id.
    """
    job_id = os.environ.get("BT_TRAINING_JOB_ID", "")
    # Below 32768, where operating systems start to number outgoing connections.
    port = int(os.environ.get("MASTER_PORT") or 20_000 + zlib.crc32(job_id.encode()) % 12_000)
    address = (os.environ.get("BT_LEADER_ADDR", "127.0.0.1"), port)
    if not rank:
        with Listener(address, backlog=world_size) as listener:
            return [listener.accept() for _ in range(world_size - 1)]
    for _ in range(1200):
        try:
            return [Client(address)]
        except ConnectionError:
            time.sleep(0.1)
    raise OSError("the leader cannot be reached")


def safetensors_bytes(parameters: array[float]) -> bytes:
    """Encode the parameters as 32-bit floats: the header's length, the header as JSON, then the data."""
    tensor_bytes, weights_end = array("f", parameters).tobytes(), 4 * WEIGHTS
    header = {
        "linear.weight": {"dtype": "F32", "shape": [CLASSES, PIXELS], "data_offsets": [0, weights_end]},
        "linear.bias": {"dtype": "F32", "shape": [CLASSES], "data_offsets": [weights_end, len(tensor_bytes)]},
    }
    header_json = json.dumps(header).encode()
    header_json += b" " * (-len(header_json) % 8)
    return len(header_json).to_bytes(8, "little") + header_json + tensor_bytes


def newest_checkpoint(root: Path) -> tuple[array[float], int]:
    """Return the parameters and the step of the newest checkpoint in a folder."""
    files = {int(file.parent.name[len("checkpoint-") :]): file for file in root.rglob("model.safetensors")}
    step = max(files)
    content = files[step].read_bytes()
    log(f"INFO resuming from {files[step].parent.name}")
    return array("d", array("f", content[8 + int.from_bytes(content[:8], "little") :])), step


class Trainer:
    """The training loop of a rank: all ranks have the same parameters, and each draws its own batches."""

    def __init__(self, rank: int, world_size: int, steps: int, checkpoint_folder: str | None) -> None:
        self._rank = rank
        self._steps = steps
        self._peers = connect(rank, world_size)
        digits = load_digits()
        evaluation_count = len(digits) // 5
        self._training_examples, self._evaluation_examples = (
            digits[evaluation_count:],
            digits[:evaluation_count],
        )
        self._steps_per_epoch = len(self._training_examples) / (world_size * BATCH_SIZE)
        self._parameters, self._resumed_step = array("d", bytes(8 * PARAMETERS)), 0
        if checkpoint_folder:
            self._parameters, self._resumed_step = newest_checkpoint(Path(checkpoint_folder))
        self._history: list[dict[str, float]] = []
        self._losses: list[float] = []
        self._started_s = time.monotonic()
        log(f"INFO rank {rank}: {world_size} ranks, training on {len(self._training_examples)} images")

    def run(self, pace_s: float, checkpoints: str | None) -> None:
        steps, save_every = self._steps, min(100, max(1, self._steps // 4))
        for step in range(self._resumed_step + 1, steps + 1):
            # Half a cosine, down to a tenth of the first value.
            learning_rate = 0.275 + 0.225 * math.cos(math.pi * step / steps)
            grad_norm = self._train_step(step, learning_rate)
            if self._rank == 0 and (step % 10 == 0 or step == steps):
                self._report(step, grad_norm, learning_rate)
            if self._rank == 0 and (step % 100 == 0 or step == steps):
                self._evaluate(step)
            if checkpoints and (step % save_every == 0 or step == steps):
                self._save(Path(checkpoints, f"checkpoint-{step}"), step)
            time.sleep(max(0.0, self._started_s + (step - self._resumed_step) * pace_s - time.monotonic()))
        if self._rank == 0 and self._history:
            runtime_s = round(time.monotonic() - self._started_s, 1)
            log({"train_runtime": runtime_s, "train_loss": self._history[-1]["loss"]})

    def _train_step(self, step: int, learning_rate: float) -> float:
        """Update the parameters; return the norm of the gradient."""
        images = random.Random(f"{SEED} {step} {self._rank}").sample(self._training_examples, BATCH_SIZE)
        loss, gradient = loss_and_gradient(self._parameters, images)
        gradient.append(loss)  # travels with the gradient, so that rank 0 reports the mean over all ranks
        mean = self._average(gradient)
        self._losses.append(mean.pop())
        for index, derivative in enumerate(mean):
            self._parameters[index] -= learning_rate * derivative
        return math.sqrt(sum(map(mul, mean, mean)))

    def _average(self, values: array[float]) -> array[float]:
        """Return the element-wise mean over all ranks, which the leader computes."""
        if self._rank:
            self._peers[0].send_bytes(values)
            return array("d", self._peers[0].recv_bytes())
        all_values = [values, *(array("d", peer.recv_bytes()) for peer in self._peers)]
        mean = array("d", [sum(values) / len(all_values) for values in zip(*all_values)])  # noqa: B905 (Python 3.10)
        for peer in self._peers:
            peer.send_bytes(mean)
        return mean

    def _report(self, step: int, grad_norm: float, learning_rate: float) -> None:
        steps, elapsed_s = self._steps, time.monotonic() - self._started_s
        bar, speed = "█" * round(10 * step / steps), (step - self._resumed_step) / elapsed_s
        times = (timedelta(seconds=int(seconds)) for seconds in (elapsed_s, (steps - step) / speed))
        log(f"{step / steps:4.0%}|{bar:10}| {step}/{steps} [{'<'.join(map(str, times))}, {speed:.2f}it/s]")
        entry = {
            "loss": round(sum(self._losses) / len(self._losses), 4),
            "grad_norm": round(grad_norm, 4),
            "learning_rate": float(f"{learning_rate:.4g}"),
            "epoch": round(step / self._steps_per_epoch, 2),
        }
        self._losses.clear()
        self._history.append({**entry, "step": step})
        log(entry)

    def _evaluate(self, step: int) -> None:
        predictions = [
            (probabilities(self._parameters, image), digit) for image, digit in self._evaluation_examples
        ]
        loss = -sum(math.log(max(prediction[digit], 1e-12)) for prediction, digit in predictions) / len(
            predictions
        )
        accuracy = sum(prediction.index(max(prediction)) == digit for prediction, digit in predictions) / len(
            predictions
        )
        epoch = round(step / self._steps_per_epoch, 2)
        log({"eval_loss": round(loss, 4), "eval_accuracy": round(accuracy, 4), "epoch": epoch})

    def _save(self, folder: Path, step: int) -> None:
        """Write a checkpoint: rank 0 the model, every rank its own state."""
        folder.mkdir(parents=True)
        files: dict[str, Any] = {f"rank_state_{self._rank}.json": {"rank": self._rank, "step": step}}
        if self._rank == 0:
            (folder / "model.safetensors").write_bytes(safetensors_bytes(self._parameters))
            files["config.json"] = {"model_type": "digits", "input_size": PIXELS, "num_labels": CLASSES}
            state = {"global_step": step, "max_steps": self._steps, "log_history": self._history}
            files["trainer_state.json"] = state
            log(f"INFO Saving model checkpoint to {folder}")
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content, indent=2) + "\n")


def log(text: Any) -> None:
    print(text, flush=True)  # noqa: T201 (a job's standard output is its log)


def main() -> None:
    os.nice(5)
    rank, world_size = int(os.environ.get("BT_NODE_RANK", "0")), int(os.environ.get("BT_GROUP_SIZE", "1"))
    try:
        steps, checkpoint_folder = (
            int(os.environ.get("STEPS", "2800")),
            os.environ.get("BT_LOAD_CHECKPOINT_DIR"),
        )
        trainer = Trainer(rank, world_size, steps, checkpoint_folder)
        trainer.run(float(os.environ.get("PACE_S", "0.5")), os.environ.get("BT_CHECKPOINT_DIR"))
    except (OSError, EOFError) as error:
        sys.exit(f"ERROR lost the connection to the other ranks: {error or type(error).__name__}")


if __name__ == "__main__":
    main()
