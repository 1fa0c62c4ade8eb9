"""The page on data: weights from Hugging Face and data from S3."""

from truss.base.truss_config import AcceleratorSpec
from truss_train import Compute, Image, Runtime, TrainingJob, TrainingProject, WeightsSource

training_job = TrainingJob(
    image=Image(base_image="pytorch/pytorch:2.7.0-cuda12.8-cudnn9-runtime"),
    compute=Compute(accelerator=AcceleratorSpec(accelerator="H200", count=1)),
    runtime=Runtime(start_commands=["python train.py"]),
    weights=[
        WeightsSource(
            source="hf://Qwen/Qwen3-0.6B",
            mount_location="/app/models/Qwen/Qwen3-0.6B",
        ),
        WeightsSource(
            source="s3://my-bucket/training-data",
            mount_location="/app/data/training-data",
        ),
    ],
)

training_project = TrainingProject(name="qwen3-finetune", job=training_job)
