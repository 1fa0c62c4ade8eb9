"""An accelerator in the short form."""

from truss_train import Compute, Image, TrainingJob, TrainingProject

project = TrainingProject(
    name="accelerator_string",
    job=TrainingJob(image=Image(base_image="python:3.12-slim"), compute=Compute(accelerator="H100:8")),
)
