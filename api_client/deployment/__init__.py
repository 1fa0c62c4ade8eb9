"""Deploy checkpoints of a training job as a served model.

::

    config = build_config(answers, checkpoints)
    for finding in validate(config, checkpoints): ...
    result = await deploy(client, config)
    async for update in follow(client, result.model_id, result.version_id): ...
"""

from api_client.deployment.generated_files import (
    ENGINE as ENGINE,
    VLLM as VLLM,
    Calls as Calls,
    calls as calls,
    calls_of as calls_of,
    engine_configs as engine_configs,
    render_python as render_python,
    serves_nothing as serves_nothing,
    truss_config_path as truss_config_path,
    truss_config_yaml as truss_config_yaml,
    write_truss_config as write_truss_config,
)
from api_client.deployment.instances import (
    ListedInstance as ListedInstance,
    listed_instances as listed_instances,
    smallest_instance as smallest_instance,
)
from api_client.deployment.sending import (
    DEPLOY_MUTATION as DEPLOY_MUTATION,
    HF_TOKEN as HF_TOKEN,
    DeployAnswers as DeployAnswers,
    DeploymentResult as DeploymentResult,
    DeploymentUnclear as DeploymentUnclear,
    DeploymentUpdate as DeploymentUpdate,
    Pairs as Pairs,
    build_config as build_config,
    deploy as deploy,
    deployment_link as deployment_link,
    deployment_request as deployment_request,
    equivalent_command as equivalent_command,
    follow as follow,
    normal_gpu as normal_gpu,
)
from api_client.deployment.validation import validate as validate
from api_client.models.checkpoints import checkpoint_address as checkpoint_address
