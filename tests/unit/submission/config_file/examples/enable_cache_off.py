"""The deprecated way to no cache."""

from truss_train import Image, Runtime, TrainingJob, TrainingProject

project = TrainingProject(
    name="enable_cache_off",
    job=TrainingJob(image=Image(base_image="python:3.12-slim"), runtime=Runtime(enable_cache=False)),
)
