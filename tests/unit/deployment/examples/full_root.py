"""Deploys checkpoints: `bt-tui deploy_checkpoints --config FILE`, or the same with `truss train`."""

from truss.base import truss_config
from truss_train import definitions

deploy_config = definitions.DeployCheckpointsConfig(
    checkpoint_details=definitions.CheckpointList(
        checkpoints=[definitions.FullCheckpoint(training_job_id="gvpql31", checkpoint_name=".")],
    ),
    model_name="root",
    runtime=definitions.DeployCheckpointsRuntime(environment_variables={"A": "b"}),
    compute=definitions.Compute(
        cpu_count=0,
        memory="0Mi",
        accelerator=truss_config.AcceleratorSpec(accelerator=truss_config.Accelerator.H100, count=4),
    ),
)
