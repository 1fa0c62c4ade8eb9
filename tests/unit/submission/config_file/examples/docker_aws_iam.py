"""A private image: AWS by access key."""

from truss.base import truss_config
from truss_train import definitions

project = definitions.TrainingProject(
    name="private-image",
    job=definitions.TrainingJob(
        image=definitions.Image(
            base_image="123456789.dkr.ecr.us-east-1.amazonaws.com/my-image:latest",
            docker_auth=definitions.DockerAuth(
                auth_method=truss_config.DockerAuthType.AWS_IAM,
                registry="123456789.dkr.ecr.us-east-1.amazonaws.com",
                aws_iam_docker_auth=definitions.AWSIAMDockerAuth(
                    access_key_secret_ref=definitions.SecretReference(name="aws_access_key"),
                    secret_access_key_secret_ref=definitions.SecretReference(name="aws_secret_key"),
                ),
            ),
        )
    ),
)
