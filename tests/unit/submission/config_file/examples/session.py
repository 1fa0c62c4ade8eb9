"""An interactive session with its defaults."""

from truss_train import Image, TrainingJob, TrainingProject
from truss_train.definitions import InteractiveSession

project = TrainingProject(
    name="session",
    job=TrainingJob(image=Image(base_image="python:3.12-slim"), interactive_session=InteractiveSession()),
)
