"""Deploys checkpoints: `bt-tui deploy_checkpoints --config FILE`, or the same with `truss train`."""

from truss.base import truss_config
from truss_train import definitions

deploy_config = definitions.DeployCheckpointsConfig(
    checkpoint_details=definitions.CheckpointList(
        base_model_id="meta-llama/Llama-3.1-8B-Instruct",
        checkpoints=[
            definitions.LoRACheckpoint(
                training_job_id="gvpql31",
                checkpoint_name="checkpoint-100",
                lora_details=definitions.LoRADetails(rank=32),
            ),
            definitions.LoRACheckpoint(
                training_job_id="gvpql31",
                checkpoint_name="checkpoint-200",
                lora_details=definitions.LoRADetails(rank=32),
            ),
        ],
    ),
    model_name="llama-support",
    runtime=definitions.DeployCheckpointsRuntime(
        environment_variables={
            "HF_TOKEN": definitions.SecretReference(name="hf_access_token"),
            "VLLM_LOGGING_LEVEL": "DEBUG",
            "WANDB_API_KEY": definitions.SecretReference(name="wandb"),
        },
    ),
    compute=definitions.Compute(
        cpu_count=0,
        memory="0Mi",
        accelerator=truss_config.AcceleratorSpec(accelerator=truss_config.Accelerator.H100, count=2),
    ),
)
