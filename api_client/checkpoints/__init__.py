"""What is inside checkpoints: weights by their headers, adapters, the trainer's own record, small texts.

These are the records and how they are read out of bytes; ``TrainingClient.checkpoint_contents`` fetches them.
"""

from __future__ import annotations

from api_client.checkpoints.reading import Preview
from api_client.checkpoints.safetensors import ReadShard, SafetensorsHeader, Tensor, Weights, parse_header
from api_client.checkpoints.trainer_state import TrainerState, parse_trainer_state
from api_client.errors import UnreadableFile
from api_client.models.checkpoints import belongs_to, is_safetensors, name_inside

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
