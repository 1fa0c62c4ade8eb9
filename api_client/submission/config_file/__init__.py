"""Load config files written for the official SDK, without needing the SDK."""

from __future__ import annotations

from api_client.errors import ConfigFileError
from api_client.submission.config_file.loading import load_deploy_checkpoints_config, load_training_project

__all__ = ["ConfigFileError", "load_deploy_checkpoints_config", "load_training_project"]
