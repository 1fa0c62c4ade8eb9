"""Where an object store is: at the endpoint that the credentials name, or at AWS."""

from __future__ import annotations

import re

from api_client.addresses import BaseUrl, parse_base_url
from api_client.errors import UploadFailed
from api_client.models import BlobCredentials
from api_client.remotes import Remote

DEFAULT_REGION = "us-east-1"
"""Where AWS looks first; it answers with the bucket's own region if that is another."""

LONGEST_PATH_BYTES = 16_384
"""Longest bucket and key together, in UTF-8, that a request line can carry; S3's own limit is 1,024."""

_REGION = re.compile(r"[a-z]{2}[a-z0-9-]{1,30}")


def is_region(text: str) -> bool:
    """Whether this looks like the name of a region, and so can stand in a host name."""
    return _REGION.fullmatch(text) is not None


def check_credentials(credentials: BlobCredentials) -> None:
    """Raise UploadFailed for credentials that no request can carry; nothing of them is quoted."""
    creds = credentials.creds
    for header in (creds.aws_access_key_id, creds.aws_session_token.get_secret_value()):
        if not (header.isascii() and header.isprintable() and " " not in header):
            raise UploadFailed(
                "the server's upload credentials hold a character that no HTTP header can carry"
            )
    path = f"{credentials.s3_bucket}/{credentials.s3_key}"
    if len(path.encode(errors="replace")) > LONGEST_PATH_BYTES:
        raise UploadFailed("the server's name for the uploaded archive is too long for a request")


def endpoint_of(credentials: BlobCredentials) -> tuple[BaseUrl, str, bool]:
    """Address, region, and whether the region is certain. Raises ConfigurationError for an unusable one."""
    extra = credentials.creds.model_extra or {}
    region = extra.get("region_name")
    is_certain = isinstance(region, str) and is_region(region)
    chosen = str(region) if is_certain else DEFAULT_REGION
    url = extra.get("endpoint_url")
    if isinstance(url, str) and url.strip():
        return parse_base_url(url, source="the endpoint of the upload credentials"), chosen, True
    return aws_endpoint(chosen), chosen, is_certain


def aws_endpoint(region: str) -> BaseUrl:
    """AWS's own store in that region."""
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return BaseUrl("https", f"s3.{region}.{suffix}", 443)


def as_remote(endpoint: BaseUrl) -> Remote:
    """The store as something that has no key of ours."""
    return Remote("object store", str(endpoint), str(endpoint), key=None, key_origin="")


def store_remote(credentials: BlobCredentials) -> tuple[Remote, BaseUrl]:
    """What ``connection.connect`` needs to know of the store. Raises ConfigurationError."""
    endpoint, _, _ = endpoint_of(credentials)
    return as_remote(endpoint), endpoint
