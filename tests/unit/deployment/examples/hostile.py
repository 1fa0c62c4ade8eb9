"""Deploys checkpoints: `bt-tui deploy_checkpoints --config FILE`, or the same with `truss train`."""

from truss.base import truss_config
from truss_train import definitions

deploy_config = definitions.DeployCheckpointsConfig(
    checkpoint_details=definitions.CheckpointList(
        base_model_id="o\"rg/mo'del\\n",
        checkpoints=[
            definitions.LoRACheckpoint(
                training_job_id="gvpql31",
                checkpoint_name='it\'s "quoted" \\ {x}-4',
                lora_details=definitions.LoRADetails(rank=8),
            ),
        ],
    ),
    model_name="naïve \u202e \"model\" '''",
    runtime=definitions.DeployCheckpointsRuntime(
        environment_variables={"LINES": "one\ntwo\ttab \x1b[31m\x00", "EMPTY": "", "Q'": '"""'},
    ),
    compute=definitions.Compute(
        cpu_count=0,
        memory="0Mi",
        accelerator=truss_config.AcceleratorSpec(accelerator=truss_config.Accelerator.A10G),
    ),
)
