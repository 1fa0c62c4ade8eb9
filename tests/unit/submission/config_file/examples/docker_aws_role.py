"""A private image: AWS by a role."""

from truss.base import truss_config
from truss_train import definitions

project = definitions.TrainingProject(
    name="private-image",
    job=definitions.TrainingJob(
        image=definitions.Image(
            base_image="123456789.dkr.ecr.us-east-1.amazonaws.com/my-image:latest",
            docker_auth=definitions.DockerAuth(
                auth_method=truss_config.DockerAuthType.AWS_ASSUME_ROLE,
                registry="123456789.dkr.ecr.us-east-1.amazonaws.com",
                aws_assume_role_docker_auth=definitions.AWSAssumeRoleDockerAuth(
                    role_arn="arn:aws:iam::123456789:role/puller", region="us-east-1"
                ),
            ),
        )
    ),
)
