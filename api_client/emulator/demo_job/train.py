"""Train a linear classifier on images of handwritten digits, one process per node.

Reads two environment variables besides the documented BT_ ones: ``STEPS`` (number of steps) and
``PACE_S`` (minimum seconds per step, because the job is a guest on somebody's laptop).
"""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import shutil
import socket
import struct
import sys
import time
import zlib
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from operator import mul
from pathlib import Path
from typing import Any

SEED = 20
PIXELS, CLASSES, DARKEST = 64, 10, 16.0
EVALUATION_SHARE = 5
"""Keep 1/`EVALUATION_SHARE` of the images for evaluation."""
WEIGHTS = CLASSES * PIXELS
PARAMETERS = WEIGHTS + CLASSES
BATCH = 64
"""Images per rank and step."""
PEAK_LEARNING_RATE, WARMUP_STEPS = 0.5, 60
LOG_EVERY, EVALUATE_EVERY, CHECKPOINT_EVERY = 10, 100, 100
SHORT_RUN_CHECKPOINTS = 4
NICENESS = 5
TIMEOUT_S, RETRY_S = 120.0, 0.1
FIRST_PORT, PORT_RANGE = 20_000, 12_000
"""Below the ports that systems give to outgoing connections."""

Example = tuple[list[float], int]
"""64 pixels from 0 to 1, row by row, and the digit."""


def load_digits() -> tuple[list[Example], list[Example]]:
    """Load the images that ship with the package (see DATA.md): for training and for evaluation."""
    with gzip.open(Path(__file__).with_name("digits.csv.gz"), "rt") as lines:
        rows = [[int(number) for number in line.split(",")] for line in lines]
    examples = [([pixel / DARKEST for pixel in row[:PIXELS]], row[PIXELS]) for row in rows]
    random.Random(SEED).shuffle(examples)
    held_out = len(examples) // EVALUATION_SHARE
    return examples[held_out:], examples[:held_out]


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
        found = probabilities(parameters, image)
        loss -= math.log(max(found[digit], 1e-12)) / len(batch)
        for answer, probability in enumerate(found):
            delta = (probability - (answer == digit)) / len(batch)
            gradient[WEIGHTS + answer] += delta
            for index, value in enumerate(image, answer * PIXELS):
                gradient[index] += delta * value
    return loss, gradient


class Group:
    """All ranks of a run. Sums are made in rank order, so that every run gives identical bits.

    The leader listens at BT_LEADER_ADDR, on MASTER_PORT or a port derived from the job id.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.rank = int(environ.get("BT_NODE_RANK", "0"))
        self.ranks = int(environ.get("BT_GROUP_SIZE", "1"))
        job_id = environ.get("BT_TRAINING_JOB_ID", "")
        port = int(environ.get("MASTER_PORT") or FIRST_PORT + zlib.crc32(job_id.encode()) % PORT_RANGE)
        address = (environ.get("BT_LEADER_ADDR", "127.0.0.1"), port)
        self._peers = self._lead(address) if self.rank == 0 else [self._follow(address)]

    def _lead(self, address: tuple[str, int]) -> list[socket.socket]:
        if self.ranks == 1:
            return []
        with socket.create_server(address) as listener:
            listener.settimeout(TIMEOUT_S)
            peers: dict[int, socket.socket] = {}
            while len(peers) < self.ranks - 1:
                peer, _ = listener.accept()
                peer.settimeout(TIMEOUT_S)
                peers[struct.unpack("<i", _receive(peer, 4))[0]] = peer
        return [peers[rank] for rank in sorted(peers)]

    def _follow(self, address: tuple[str, int]) -> socket.socket:
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                leader = socket.create_connection(address, timeout=TIMEOUT_S)
                leader.sendall(struct.pack("<i", self.rank))
                return leader
            except ConnectionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_S)

    def average(self, values: array[float]) -> array[float]:
        """Return the element-wise mean over all ranks, identical on each."""
        size = len(values) * values.itemsize
        if self.rank != 0:
            self._peers[0].sendall(values.tobytes())
            return array("d", _receive(self._peers[0], size))
        total = values
        for peer in self._peers:
            total = array("d", map(float.__add__, total, array("d", _receive(peer, size))))
        mean = array("d", [value / self.ranks for value in total])
        for peer in self._peers:
            peer.sendall(mean.tobytes())
        return mean


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise ConnectionResetError("the connection was closed")
        received += part
    return bytes(received)


def safetensors_bytes(parameters: array[float]) -> bytes:
    """Encode the parameters as 32-bit floats: the header's length, the header as JSON, then the data."""
    data = array("f", parameters).tobytes()
    tensors = {
        "linear.weight": ([CLASSES, PIXELS], 0, 4 * WEIGHTS),
        "linear.bias": ([CLASSES], 4 * WEIGHTS, len(data)),
    }
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    for name, (shape, begin, end) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


