"""Deploy checkpoints of a training job as a served model.

::

    config = build_config(answers, checkpoints)
    for finding in validate(config, checkpoints): ...
    result = await deploy(client, config)
    async for update in follow(client, result.model_id, result.version_id): ...
"""

from api_client.deployment.following import DeploymentUpdate as DeploymentUpdate
from api_client.deployment.following import follow as follow
from api_client.deployment.generated_files import ENGINE as ENGINE
from api_client.deployment.generated_files import VLLM as VLLM
from api_client.deployment.generated_files import Calls as Calls
from api_client.deployment.generated_files import calls as calls
from api_client.deployment.generated_files import calls_of as calls_of
from api_client.deployment.generated_files import checkpoint_address as checkpoint_address
from api_client.deployment.generated_files import engine_configs as engine_configs
from api_client.deployment.generated_files import render_python as render_python
from api_client.deployment.generated_files import serves_nothing as serves_nothing
from api_client.deployment.generated_files import truss_config_path as truss_config_path
from api_client.deployment.generated_files import truss_config_yaml as truss_config_yaml
from api_client.deployment.generated_files import write_truss_config as write_truss_config
from api_client.deployment.instances import ListedInstance as ListedInstance
from api_client.deployment.instances import listed_instances as listed_instances
from api_client.deployment.instances import smallest_instance as smallest_instance
from api_client.deployment.sending import DEPLOY_MUTATION as DEPLOY_MUTATION
from api_client.deployment.sending import HF_TOKEN as HF_TOKEN
from api_client.deployment.sending import DeployAnswers as DeployAnswers
from api_client.deployment.sending import DeploymentResult as DeploymentResult
from api_client.deployment.sending import DeploymentUnclear as DeploymentUnclear
from api_client.deployment.sending import Pairs as Pairs
from api_client.deployment.sending import build_config as build_config
from api_client.deployment.sending import deploy as deploy
from api_client.deployment.sending import deployment_link as deployment_link
from api_client.deployment.sending import deployment_request as deployment_request
from api_client.deployment.sending import equivalent_command as equivalent_command
from api_client.deployment.sending import normal_gpu as normal_gpu
from api_client.deployment.validation import validate as validate
