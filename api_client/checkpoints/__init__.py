"""Contents of checkpoints: weights (from their headers), adapters, the trainer state and small text files.

This package has the records and the parsers; ``TrainingClient.checkpoint_contents`` fetches the files.
"""

from api_client.checkpoints.reading import (
    Preview as Preview,
)
from api_client.checkpoints.safetensors import (
    ReadShard as ReadShard,
    SafetensorsHeader as SafetensorsHeader,
    Tensor as Tensor,
    Weights as Weights,
    parse_header as parse_header,
)
from api_client.checkpoints.trainer_state import (
    TrainerState as TrainerState,
    parse_trainer_state as parse_trainer_state,
)
from api_client.errors import (
    UnreadableFile as UnreadableFile,
)
from api_client.models.checkpoints import (
    belongs_to as belongs_to,
    is_safetensors as is_safetensors,
    name_inside as name_inside,
)
