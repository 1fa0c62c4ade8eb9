"""Deploy checkpoints of a training job as a served model.

::

    config = build_config(answers, checkpoints)
    for finding in validate(config, checkpoints): ...
    result = await deploy(client, config)
    async for update in follow(client, result.model_id, result.version_id): ...
"""

from __future__ import annotations

from api_client.deployment.following import DeploymentUpdate, follow
from api_client.deployment.generated_files import (
    Calls,
    calls,
    render_python,
    serves_nothing,
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
from api_client.deployment.sending import (
    DEPLOY_MUTATION,
    DeployAnswers,
    DeploymentResult,
    DeploymentUnclear,
    build_config,
    deploy,
    deployment_request,
    equivalent_command,
)
from api_client.deployment.validation import validate
from api_client.servable import (
    RankAdvice,
    adapter_ranks,
    check_rank,
    check_selection,
    kind_of,
    memory_hint,
    needed_gpu_bytes,
    rank_for,
    selectable,
    telling_files,
)
from api_client.submission.findings import Finding

__all__ = [
    "DEPLOY_MUTATION",
    "Calls",
    "DeployAnswers",
    "DeploymentResult",
    "DeploymentUnclear",
    "DeploymentUpdate",
    "Finding",
    "ListedInstance",
    "RankAdvice",
    "adapter_ranks",
    "build_config",
    "calls",
    "check_rank",
    "check_selection",
    "deploy",
    "deployment_request",
    "equivalent_command",
    "fitting_instances",
    "follow",
    "kind_of",
    "listed_instances",
    "memory_hint",
    "needed_gpu_bytes",
    "rank_for",
    "render_python",
    "selectable",
    "serves_nothing",
    "smallest_instance",
    "telling_files",
    "truss_config_path",
    "truss_config_yaml",
    "validate",
    "write_truss_config",
]
