"""An accelerator as a dict."""

from truss_train import Compute, Image, TrainingJob, TrainingProject

project = TrainingProject(
    name="accelerator_dict",
    job=TrainingJob(
        image=Image(base_image="python:3.12-slim"),
        compute=Compute(accelerator={"accelerator": "B300", "count": "4"}),
    ),
)
