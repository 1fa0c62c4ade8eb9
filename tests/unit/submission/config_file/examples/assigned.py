"""A job changed after it was made."""

from truss_train import Compute, Image, TrainingJob, TrainingProject

job = TrainingJob(image=Image(base_image="python:3.12-slim"))
job.name = "later"
job.compute = Compute()
job.compute.accelerator = "H200:2"
job.compute.accelerator.count = 4
job.runtime.environment_variables["LATE"] = "yes"
job.priority = 2
project = TrainingProject(name="assigned", job=job)
