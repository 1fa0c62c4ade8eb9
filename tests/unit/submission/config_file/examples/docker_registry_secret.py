"""A private image: any registry by a secret."""

from truss.base import truss_config
from truss_train import definitions

project = definitions.TrainingProject(
    name="private-image",
    job=definitions.TrainingJob(
        image=definitions.Image(
            base_image="registry.example.com/my-image:latest",
            docker_auth=definitions.DockerAuth(
                auth_method=truss_config.DockerAuthType.REGISTRY_SECRET,
                registry="registry.example.com",
                registry_secret_docker_auth=definitions.RegistrySecretDockerAuth(
                    secret_ref=definitions.SecretReference(name="registry_login")
                ),
            ),
        )
    ),
)
