"""The latest checkpoint of the job's own project."""

from truss_train import Image, LoadCheckpointConfig, Runtime, TrainingJob, TrainingProject

load_config = LoadCheckpointConfig(enabled=True)
project = TrainingProject(
    name="resume",
    job=TrainingJob(
        image=Image(base_image="python:3.12-slim"), runtime=Runtime(load_checkpoint_config=load_config)
    ),
)
