"""Weights and data that are delivered before a job starts."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from pydantic import StringConstraints, field_validator, model_validator

from api_client.definitions.base import OpenDefinition, TextEnum, check_auth_fields

_NonEmptyText = Annotated[str, StringConstraints(min_length=1)]

_BUCKETS = ("s3", "gs", "azure", "r2", "cw")
SOURCE_SCHEMES = ("hf", *_BUCKETS, "https", "file")
"""Valid schemes of a source.

``file`` is for testing with the emulator; the platform has no such scheme, and the official SDK rejects it.
"""

_FORMAT_EXAMPLES = {
    "hf": "hf://owner/repository@revision",
    "https": "https://host/path",
    **{scheme: f"{scheme}://bucket/path" for scheme in _BUCKETS},
}


class WeightsAuthMethod(TextEnum):
    """Methods to access a private source."""

    CUSTOM_SECRET = "CUSTOM_SECRET"
    AWS_OIDC = "AWS_OIDC"
    GCP_OIDC = "GCP_OIDC"
    AWS_ASSUME_ROLE = "AWS_ASSUME_ROLE"


_FIELDS_BY_METHOD = {
    WeightsAuthMethod.CUSTOM_SECRET: ("auth_secret_name",),
    WeightsAuthMethod.AWS_OIDC: ("aws_oidc_role_arn", "aws_oidc_region"),
    WeightsAuthMethod.GCP_OIDC: ("gcp_oidc_service_account", "gcp_oidc_workload_id_provider"),
    WeightsAuthMethod.AWS_ASSUME_ROLE: ("aws_assume_role_arn", "aws_assume_role_region"),
}
"""Fields that each method requires; all others must be unset."""


class WeightsAuth(OpenDefinition):
    """Credentials for a private source: a method, and exactly the fields of that method."""

    auth_method: WeightsAuthMethod
    auth_secret_name: str | None = None
    aws_oidc_role_arn: str | None = None
    aws_oidc_region: str | None = None
    gcp_oidc_service_account: str | None = None
    gcp_oidc_workload_id_provider: str | None = None
    aws_assume_role_arn: str | None = None
    aws_assume_role_region: str | None = None

    @field_validator("auth_method", mode="before")
    @classmethod
    def _accept_any_case(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) and not isinstance(value, Enum) else value

    @model_validator(mode="after")
    def _check_fields(self) -> WeightsAuth:
        check_auth_fields(self, self.auth_method, _FIELDS_BY_METHOD)
        return self


class WeightsSource(OpenDefinition):
    """Source, and the absolute path where its files are available before the job's commands start.

    ``allow_patterns`` and ``ignore_patterns`` are shell globs, applied in this order.
    """

    source: _NonEmptyText
    mount_location: _NonEmptyText
    auth: WeightsAuth | None = None
    auth_secret_name: str | None = None
    allow_patterns: list[str] | None = None
    ignore_patterns: list[str] | None = None

    @property
    def scheme(self) -> str:
        """Text before ``://``."""
        return self.source.partition("://")[0]

    @field_validator("source")
    @classmethod
    def _check_source(cls, source: str) -> str:
        scheme, separator, address = source.partition("://")
        if not separator or scheme not in SOURCE_SCHEMES:
            schemes = ", ".join(f"{name}://" for name in SOURCE_SCHEMES)
            raise ValueError(f'"{source}" must start with one of {schemes}')
        if scheme == "file":
            if not address.startswith("/"):
                raise ValueError(f'"{source}" must name an absolute path: file:///path')
        elif not address or address.startswith("/"):
            raise ValueError(f'"{source}" is incomplete; write {_FORMAT_EXAMPLES[scheme]}')
        elif scheme in _BUCKETS and "@" in address:
            raise ValueError(f'"{source}" has a revision (@); only hf:// sources may')
        return source

    @field_validator("mount_location")
    @classmethod
    def _check_absolute(cls, path: str) -> str:
        if not path.startswith("/"):
            raise ValueError(f'"{path}" must be an absolute path, starting with /')
        return path

    @model_validator(mode="after")
    def _reject_two_secrets(self) -> WeightsSource:
        if self.auth_secret_name and self.auth and self.auth.auth_secret_name:
            raise ValueError("auth_secret_name is given twice; give it here or in auth")
        return self
