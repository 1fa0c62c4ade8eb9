"""None of an accelerator."""

from truss_train import Compute, Image, TrainingJob, TrainingProject

project = TrainingProject(
    name="accelerator_zero",
    job=TrainingJob(
        image=Image(base_image="python:3.12-slim"),
        compute=Compute(accelerator={"accelerator": "L4", "count": 0}),
    ),
)
