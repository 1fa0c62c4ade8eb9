"""Data-parallel training over two nodes with torchrun."""

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
    name="two-nodes",
    image=Image(base_image="pytorch/pytorch:2.7.0-cuda12.8-cudnn9-runtime"),
    compute=Compute(
        node_count=2,
        accelerator=AcceleratorSpec(accelerator=Accelerator.H100, count=8),
    ),
    runtime=Runtime(
        start_commands=["chmod +x ./run.sh && ./run.sh"],
        environment_variables={"STEPS": "200"},
        cache_config=CacheConfig(enabled=True),
        checkpointing_config=CheckpointingConfig(enabled=True),
    ),
)

training_project = TrainingProject(name="multinode-torchrun", job=training_job)
