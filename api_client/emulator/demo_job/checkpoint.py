"""Checkpoint writer: weights as safetensors with JSON files beside them, as a real trainer writes them."""

from __future__ import annotations

import json
import shutil
from array import array
from pathlib import Path
from typing import Any

from .digits import CLASSES, PIXELS
from .network import HIDDEN, TENSORS

_LENGTH_BYTES = 8
_ALIGNMENT = 8


def safetensors_bytes(parameters: array[float]) -> bytes:
    """Encode the parameters as a safetensors file of 32-bit floats.

    The format is the header's length as a little-endian 64-bit number, the header as JSON (name → dtype,
    shape, begin and end in the data) padded with spaces, then the data.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = bytearray()
    for tensor in TENSORS:
        values = array("f", parameters[tensor.start : tensor.end])
        begin = len(data)
        data += values.tobytes()
        header[tensor.name] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": [begin, len(data)],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text + bytes(data)


def write_checkpoint(
    root: Path, step: int, *, rank: int, parameters: array[float], trainer_state: dict[str, Any]
) -> Path:
    """Write ``checkpoint-<step>`` below ``root``; rename it into place once it is complete.

    Rank 0 writes the model; every rank writes its own state.
    """
    final = root / f"checkpoint-{step}"
    growing = root / f".{final.name}.tmp"
    shutil.rmtree(growing, ignore_errors=True)
    growing.mkdir(parents=True)
    if rank == 0:
        (growing / "model.safetensors").write_bytes(safetensors_bytes(parameters))
        config = {
            "model_type": "digits-mlp",
            "architectures": ["DigitsPerceptron"],
            "input_size": PIXELS,
            "hidden_size": HIDDEN,
            "num_labels": CLASSES,
        }
        (growing / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        (growing / "trainer_state.json").write_text(json.dumps(trainer_state, indent=2) + "\n")
    (growing / f"rank_state_{rank}.json").write_text(json.dumps({"rank": rank, "step": step}) + "\n")
    shutil.rmtree(final, ignore_errors=True)
    growing.replace(final)
    return final
