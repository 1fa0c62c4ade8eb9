"""The container image of a job, the credentials for its registry, and references to secrets.

Secrets are given by name only; their values never appear in a definition.
"""

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

from api_client.definitions.base import StrictDefinition, TextEnum, check_auth_fields, members_only


class SecretReference(StrictDefinition):
    """Name of a secret stored in the workspace; its value never appears in a definition."""

    name: str


def _string_or_reference(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    try:
        return handler(value)
    except ValidationError as error:
        # Report one sentence instead of one error per union member.
        raise PydanticCustomError(
            "environment_value", "Input should be a string or a SecretReference"
        ) from error


EnvironmentValue = Annotated[str | SecretReference, WrapValidator(_string_or_reference)]
"""Value of an environment variable: text, or a reference to a secret."""


_NonEmptyText = Annotated[str, StringConstraints(min_length=1)]


class DockerAuthType(TextEnum):
    """Methods to authenticate with a registry."""

    GCP_SERVICE_ACCOUNT_JSON = "GCP_SERVICE_ACCOUNT_JSON"
    AWS_IAM = "AWS_IAM"
    AWS_OIDC = "AWS_OIDC"
    GCP_OIDC = "GCP_OIDC"
    REGISTRY_SECRET = "REGISTRY_SECRET"
    AWS_ASSUME_ROLE = "AWS_ASSUME_ROLE"


class AWSIAMDockerAuth(StrictDefinition):
    """AWS ECR with an access key; key id and secret key are workspace secrets."""

    access_key_secret_ref: SecretReference
    secret_access_key_secret_ref: SecretReference


class AWSOIDCDockerAuth(StrictDefinition):
    """AWS ECR with OIDC."""

    role_arn: _NonEmptyText
    region: _NonEmptyText


class AWSAssumeRoleDockerAuth(StrictDefinition):
    """AWS ECR with a role that the platform assumes."""

    role_arn: _NonEmptyText
    region: _NonEmptyText


class GCPOIDCDockerAuth(StrictDefinition):
    """Google registries with OIDC."""

    service_account: _NonEmptyText
    workload_identity_provider: _NonEmptyText


class GCPServiceAccountJSONDockerAuth(StrictDefinition):
    """Google registries with a service account's key file, stored as a secret."""

    service_account_json_secret_ref: SecretReference


class RegistrySecretDockerAuth(StrictDefinition):
    """Any registry; the secret holds ``username:password``."""

    secret_ref: SecretReference


_FIELDS_BY_METHOD = {method: (f"{method.value.lower()}_docker_auth",) for method in DockerAuthType}
"""The field with the settings of each authentication method."""


class DockerAuth(StrictDefinition):
    """Credentials for ``registry``: a method, and exactly the settings field of that method."""

    auth_method: Annotated[DockerAuthType, members_only(DockerAuthType)]
    registry: str
    aws_iam_docker_auth: AWSIAMDockerAuth | None = None
    aws_oidc_docker_auth: AWSOIDCDockerAuth | None = None
    aws_assume_role_docker_auth: AWSAssumeRoleDockerAuth | None = None
    gcp_oidc_docker_auth: GCPOIDCDockerAuth | None = None
    gcp_service_account_json_docker_auth: GCPServiceAccountJSONDockerAuth | None = None
    registry_secret_docker_auth: RegistrySecretDockerAuth | None = None

    @model_validator(mode="after")
    def _check_fields(self) -> DockerAuth:
        check_auth_fields(self, self.auth_method, _FIELDS_BY_METHOD)
        return self


class Image(StrictDefinition):
    """Container image of a job."""

    base_image: str
    docker_auth: DockerAuth | None = None
