"""Train a tiny network on CPUs, to try loss, cache and checkpoints."""

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
    name="first-run",
    image=Image(base_image="python:3.12-slim"),
    compute=Compute(cpu_count=1, memory="2Gi"),
    runtime=Runtime(
        start_commands=["chmod +x ./run.sh && ./run.sh"],
        environment_variables={"STEPS": "2000"},
        cache_config=CacheConfig(enabled=True),
        checkpointing_config=CheckpointingConfig(enabled=True),
    ),
)

training_project = TrainingProject(name="cpu-quickstart", job=training_job)
