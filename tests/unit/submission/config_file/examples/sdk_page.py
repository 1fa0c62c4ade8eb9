"""The snippets of the Training SDK's page, put together to one config."""

from truss.base import truss_config
from truss_train import definitions

image = definitions.Image(base_image="pytorch/pytorch:2.7.0-cuda12.8-cudnn9-runtime")

compute = definitions.Compute(
    node_count=2,
    cpu_count=8,
    memory="64Gi",
    accelerator=truss_config.AcceleratorSpec(accelerator=truss_config.Accelerator.H100, count=4),
)

secret_ref = definitions.SecretReference(name="wandb_api_key")
checkpointing = definitions.CheckpointingConfig(enabled=True, volume_size_gib=500)
cache = definitions.CacheConfig(enabled=True, require_cache_affinity=True)

latest = definitions.BasetenCheckpoint.from_latest_checkpoint(project_name="my-fine-tuning-project")
specific = definitions.BasetenCheckpoint.from_named_checkpoint(
    checkpoint_name="checkpoint-100", job_id="abc123"
)

runtime = definitions.Runtime(
    start_commands=["chmod +x ./run.sh && ./run.sh"],
    environment_variables={
        "BATCH_SIZE": "32",
        "WANDB_API_KEY": secret_ref,
        "HF_TOKEN": definitions.SecretReference(name="hf_access_token"),
    },
    checkpointing_config=checkpointing,
    cache_config=cache,
    load_checkpoint_config=definitions.LoadCheckpointConfig(
        enabled=True, download_folder="/tmp/loaded_checkpoints", checkpoints=[latest, specific]
    ),
)

training_job = definitions.TrainingJob(name="fine-tune-v1", image=image, compute=compute, runtime=runtime)

project = definitions.TrainingProject(name="llm-fine-tuning", job=training_job, team_name="my-team")
