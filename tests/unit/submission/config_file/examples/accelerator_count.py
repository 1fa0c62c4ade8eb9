"""A count without an accelerator."""

from truss_train import Compute, Image, TrainingJob, TrainingProject

project = TrainingProject(
    name="accelerator_count",
    job=TrainingJob(image=Image(base_image="python:3.12-slim"), compute=Compute(accelerator={"count": 2})),
)
