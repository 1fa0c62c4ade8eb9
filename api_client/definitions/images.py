"""References to secrets, and the environment variables that may hold them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from api_client.definitions.base import StrictDefinition, TextEnum, members_only


class SecretReference(StrictDefinition):
    """The name of a secret stored in the workspace; its value never appears in a definition."""

    name: str


def _string_or_reference(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    try:
        return handler(value)
    except ValidationError as error:
        # One sentence instead of one error per member of the union.
        raise PydanticCustomError(
            "environment_value", "Input should be a string or a SecretReference"
        ) from error


EnvironmentValue = Annotated[str | SecretReference, WrapValidator(_string_or_reference)]
"""What an environment variable is set to: text, or a secret by its name."""


_Text = Annotated[str, StringConstraints(min_length=1)]


class DockerAuthType(TextEnum):
    """Ways to log in to a registry."""

    GCP_SERVICE_ACCOUNT_JSON = "GCP_SERVICE_ACCOUNT_JSON"
    AWS_IAM = "AWS_IAM"
    AWS_OIDC = "AWS_OIDC"
    GCP_OIDC = "GCP_OIDC"
    REGISTRY_SECRET = "REGISTRY_SECRET"
    AWS_ASSUME_ROLE = "AWS_ASSUME_ROLE"


class AWSIAMDockerAuth(StrictDefinition):
    """AWS ECR by access key; both halves are secrets."""

    access_key_secret_ref: SecretReference
    secret_access_key_secret_ref: SecretReference


class AWSOIDCDockerAuth(StrictDefinition):
    """AWS ECR by OIDC."""

    role_arn: _Text
    region: _Text


class AWSAssumeRoleDockerAuth(StrictDefinition):
    """AWS ECR by a role that the platform assumes."""

    role_arn: _Text
    region: _Text


class GCPOIDCDockerAuth(StrictDefinition):
    """Google's registries by OIDC."""

    service_account: _Text
    workload_identity_provider: _Text


class GCPServiceAccountJSONDockerAuth(StrictDefinition):
    """Google's registries by a service account's key file, kept as a secret."""

    service_account_json_secret_ref: SecretReference


class RegistrySecretDockerAuth(StrictDefinition):
    """Any registry; the secret holds ``username:password``."""

    secret_ref: SecretReference


_BLOCKS = {
    DockerAuthType.AWS_IAM: "aws_iam_docker_auth",
    DockerAuthType.AWS_OIDC: "aws_oidc_docker_auth",
    DockerAuthType.AWS_ASSUME_ROLE: "aws_assume_role_docker_auth",
    DockerAuthType.GCP_OIDC: "gcp_oidc_docker_auth",
    DockerAuthType.GCP_SERVICE_ACCOUNT_JSON: "gcp_service_account_json_docker_auth",
    DockerAuthType.REGISTRY_SECRET: "registry_secret_docker_auth",
}
"""The one block that belongs to each method."""


class DockerAuth(StrictDefinition):
    """How to log in to ``registry``: a method, and the block that belongs to it and no other."""

    auth_method: Annotated[DockerAuthType, members_only(DockerAuthType)]
    registry: str
    aws_iam_docker_auth: AWSIAMDockerAuth | None = None
    aws_oidc_docker_auth: AWSOIDCDockerAuth | None = None
    aws_assume_role_docker_auth: AWSAssumeRoleDockerAuth | None = None
    gcp_oidc_docker_auth: GCPOIDCDockerAuth | None = None
    gcp_service_account_json_docker_auth: GCPServiceAccountJSONDockerAuth | None = None
    registry_secret_docker_auth: RegistrySecretDockerAuth | None = None

    @model_validator(mode="after")
    def _one_block(self) -> DockerAuth:
        method = self.auth_method.value
        wanted = _BLOCKS[self.auth_method]
        if getattr(self, wanted) is None:
            raise ValueError(f"{wanted} must be provided when auth_method is {method}")
        others = [block for block in _BLOCKS.values() if block != wanted and getattr(self, block) is not None]
        if others:
            raise ValueError(
                f"{', '.join(others)} cannot be specified when auth_method is {method}; only {wanted}"
            )
        return self


class Image(StrictDefinition):
    """The image that a job runs in."""

    base_image: str
    docker_auth: DockerAuth | None = None
