"""A private image: Google by OIDC."""

from truss.base import truss_config
from truss_train import definitions

project = definitions.TrainingProject(
    name="private-image",
    job=definitions.TrainingJob(
        image=definitions.Image(
            base_image="us-docker.pkg.dev/my-image:latest",
            docker_auth=definitions.DockerAuth(
                auth_method=truss_config.DockerAuthType.GCP_OIDC,
                registry="us-docker.pkg.dev",
                gcp_oidc_docker_auth=definitions.GCPOIDCDockerAuth(
                    service_account="puller@project.iam.gserviceaccount.com",
                    workload_identity_provider="projects/1/locations/global/workloadIdentityPools/p",
                ),
            ),
        )
    ),
)
