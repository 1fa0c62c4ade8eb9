"""A client on a scripted server, a clock that never waits, and a key to look for."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import httpx
from pydantic import SecretStr

from api_client import Remote, RequestEvent, RetryPolicy, TrainingClient
from support.log_server import FastClock

KEY = "sk-very-secret-0123456789"
API_URL = "https://api.example.test"
APP_URL = "https://app.example.test"
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

JOB = {"id": "job1", "current_status": "TRAINING_JOB_RUNNING", "training_project_id": "proj1"}

Reply = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


class Server:
    """Answers with the replies in turn, the last one for ever; remembers the requests."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies) or [json_reply({})]
        self.requests: list[httpx.Request] = []

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        if callable(reply):
            return reply(request)
        # A response object is used up by being read: hand out a fresh one each time.
        return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)


def json_reply(value: Any, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=value)


def make_remote(**changes: Any) -> Remote:
    known = {"name": "lab", "app_url": APP_URL, "api_url": API_URL, "key_origin": "BASETEN_API_KEY"}
    return Remote(**{"key": SecretStr(KEY), **known, **changes})


class World:
    """A client, its server, its clock and the events it told."""

    def __init__(self, *replies: Reply, retry: RetryPolicy | None = None, **remote: Any) -> None:
        self.server = Server(*replies)
        self.clock = FastClock(begin_s=START.timestamp())
        self.events: list[RequestEvent] = []
        self.client = TrainingClient(
            make_remote(**remote),
            clock=self.clock,
            retry=retry,
            on_event=self.events.append,
            http_transport=httpx.MockTransport(self.server),
        )

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


def all_texts(error: BaseException) -> Iterable[str]:
    """Everything an exception says, its causes and contexts included."""
    current: BaseException | None = error
    while current is not None:
        yield str(current)
        yield repr(current)
        yield repr(current.args)
        yield repr(vars(current))
        current = current.__cause__ or current.__context__