@dataclass(frozen=True)
class Settings:
    """Number of steps, minimum seconds per step, and the checkpoint folder."""

    steps: int
    pace_s: float
    checkpoints: Path | None

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Settings:
        folder = environ.get("BT_CHECKPOINT_DIR")
        steps, pace_s = int(environ.get("STEPS", "2800")), float(environ.get("PACE_S", "0.5"))
        return cls(steps, pace_s, Path(folder) if folder else None)

    def saves_at(self, step: int) -> bool:
        """Return True if a checkpoint is due; a short run writes some, too."""
        every = min(CHECKPOINT_EVERY, max(1, self.steps // SHORT_RUN_CHECKPOINTS))
        return self.checkpoints is not None and (step % every == 0 or step == self.steps)

    def learning_rate(self, step: int) -> float:
        """Return the learning rate: a short warm-up, then half a cosine down to a tenth of the peak."""
        warmup = min(WARMUP_STEPS, max(1, self.steps // 10))
        if step <= warmup:
            return PEAK_LEARNING_RATE * step / warmup
        progress = (step - warmup) / max(1, self.steps - warmup)
        return PEAK_LEARNING_RATE * (0.55 + 0.45 * math.cos(math.pi * progress))


class Trainer:
    """The training loop of a rank: all ranks have the same parameters, each has its own images."""

    def __init__(self, settings: Settings, group: Group) -> None:
        self._settings = settings
        self._group = group
        self._training, self._evaluation = load_digits()
        self._parameters = array("d", bytes(8 * PARAMETERS))
        self._batches = len(self._training) // group.ranks // BATCH
        self._history: list[dict[str, float]] = []
        self._losses: list[float] = []
        self._began = time.monotonic()

    def run(self) -> None:
        settings, rank = self._settings, self._group.rank
        say(f"INFO rank {rank}: {self._group.ranks} ranks, training on {len(self._training)} images")
        for step in range(1, settings.steps + 1):
            norm = self._step(step)
            if rank == 0 and (step % LOG_EVERY == 0 or step == settings.steps):
                self._report(step, norm)
            if rank == 0 and (step % EVALUATE_EVERY == 0 or step == settings.steps):
                self._evaluate(step)
            if settings.checkpoints and settings.saves_at(step):
                self._save(settings.checkpoints / f"checkpoint-{step}", step)
            time.sleep(max(0.0, self._began + step * settings.pace_s - time.monotonic()))
        if rank == 0:
            runtime_s = round(time.monotonic() - self._began, 1)
            say({"train_runtime": runtime_s, "train_loss": self._history[-1]["loss"]})

    def _step(self, step: int) -> float:
        epoch, batch = divmod(step - 1, self._batches)
        order = list(range(len(self._training)))
        random.Random(SEED * 1_000_003 + epoch).shuffle(order)
        if batch == 0 and self._group.rank:
            say(
                f"INFO rank {self._group.rank}: {self._batches * BATCH} images shuffled for epoch {epoch + 1}"
            )
        first = (self._group.rank * self._batches + batch) * BATCH
        images = [self._training[index] for index in order[first : first + BATCH]]
        loss, gradient = loss_and_gradient(self._parameters, images)
        gradient.append(loss)  # travels with the gradient, so that rank 0 reports the mean over all ranks
        mean = self._group.average(gradient)
        self._losses.append(mean.pop())
        rate = self._settings.learning_rate(step)
        for index, slope in enumerate(mean):
            self._parameters[index] -= rate * slope
        return math.sqrt(sum(map(mul, mean, mean)))

    def _report(self, step: int, norm: float) -> None:
        steps, elapsed_s = self._settings.steps, time.monotonic() - self._began
        bar = ("█" * round(10 * step / steps)).ljust(10)
        left_s, rate = elapsed_s / step * (steps - step), step / max(elapsed_s, 1e-9)
        times = f"{clock(elapsed_s)}<{clock(left_s)}, {rate:.2f}it/s"
        say(f"{step / steps:4.0%}|{bar}| {step}/{steps} [{times}]")
        entry = {
            "loss": round(sum(self._losses) / len(self._losses), 4),
            "grad_norm": round(norm, 4),
            "learning_rate": float(f"{self._settings.learning_rate(step):.4g}"),
            "epoch": round(step / self._batches, 2),
        }
        self._losses.clear()
        self._history.append({**entry, "step": step})
        say(entry)

    def _evaluate(self, step: int) -> None:
        loss, right = 0.0, 0
        for image, digit in self._evaluation:
            found = probabilities(self._parameters, image)
            loss -= math.log(max(found[digit], 1e-12))
            right += found.index(max(found)) == digit
        count, epoch = len(self._evaluation), round(step / self._batches, 2)
        say({"eval_loss": round(loss / count, 4), "eval_accuracy": round(right / count, 4), "epoch": epoch})

    def _save(self, final: Path, step: int) -> None:
        """Write a checkpoint and rename it into place: rank 0 the model, every rank its own state."""
        rank = self._group.rank
        growing = final.with_name(f".{final.name}.tmp")
        shutil.rmtree(growing, ignore_errors=True)
        growing.mkdir(parents=True)
        files: dict[str, dict[str, Any]] = {f"rank_state_{rank}.json": {"rank": rank, "step": step}}
        if rank == 0:
            (growing / "model.safetensors").write_bytes(safetensors_bytes(self._parameters))
            files["config.json"] = {"model_type": "digits", "input_size": PIXELS, "num_labels": CLASSES}
            state = {"global_step": step, "max_steps": self._settings.steps, "log_history": self._history}
            files["trainer_state.json"] = state
        for name, content in files.items():
            (growing / name).write_text(json.dumps(content, indent=2) + "\n")
        shutil.rmtree(final, ignore_errors=True)
        growing.replace(final)
        if rank == 0:
            say(f"INFO Saving model checkpoint to {final}")


def clock(seconds: float) -> str:
    """Format as ``mm:ss``, or as ``h:mm:ss`` from one hour on."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def say(what: Any) -> None:
    print(what, flush=True)  # noqa: T201 (a job's standard output is its log)


def main() -> int:
    os.nice(NICENESS)
    try:
        Trainer(Settings.read(os.environ), Group(os.environ)).run()
    except OSError as error:
        say(f"ERROR lost the other ranks: {error or type(error).__name__}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
