"""The deprecated way to a cache."""

from truss_train import Image, Runtime, TrainingJob, TrainingProject

project = TrainingProject(
    name="enable_cache",
    job=TrainingJob(image=Image(base_image="python:3.12-slim"), runtime=Runtime(enable_cache=True)),
)
