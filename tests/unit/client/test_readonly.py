"""A client that was made read-only: every method of it either reads, or is refused before it is sent."""

from pathlib import Path

import pytest

from api_client import ReadOnlyError
from api_client.models import BlobCredentials
from support.resource_calls import CALLS, CHANGING, NAMES_ALONE, READING, recorded, sent_by

AWS = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_session_token": "c"}
CREDENTIALS = BlobCredentials.model_validate({"creds": AWS, "s3_bucket": "bucket", "s3_key": "key"})
TO_UPLOAD = "blobs.training_credentials"
CHANGES = {name: CALLS[name] for name in (*CHANGING, TO_UPLOAD)} | {
    "blobs.upload": lambda client, _world: client.blobs.upload(Path(__file__), CREDENTIALS),
    "push": lambda client, _world: client.push(Path("/nowhere/config.py")),  # it is not even run
    "graphql.execute, both": lambda client, _world: client.graphql.execute("query A { a } mutation B { b }"),
}
"""Every public method that changes something; the others of ``support.resource_calls`` must read."""


@pytest.mark.parametrize("name", sorted(CHANGES))
async def test_changes_are_refused_before_they_are_sent(name: str) -> None:
    client, sent = recorded(read_only_by="flag --readonly")
    async with client:
        with pytest.raises(ReadOnlyError, match="read-only by flag --readonly") as refused:
            await CHANGES[name](client, NAMES_ALONE)
    assert not refused.value.retryable
    assert sent == []


@pytest.mark.parametrize("name", sorted(READING - CHANGES.keys()))
async def test_everything_else_reads(name: str) -> None:
    assert await sent_by(CALLS[name], read_only_by="flag --readonly"), "it has asked nothing"
