"""Nothing but what is needed."""

import truss_train

project = truss_train.TrainingProject(
    name="minimal", job=truss_train.TrainingJob(image=truss_train.Image(base_image="python:3.12-slim"))
)
