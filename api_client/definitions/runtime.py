"""What a job runs, and which folders the platform gives it."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from api_client.definitions.base import StrictDefinition
from api_client.definitions.loaded_checkpoints import LoadCheckpointConfig
from api_client.definitions.secrets import EnvironmentValue

CACHE_FOLDER = "/root/.cache"
"""Where the caches are mounted if the job does not say (API facts, 5)."""


class CheckpointingConfig(StrictDefinition):
    """Whether what a job writes to ``BT_CHECKPOINT_DIR`` is kept; the volume's size in GiB."""

    enabled: bool = False
    checkpoint_path: str | None = None
    volume_size_gib: int | None = None


class CacheConfig(StrictDefinition):
    """Folders that last from job to job, of the project and of the team.

    With ``require_cache_affinity`` a job fails rather than start where the project's cache is not.
    """

    enabled: bool = False
    enable_legacy_hf_mount: bool = False
    require_cache_affinity: bool = True
    mount_base_path: str = CACHE_FOLDER


class Runtime(StrictDefinition):
    """Commands, environment and folders. ``enable_cache`` is the deprecated spelling of ``cache_config``."""

    start_commands: list[str] = []
    environment_variables: dict[str, EnvironmentValue] = {}
    enable_cache: bool | None = None
    checkpointing_config: CheckpointingConfig = Field(default_factory=CheckpointingConfig)
    load_checkpoint_config: LoadCheckpointConfig | None = None
    cache_config: CacheConfig | None = None

    @model_validator(mode="before")
    @classmethod
    def _replace_enable_cache(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("enable_cache") is None:
            return values
        if values.get("cache_config") is not None:
            raise ValueError(
                "enable_cache and cache_config cannot both be given; enable_cache is deprecated, "
                "write cache_config=CacheConfig(enabled=True, enable_legacy_hf_mount=True)"
            )
        enabled = values["enable_cache"]
        # The server refuses the deprecated field, so it never goes out (API facts, 3.3).
        rest = {name: value for name, value in values.items() if name != "enable_cache"}
        return {**rest, "cache_config": CacheConfig(enabled=enabled, enable_legacy_hf_mount=enabled)}

    def __setattr__(self, name: str, value: Any) -> None:
        """Assign a field; the deprecated one turns into a cache_config here too."""
        if name == "enable_cache" and value is not None:
            replaced = Runtime(enable_cache=value, cache_config=self.cache_config)
            super().__setattr__("cache_config", replaced.cache_config)
        else:
            super().__setattr__(name, value)
