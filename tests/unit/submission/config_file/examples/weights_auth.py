"""Weights with patterns and every way to reach a private source, one of them with a field yet unknown."""

from truss.base.truss_config import WeightsAuth, WeightsAuthMethod, WeightsSource
from truss_train import Image, TrainingJob, TrainingProject

training_job = TrainingJob(
    image=Image(base_image="python:3.12-slim"),
    weights=[
        WeightsSource(
            source="hf://meta-llama/Llama-3.1-8B@main",
            mount_location="/app/models/llama",
            auth={"auth_method": "CUSTOM_SECRET", "auth_secret_name": "hf_access_token"},
        ),
        WeightsSource(
            source="hf://meta-llama/Llama-3.1-8B@main",
            mount_location="/app/models/llama-part",
            allow_patterns=["*.safetensors", "config.json", "tokenizer.*"],
            ignore_patterns=["*.md", "*.txt"],
            auth_secret_name="hf_access_token",
        ),
        WeightsSource(
            source="s3://bucket/data",
            mount_location="/data/s3",
            auth=WeightsAuth(
                auth_method=WeightsAuthMethod.AWS_OIDC,
                aws_oidc_role_arn="arn:aws:iam::1:role/reader",
                aws_oidc_region="us-east-1",
            ),
        ),
        WeightsSource(
            source="s3://bucket/more",
            mount_location="/data/role",
            auth={
                "auth_method": "aws_assume_role",
                "aws_assume_role_arn": "arn:aws:iam::1:role/reader",
                "aws_assume_role_region": "us-east-1",
            },
        ),
        WeightsSource(
            source="gs://bucket/data",
            mount_location="/data/gs",
            auth=WeightsAuth(
                auth_method="GCP_OIDC",
                gcp_oidc_service_account="reader@project.iam.gserviceaccount.com",
                gcp_oidc_workload_id_provider="projects/1/locations/global/workloadIdentityPools/p",
            ),
        ),
        WeightsSource(source="r2://account.bucket/data", mount_location="/data/r2", priority=3),
        {"source": "https://example.com/model.bin", "mount_location": "/data/https"},
    ],
)

training_project = TrainingProject(name="private-weights", job=training_job)
