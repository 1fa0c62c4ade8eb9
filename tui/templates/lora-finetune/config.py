"""Fine-tune a language model with LoRA on one GPU; downloads are cached."""

from truss.base.truss_config import Accelerator, AcceleratorSpec
from truss_train import (
    CacheConfig,
    CheckpointingConfig,
    Compute,
    Image,
    Runtime,
    TrainingJob,
    TrainingProject,
)

training_job = TrainingJob(
    name="lora",
    image=Image(base_image="pytorch/pytorch:2.7.0-cuda12.8-cudnn9-runtime"),
    compute=Compute(accelerator=AcceleratorSpec(accelerator=Accelerator.H100, count=1)),
    runtime=Runtime(
        start_commands=["chmod +x ./run.sh && ./run.sh"],
        environment_variables={
            "MODEL_ID": "Qwen/Qwen2.5-0.5B-Instruct",
            "EPOCHS": "30",
            # For gated models, with a secret of that name in the workspace
            # (from truss_train import SecretReference):
            # "HF_TOKEN": SecretReference(name="hf_access_token"),
        },
        cache_config=CacheConfig(enabled=True),
        checkpointing_config=CheckpointingConfig(enabled=True),
    ),
)

training_project = TrainingProject(name="lora-finetune", job=training_job)
