"""A private image: AWS by OIDC."""

from truss.base import truss_config
from truss_train import definitions

project = definitions.TrainingProject(
    name="private-image",
    job=definitions.TrainingJob(
        image=definitions.Image(
            base_image="123456789.dkr.ecr.us-east-1.amazonaws.com/my-image:latest",
            docker_auth=definitions.DockerAuth(
                auth_method=truss_config.DockerAuthType.AWS_OIDC,
                registry="123456789.dkr.ecr.us-east-1.amazonaws.com",
                aws_oidc_docker_auth=definitions.AWSOIDCDockerAuth(
                    role_arn="arn:aws:iam::123456789:role/puller", region="us-east-1"
                ),
            ),
        )
    ),
)
