"""A private image: Google by a service account's key."""

from truss.base import truss_config
from truss_train import definitions

project = definitions.TrainingProject(
    name="private-image",
    job=definitions.TrainingJob(
        image=definitions.Image(
            base_image="gcr.io/my-image:latest",
            docker_auth=definitions.DockerAuth(
                auth_method=truss_config.DockerAuthType.GCP_SERVICE_ACCOUNT_JSON,
                registry="gcr.io",
                gcp_service_account_json_docker_auth=definitions.GCPServiceAccountJSONDockerAuth(
                    service_account_json_secret_ref=definitions.SecretReference(
                        name="gcp_service_account_json"
                    )
                ),
            ),
        )
    ),
)
