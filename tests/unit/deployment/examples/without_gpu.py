"""Deploys checkpoints: `bt-tui deploy_checkpoints --config FILE`, or the same with `truss train`."""

from truss.base import truss_config
from truss_train import definitions

deploy_config = definitions.DeployCheckpointsConfig(
    checkpoint_details=definitions.CheckpointList(
        checkpoints=[definitions.FullCheckpoint(training_job_id="gvpql31", checkpoint_name="merged")],
    ),
    model_name="small",
    runtime=definitions.DeployCheckpointsRuntime(
        environment_variables={"HF_TOKEN": definitions.SecretReference(name="hf")},
    ),
    compute=definitions.Compute(cpu_count=0, memory="0Mi", accelerator=truss_config.AcceleratorSpec()),
)
