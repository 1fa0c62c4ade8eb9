"""Config files written for the official SDK, loaded without it."""

from __future__ import annotations

from api_client.config_file.loading import load_deploy_checkpoints_config, load_training_project
from api_client.errors import ConfigFileError

__all__ = ["ConfigFileError", "load_deploy_checkpoints_config", "load_training_project"]
