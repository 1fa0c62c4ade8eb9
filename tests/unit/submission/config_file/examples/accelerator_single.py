"""A single one in the short form, with space around."""

from truss_train import Compute, Image, TrainingJob, TrainingProject

project = TrainingProject(
    name="accelerator_single",
    job=TrainingJob(
        image=Image(base_image="python:3.12-slim"), compute=Compute(accelerator=" RTX_PRO_6000 ")
    ),
)
