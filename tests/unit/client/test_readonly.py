"""A client that was made read-only: every method of it either reads, or is refused before it is sent."""

import contextlib
from pathlib import Path

import httpx
import pytest
from client_support import Server, make_remote

from api_client import InvalidAnswer, NotFound, ReadOnlyError, TrainingClient
from api_client.models import BlobCredentials
from support.log_server import FastClock
from support.resource_calls import CALLS, CHANGING, NAMES_ALONE, READING

AWS = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_session_token": "c"}
CREDENTIALS = BlobCredentials.model_validate({"creds": AWS, "s3_bucket": "bucket", "s3_key": "key"})
TO_UPLOAD = "blobs.training_credentials"
CHANGES = {name: CALLS[name] for name in (*CHANGING, TO_UPLOAD)} | {
    "blobs.upload": lambda client, _world: client.blobs.upload(Path(__file__), CREDENTIALS),
    "push": lambda client, _world: client.push(Path("/nowhere/config.py")),  # it is not even run
    "graphql.execute, both": lambda client, _world: client.graphql.execute("query A { a } mutation B { b }"),
}
"""Every public method that changes something; the others of ``support.resource_calls`` must read."""


def read_only() -> tuple[TrainingClient, Server]:
    server = Server()
    transport = httpx.MockTransport(server)
    remote, clock = make_remote(), FastClock()
    forbidden = TrainingClient(remote, clock=clock, http_transport=transport, read_only_by="flag --readonly")
    return forbidden, server


@pytest.mark.parametrize("name", sorted(CHANGES))
async def test_changes_are_refused_before_they_are_sent(name: str) -> None:
    client, server = read_only()
    async with client:
        with pytest.raises(ReadOnlyError, match="read-only by flag --readonly") as refused:
            await CHANGES[name](client, NAMES_ALONE)
    assert not refused.value.retryable
    assert server.requests == []


@pytest.mark.parametrize("name", sorted(READING - CHANGES.keys()))
async def test_everything_else_reads(name: str) -> None:
    client, server = read_only()
    async with client:
        with contextlib.suppress(InvalidAnswer, NotFound):  # the server answers {} to everything
            await CALLS[name](client, NAMES_ALONE)
    assert server.requests, "it has asked nothing"
