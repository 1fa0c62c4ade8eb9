"""Contents of checkpoints: weights (from their headers), adapters, the trainer state and small text files.

This package has the records and the parsers; ``TrainingClient.checkpoint_contents`` fetches the files.
"""

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
