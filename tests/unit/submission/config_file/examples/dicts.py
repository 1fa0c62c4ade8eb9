"""Dicts in place of objects."""

from truss_train import Image, TrainingJob, TrainingProject

project = TrainingProject(
    name="dicts",
    job=TrainingJob(
        image=Image(base_image="python:3.12-slim"),
        compute={"node_count": 3},
        runtime={"start_commands": ["a"], "environment_variables": {"S": {"name": "s"}}},
    ),
)
