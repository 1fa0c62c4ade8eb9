"""Signatures against the worked examples of AWS's own documentation."""

import hashlib
from datetime import UTC, datetime

import pytest
from pydantic import SecretStr

from api_client.transfers.object_store import (
    EMPTY_SHA256,
    SigningKey,
    quoted_path,
    quoted_query,
    signed_headers,
)

EXAMPLE_KEY = SigningKey(
    "AKIAIOSFODNN7EXAMPLE", SecretStr("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), SecretStr(""), "us-east-1"
)
HOST = {"host": "examplebucket.s3.amazonaws.com"}
AT = datetime(2013, 5, 24, tzinfo=UTC)


@pytest.mark.parametrize(
    ("method", "path", "query", "more", "payload", "signature"),
    [
        (
            "GET",
            "/test.txt",
            {},
            {"range": "bytes=0-9"},
            b"",
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            "PUT",
            "/test$file.text",
            {},
            {"date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
            b"Welcome to Amazon S3.",
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        (
            "GET",
            "/",
            {"lifecycle": ""},
            {},
            b"",
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        (
            "GET",
            "/",
            {"prefix": "J", "max-keys": "2"},
            {},
            b"",
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
)
def test_the_published_examples(
    method: str, path: str, query: dict[str, str], more: dict[str, str], payload: bytes, signature: str
) -> None:
    headers = signed_headers(
        method,
        quoted_path(path),
        quoted_query(query),
        HOST | more,
        payload_sha256=hashlib.sha256(payload).hexdigest(),
        key=EXAMPLE_KEY,
        at=AT,
    )
    assert headers["authorization"].endswith(f"Signature={signature}")
    assert headers["x-amz-date"] == "20130524T000000Z"
    assert "x-amz-security-token" not in headers


def test_a_session_token_is_sent_and_signed() -> None:
    key = SigningKey("AK", SecretStr("secret-value"), SecretStr("token-value"), "eu-west-1")
    headers = signed_headers("PUT", "/b/k", "", HOST, payload_sha256=EMPTY_SHA256, key=key, at=AT)
    assert headers["x-amz-security-token"] == "token-value"
    assert (
        "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token" in headers["authorization"]
    )
    assert "secret-value" not in str(headers)
    assert "secret-value" not in repr(key)
    assert "token-value" not in repr(key)


def test_names_are_escaped_as_s3_wants_it() -> None:
    assert quoted_path("/b/ä b+c$~/x") == "/b/%C3%A4%20b%2Bc%24~/x"
    assert quoted_query({"uploads": "", "a": "x/y=z +"}) == "a=x%2Fy%3Dz%20%2B&uploads="
