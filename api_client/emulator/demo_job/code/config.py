"""Train a classifier of handwritten digits on two nodes: ``bt-tui push config.py``."""

from truss_train import CheckpointingConfig, Compute, Image, Runtime, TrainingJob, TrainingProject

training_job = TrainingJob(
    name="digits-mlp",
    image=Image(base_image="python:3.11-slim"),
    compute=Compute(node_count=2, cpu_count=1, memory="2Gi"),
    runtime=Runtime(
        start_commands=["python3 train.py"],
        checkpointing_config=CheckpointingConfig(enabled=True),
    ),
)

training_project = TrainingProject(name="digits", job=training_job)
