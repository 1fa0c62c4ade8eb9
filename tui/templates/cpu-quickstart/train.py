"""Train a tiny network to tell the inside of a circle from the outside. Standard library only.

The environment variable STEPS sets the number of steps. The points are generated once and kept in the
project's cache; a checkpoint is written every CHECKPOINT_EVERY steps. A job that is resumed continues from
the checkpoint that the platform has loaded for it.
"""

import json
import math
import os
import random
import struct
from pathlib import Path

SEED = 7
POINTS = 2_000
BATCH = 64
HIDDEN = 16
LEARNING_RATE = 0.5
LOG_EVERY = 50
CHECKPOINT_EVERY = 500


def load_points(cache: Path | None) -> list[tuple[float, float, int]]:
    """Return the training set (x, y, 1 if inside), from the cache if possible."""
    cached = cache / "ring" / "points.json" if cache else None
    if cached and cached.exists():
        print(f"INFO found points in the cache: {cached}")
        return [tuple(point) for point in json.loads(cached.read_text())]
    rng = random.Random(SEED)
    coordinates = [(rng.uniform(-1, 1), rng.uniform(-1, 1)) for _ in range(POINTS)]
    points = [(x, y, int(math.hypot(x, y) < 0.7)) for x, y in coordinates]
    if cached:
        cached.parent.mkdir(parents=True, exist_ok=True)
        cached.write_text(json.dumps(points))
        print(f"INFO saved points in the cache for the next job: {cached}")
    return points


class Network:
    """Two inputs, one hidden tanh layer, one output: the probability of being inside."""

    def __init__(self) -> None:
        rng = random.Random(SEED)
        self.hidden = [[rng.gauss(0, 1) for _ in range(3)] for _ in range(HIDDEN)]  # x, y, bias
        self.output = [rng.gauss(0, 0.5) for _ in range(HIDDEN + 1)]  # one weight per hidden unit, bias

    def train(self, batch: list[tuple[float, float, int]], rate: float) -> float:
        """Do one step of gradient descent; return the mean loss before the step."""
        loss = 0.0
        hidden_slope = [[0.0] * 3 for _ in range(HIDDEN)]
        output_slope = [0.0] * (HIDDEN + 1)
        for x, y, inside in batch:
            values = [math.tanh(a * x + b * y + c) for a, b, c in self.hidden]
            score = sum(w * v for w, v in zip(self.output, values)) + self.output[-1]
            probability = 1 / (1 + math.exp(-score))
            loss -= math.log(max(1e-12, probability if inside else 1 - probability))
            error = (probability - inside) / len(batch)
            for index, value in enumerate(values):
                output_slope[index] += error * value
                hidden_error = error * self.output[index] * (1 - value * value)
                for input_index, input_value in enumerate((x, y, 1.0)):
                    hidden_slope[index][input_index] += hidden_error * input_value
            output_slope[-1] += error
        self.output = [w - rate * s for w, s in zip(self.output, output_slope)]
        self.hidden = [
            [w - rate * s for w, s in zip(weights, slopes)]
            for weights, slopes in zip(self.hidden, hidden_slope)
        ]
        return loss / len(batch)


def save_checkpoint(root: Path, step: int, network: Network) -> None:
    """Write a folder with the weights as safetensors and a config, as trainers do."""
    tensors = {
        "hidden.weight": ([HIDDEN, 3], [w for weights in network.hidden for w in weights]),
        "output.weight": ([HIDDEN + 1], network.output),
    }
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        packed = struct.pack(f"<{len(values)}f", *values)
        offsets = [len(data), len(data) + len(packed)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": offsets}
        data += packed
    header_json = json.dumps(header).encode()
    header_json += b" " * (-len(header_json) % 8)
    folder = root / f"checkpoint-{step}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header_json)) + header_json + data)
    (folder / "config.json").write_text(json.dumps({"model_type": "ring", "hidden_size": HIDDEN}, indent=2))
    print(f"INFO saved {folder}")


def load_checkpoint(root: Path, network: Network) -> int:
    """Continue from the newest checkpoint in a folder, if there is one; return its step."""
    folders_by_step = {int(folder.name.rpartition("-")[2]): folder for folder in root.rglob("checkpoint-*")}
    if not folders_by_step:
        return 0
    step = max(folders_by_step)
    content = (folders_by_step[step] / "model.safetensors").read_bytes()
    data = content[8 + struct.unpack_from("<Q", content)[0] :]
    values = struct.unpack(f"<{len(data) // 4}f", data)
    network.hidden = [list(values[first : first + 3]) for first in range(0, 3 * HIDDEN, 3)]
    network.output = list(values[3 * HIDDEN :])
    print(f"INFO resuming from {folders_by_step[step]}")
    return step


def main() -> None:
    """Train, and print the loss every few steps."""
    steps = int(os.environ.get("STEPS", "2000"))
    cache = os.environ.get("BT_PROJECT_CACHE_DIR")
    checkpoints = os.environ.get("BT_CHECKPOINT_DIR")
    loaded_checkpoint = os.environ.get("BT_LOAD_CHECKPOINT_DIR")
    points = load_points(Path(cache) if cache else None)
    network = Network()
    done_steps = load_checkpoint(Path(loaded_checkpoint), network) if loaded_checkpoint else 0
    rng = random.Random(SEED + done_steps)
    losses: list[float] = []
    for step in range(done_steps + 1, steps + 1):
        losses.append(network.train(rng.sample(points, BATCH), LEARNING_RATE))
        if step % LOG_EVERY == 0 or step == steps:
            loss = sum(losses) / len(losses)
            losses.clear()
            print(f"step {step}/{steps} loss={loss:.4f} lr={LEARNING_RATE}", flush=True)
        if checkpoints and (step % CHECKPOINT_EVERY == 0 or step == steps):
            save_checkpoint(Path(checkpoints), step, network)
    print("INFO done")


if __name__ == "__main__":
    main()
