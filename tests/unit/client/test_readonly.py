"""A client that was made read-only: every method of it either reads, or is refused before it is sent."""

import contextlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from client_support import START, Server, make_remote

from api_client import InvalidAnswer, NotFound, ReadOnlyError, TrainingClient
from api_client.http.readonly import only_reads
from api_client.models import BlobCredentials
from support.log_server import FastClock

FORBIDDEN_BY = "flag --readonly"
AWS = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_session_token": "c"}
CREDENTIALS = BlobCredentials.model_validate({"creds": AWS, "s3_bucket": "bucket", "s3_key": "key"})
RESOURCES = (
    *("projects", "jobs", "logs", "metrics", "checkpoints", "cache"),
    *("sessions", "capacity", "account", "models", "blobs", "graphql"),
)
STREAMS = {
    *("jobs.watch", "logs.follow", "logs.history", "logs.fill", "logs.increments"),
    *("metrics.follow", "checkpoints.files"),
}
"""Made of the reads beside them."""

CHANGES: dict[str, dict[str, Any]] = {
    **{f"projects.{name}": {} for name in ("upsert", "delete")},
    **{f"jobs.{name}": {} for name in ("stop", "recreate", "delete")},
    "jobs.create": {"training_job": {}},
    "jobs.update": {"priority": 1},
    "sessions.update": {"timeout_minutes": 1},
    "sessions.sign_ssh": {},
    "capacity.update": {},
    **{f"account.{name}": {} for name in ("log_out", "upsert_secret", "delete_secret")},
    **{f"models.{name}": {} for name in ("promote", "activate", "deactivate", "retry")},
    "blobs.training_credentials": {},
    "blobs.upload": {"path": Path(__file__), "credentials": CREDENTIALS},
}
"""Every public method that changes something, and what its call needs; all others must read."""


def read_only() -> tuple[TrainingClient, Server]:
    server = Server()
    transport = httpx.MockTransport(server)
    remote, clock = make_remote(), FastClock()
    return TrainingClient(remote, clock=clock, http_transport=transport, read_only_by=FORBIDDEN_BY), server


def public_methods() -> Iterator[str]:
    client, _server = read_only()
    for resource in RESOURCES:
        for name, method in inspect.getmembers(getattr(client, resource), inspect.ismethod):
            called = f"{resource}.{method.__name__}"
            if not name.startswith("_") and called not in STREAMS:
                yield called


async def call(client: TrainingClient, name: str) -> None:
    resource, _, method = name.partition(".")
    bound = getattr(getattr(client, resource), method)
    await bound(**_arguments(bound) | CHANGES.get(name, {}))


@pytest.mark.parametrize("name", CHANGES)
async def test_changes_are_refused_before_they_are_sent(name: str) -> None:
    client, server = read_only()
    async with client:
        with pytest.raises(ReadOnlyError, match=f"read-only by {FORBIDDEN_BY}") as refused:
            await call(client, name)
        with pytest.raises(ReadOnlyError, match="submitting a job"):
            await client.push(Path("/nowhere/config.py"))  # it is not even run
    assert not refused.value.retryable
    assert server.requests == []


@pytest.mark.parametrize("name", sorted(set(public_methods()) - set(CHANGES) - {"graphql.execute"}))
async def test_everything_else_reads(name: str) -> None:
    """A method that is new and changes something is refused too: it belongs into CHANGES then."""
    client, server = read_only()
    async with client:
        with contextlib.suppress(InvalidAnswer, NotFound):  # the server answers {} to everything
            await call(client, name)
    assert server.requests, "it has asked nothing"


async def test_graphql_reads_and_does_not_change() -> None:
    client, server = read_only()
    async with client:
        await client.graphql.execute("query Teams { teams { id } }")
        assert len(server.requests) == 1
        for document in ("mutation { deploy { id } }", "query A { a } mutation B { b }"):
            with pytest.raises(ReadOnlyError):
                await client.graphql.execute(document)
    assert len(server.requests) == 1


def test_what_nobody_has_named_as_a_read_counts_as_a_change() -> None:
    for path in ("training_projects", "training_jobs/search/then_stop", "anything/new"):
        assert not only_reads("POST", f"/v1/{path}")
    assert not only_reads("PUT", "/v1/training_jobs/search")
    assert not only_reads("POST", "/graphql/", {"query": None})
    assert not only_reads("POST", "/graphql/")


def _arguments(method: Callable[..., Any]) -> dict[str, Any]:
    """Something for every parameter that must be given."""
    values: dict[str, Any] = {}
    for name, parameter in inspect.signature(method).parameters.items():
        if parameter.default is inspect.Parameter.empty:
            kind = str(parameter.annotation)
            values[name] = START if "datetime" in kind else 0 if kind == "int" else "x"
    return values
