"""A config inside of a larger workspace."""

from truss_train import Image, TrainingJob, TrainingProject, Workspace

project = TrainingProject(
    name="workspace",
    job=TrainingJob(
        image=Image(base_image="python:3.12-slim"),
        workspace=Workspace(workspace_root="..", exclude_dirs=["../data"]),
    ),
)
