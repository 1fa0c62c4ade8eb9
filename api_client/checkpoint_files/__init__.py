"""What is inside checkpoints: weights by their headers, adapters, the trainer's own record, small texts.

These are the records and how they are read out of bytes; ``TrainingClient.checkpoint_contents`` fetches them.
"""

from __future__ import annotations

from api_client.checkpoint_files.errors import UnreadableFile
from api_client.checkpoint_files.preview import Preview
from api_client.checkpoint_files.safetensors import SafetensorsHeader, Tensor, parse_header
from api_client.checkpoint_files.trainer_state import TrainerState, parse_trainer_state
from api_client.checkpoint_files.weights import ReadShard, Weights
from api_client.checkpoint_names import belongs_to, is_safetensors, name_inside

__all__ = [
    "Preview",
    "ReadShard",
    "SafetensorsHeader",
    "Tensor",
    "TrainerState",
    "UnreadableFile",
    "Weights",
    "belongs_to",
    "is_safetensors",
    "name_inside",
    "parse_header",
    "parse_trainer_state",
]
