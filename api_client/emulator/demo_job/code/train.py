"""Train a linear classifier on images of handwritten digits, one process per node.

Reads two environment variables besides the documented BT_ ones: ``STEPS`` (number of steps) and
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
BATCH = 64
"""Images per rank and step."""
SEED = 20

Example = tuple[list[float], int]
"""64 pixels from 0 to 1, row by row, and the digit."""


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
    powers = [math.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


def loss_and_gradient(parameters: array[float], batch: list[Example]) -> tuple[float, array[float]]:
    """Return the mean cross-entropy of a batch and its gradient, flat like the parameters."""
    gradient, loss = array("d", bytes(8 * PARAMETERS)), 0.0
    for image, digit in batch:
        answers = probabilities(parameters, image)
        loss -= math.log(max(answers[digit], 1e-12)) / len(batch)
        for answer, probability in enumerate(answers):
            delta = (probability - (answer == digit)) / len(batch)
            gradient[WEIGHTS + answer] += delta
            for index, value in enumerate(image, answer * PIXELS):
                gradient[index] += delta * value
    return loss, gradient


def connected(rank: int, ranks: int) -> list[Connection]:
    """Return the leader's connections to all other ranks, or another rank's to the leader.

    The leader listens at BT_LEADER_ADDR, on MASTER_PORT or a port derived from the job id.
    """
    job_id = os.environ.get("BT_TRAINING_JOB_ID", "")
    # Below the ports that systems give to outgoing connections.
    port = int(os.environ.get("MASTER_PORT") or 20_000 + zlib.crc32(job_id.encode()) % 12_000)
    address = (os.environ.get("BT_LEADER_ADDR", "127.0.0.1"), port)
    if not rank:
        with Listener(address, backlog=ranks) as listener:
            return [listener.accept() for _ in range(ranks - 1)]
    for _ in range(1200):
        try:
            return [Client(address)]
        except ConnectionError:
            time.sleep(0.1)
    raise OSError("the leader cannot be reached")


def safetensors_bytes(parameters: array[float]) -> bytes:
    """Encode the parameters as 32-bit floats: the header's length, the header as JSON, then the data."""
    data, split = array("f", parameters).tobytes(), 4 * WEIGHTS
    header = {
        "linear.weight": {"dtype": "F32", "shape": [CLASSES, PIXELS], "data_offsets": [0, split]},
        "linear.bias": {"dtype": "F32", "shape": [CLASSES], "data_offsets": [split, len(data)]},
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def newest_checkpoint(root: Path) -> tuple[array[float], int]:
    """Return the parameters and the step of the newest checkpoint in a folder."""
    files = {int(file.parent.name[len("checkpoint-") :]): file for file in root.rglob("model.safetensors")}
    step = max(files)
    content = files[step].read_bytes()
    say(f"INFO resuming from {files[step].parent.name}")
    return array("d", array("f", content[8 + int.from_bytes(content[:8], "little") :])), step


class Trainer:
    """The training loop of a rank: all ranks have the same parameters, each has its own images."""

    def __init__(self, rank: int, ranks: int, steps: int, loaded: str | None) -> None:
        self._rank = rank
        self._steps = steps
        self._peers = connected(rank, ranks)
        digits = load_digits()
        held_out = len(digits) // 5
        self._training, self._evaluation = digits[held_out:], digits[:held_out]
        self._steps_per_epoch = len(self._training) / (ranks * BATCH)
        self._parameters, self._done = array("d", bytes(8 * PARAMETERS)), 0
        if loaded:
            self._parameters, self._done = newest_checkpoint(Path(loaded))
        self._history: list[dict[str, float]] = []
        self._losses: list[float] = []
        self._began = time.monotonic()
        say(f"INFO rank {rank}: {ranks} ranks, training on {len(self._training)} images")

    def run(self, pace_s: float, checkpoints: str | None) -> None:
        steps, save_every = self._steps, min(100, max(1, self._steps // 4))
        for step in range(self._done + 1, steps + 1):
            # Half a cosine, down to a tenth.
            rate = 0.275 + 0.225 * math.cos(math.pi * step / steps)
            norm = self._step(step, rate)
            if self._rank == 0 and (step % 10 == 0 or step == steps):
                self._report(step, norm, rate)
            if self._rank == 0 and (step % 100 == 0 or step == steps):
                self._evaluate(step)
            if checkpoints and (step % save_every == 0 or step == steps):
                self._save(Path(checkpoints, f"checkpoint-{step}"), step)
            time.sleep(max(0.0, self._began + (step - self._done) * pace_s - time.monotonic()))
        if self._rank == 0 and self._history:
            runtime_s = round(time.monotonic() - self._began, 1)
            say({"train_runtime": runtime_s, "train_loss": self._history[-1]["loss"]})

    def _step(self, step: int, rate: float) -> float:
        """Update the parameters; return the norm of the gradient."""
        images = random.Random(f"{SEED} {step} {self._rank}").sample(self._training, BATCH)
        loss, gradient = loss_and_gradient(self._parameters, images)
        gradient.append(loss)  # travels with the gradient, so that rank 0 reports the mean over all ranks
        mean = self._average(gradient)
        self._losses.append(mean.pop())
        for index, slope in enumerate(mean):
            self._parameters[index] -= rate * slope
        return math.sqrt(sum(map(mul, mean, mean)))

    def _average(self, values: array[float]) -> array[float]:
        """Return the element-wise mean over all ranks, which the leader computes."""
        if self._rank:
            self._peers[0].send_bytes(values)
            return array("d", self._peers[0].recv_bytes())
        parts = [values, *(array("d", peer.recv_bytes()) for peer in self._peers)]
        mean = array("d", [sum(column) / len(parts) for column in zip(*parts)])  # noqa: B905 (since Python 3.10)
        for peer in self._peers:
            peer.send_bytes(mean)
        return mean

    def _report(self, step: int, norm: float, rate: float) -> None:
        steps, elapsed_s = self._steps, time.monotonic() - self._began
        bar, speed = "█" * round(10 * step / steps), (step - self._done) / elapsed_s
        times = (timedelta(seconds=int(seconds)) for seconds in (elapsed_s, (steps - step) / speed))
        say(f"{step / steps:4.0%}|{bar:10}| {step}/{steps} [{'<'.join(map(str, times))}, {speed:.2f}it/s]")
        entry = {
            "loss": round(sum(self._losses) / len(self._losses), 4),
            "grad_norm": round(norm, 4),
            "learning_rate": float(f"{rate:.4g}"),
            "epoch": round(step / self._steps_per_epoch, 2),
        }
        self._losses.clear()
        self._history.append({**entry, "step": step})
        say(entry)

    def _evaluate(self, step: int) -> None:
        answers = [(probabilities(self._parameters, image), digit) for image, digit in self._evaluation]
        loss = -sum(math.log(max(answer[digit], 1e-12)) for answer, digit in answers) / len(answers)
        right = sum(answer.index(max(answer)) == digit for answer, digit in answers) / len(answers)
        epoch = round(step / self._steps_per_epoch, 2)
        say({"eval_loss": round(loss, 4), "eval_accuracy": round(right, 4), "epoch": epoch})

    def _save(self, folder: Path, step: int) -> None:
        """Write a checkpoint: rank 0 the model, every rank its own state."""
        folder.mkdir(parents=True)
        files: dict[str, Any] = {f"rank_state_{self._rank}.json": {"rank": self._rank, "step": step}}
        if self._rank == 0:
            (folder / "model.safetensors").write_bytes(safetensors_bytes(self._parameters))
            files["config.json"] = {"model_type": "digits", "input_size": PIXELS, "num_labels": CLASSES}
            state = {"global_step": step, "max_steps": self._steps, "log_history": self._history}
            files["trainer_state.json"] = state
            say(f"INFO Saving model checkpoint to {folder}")
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content, indent=2) + "\n")


def say(text: Any) -> None:
    print(text, flush=True)  # noqa: T201 (a job's standard output is its log)


def main() -> None:
    os.nice(5)
    rank, ranks = int(os.environ.get("BT_NODE_RANK", "0")), int(os.environ.get("BT_GROUP_SIZE", "1"))
    try:
        steps, loaded = int(os.environ.get("STEPS", "2800")), os.environ.get("BT_LOAD_CHECKPOINT_DIR")
        trainer = Trainer(rank, ranks, steps, loaded)
        trainer.run(float(os.environ.get("PACE_S", "0.5")), os.environ.get("BT_CHECKPOINT_DIR"))
    except (OSError, EOFError) as error:
        sys.exit(f"ERROR lost the other ranks: {error or type(error).__name__}")


if __name__ == "__main__":
    main()
