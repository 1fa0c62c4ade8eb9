"""Deploy checkpoints of a training job as a served model.

::

    config = build_config(answers, checkpoints)
    for finding in validate(config, checkpoints): ...
    result = await deploy(client, config)
    async for update in follow(client, result.model_id, result.version_id): ...

Public names are imported on first use, so that selecting and validating do not import the network
modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from api_client.deployment.following import DeploymentUpdate, follow
    from api_client.deployment.generated_files import (
        curl_example,
        openai_example,
        render_python,
        serves_nothing,
        serving_url,
        truss_config_path,
        truss_config_yaml,
        write_truss_config,
    )
    from api_client.deployment.instances import (
        ListedInstance,
        fitting_instances,
        listed_instances,
        smallest_instance,
    )
    from api_client.deployment.selection import (
        CheckpointKind,
        check_selection,
        kind_of,
        memory_hint,
        needed_gpu_bytes,
        selectable,
        telling_files,
    )
    from api_client.deployment.sending import (
        DEPLOY_MUTATION,
        DeployAnswers,
        DeploymentResult,
        DeploymentUnclear,
        build_config,
        deploy,
        deployment_link,
        deployment_request,
        equivalent_command,
    )
    from api_client.deployment.validation import (
        VALID_LORA_RANKS,
        RankAdvice,
        adapter_ranks,
        check_rank,
        rank_for,
        validate,
    )
    from api_client.submission.findings import Finding

_HOMES = {
    "api_client.deployment.generated_files": (
        "curl_example",
        "openai_example",
        "serves_nothing",
        "serving_url",
        "render_python",
        "truss_config_path",
        "truss_config_yaml",
        "write_truss_config",
    ),
    "api_client.deployment.selection": (
        "telling_files",
        "memory_hint",
        "needed_gpu_bytes",
        "CheckpointKind",
        "check_selection",
        "kind_of",
        "selectable",
    ),
    "api_client.deployment.sending": (
        "DeployAnswers",
        "build_config",
        "DEPLOY_MUTATION",
        "deployment_request",
        "equivalent_command",
        "DeploymentResult",
        "DeploymentUnclear",
        "deploy",
        "deployment_link",
    ),
    "api_client.deployment.following": (
        "DeploymentUpdate",
        "follow",
    ),
    "api_client.deployment.instances": (
        "ListedInstance",
        "fitting_instances",
        "smallest_instance",
        "listed_instances",
    ),
    "api_client.deployment.validation": (
        "VALID_LORA_RANKS",
        "RankAdvice",
        "adapter_ranks",
        "check_rank",
        "rank_for",
        "validate",
    ),
    "api_client.submission.findings": ("Finding",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "DEPLOY_MUTATION",
    "VALID_LORA_RANKS",
    "CheckpointKind",
    "DeployAnswers",
    "DeploymentResult",
    "DeploymentUnclear",
    "DeploymentUpdate",
    "Finding",
    "ListedInstance",
    "RankAdvice",
    "adapter_ranks",
    "build_config",
    "check_rank",
    "check_selection",
    "curl_example",
    "deploy",
    "deployment_link",
    "deployment_request",
    "equivalent_command",
    "fitting_instances",
    "follow",
    "kind_of",
    "listed_instances",
    "memory_hint",
    "needed_gpu_bytes",
    "openai_example",
    "rank_for",
    "render_python",
    "selectable",
    "serves_nothing",
    "serving_url",
    "smallest_instance",
    "telling_files",
    "truss_config_path",
    "truss_config_yaml",
    "validate",
    "write_truss_config",
]


def __getattr__(name: str) -> Any:
    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
