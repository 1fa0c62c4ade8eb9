"""Answers of the published API in which every text that the models know of means harm."""

from __future__ import annotations

import json
import re
import time
import types
import unicodedata
from dataclasses import is_dataclass
from datetime import date, datetime
from functools import partial
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from typing_extensions import get_type_hints, is_typeddict

from api_client import models, routes
from api_client.routes import ROUTES, Route
from support.fake_baseten import Answer, FakeBaseten, page
from support.fake_runs import HOUR_S, iso

MARK = "FORN"
"""In every sequence of the harm below: nothing of ours says it."""

HARM = (
    f"\x1b[4242m\x1b[2J\x1b]52;c;{MARK}\x07\x1b]8;;http://{MARK}/\x1b\\\x1b]0;{MARK}\x07\x1bP{MARK}\x1b\\"
    f"\x9b4242m\x9d0;{MARK}\x9c\x90{MARK}\x9c[blink]{MARK}[/blink][link=http://{MARK}]x[/link][/]"
    "\u202e\u2066\u200b\x00\x07\x08\x7f\ud800\r\n\t../../etc/passwd"
)
LONG = 20_000
"""Characters of the texts that people may write at length."""

LONG_FIELDS = frozenset({"message", "event_message", "error_message"})
NOW_FIELDS = frozenset({"modified", "last_modified", "timestamp"})
_OSC = re.compile(r"\x1b[\]PX^_](?P<body>[^\x07\x1b]*)")
_CSI = re.compile(r"\x1b\[(?P<parameters>[0-?]*)[ -/]*[@-~]")
_BLINK = "5"
_COLOUR_NUMBER = re.compile(r"[34]8;5;")
_OWN_TITLE = "2;"
"""The window's title has the name of the job, made harmless; the harm's own title comes by number 0."""

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def _an_hour_ago() -> str:
    return iso(time.time() - HOUR_S)


class Values(NamedTuple):
    """What is in every field of an answer, by the type of the field. No time is an hour ago."""

    text: str = HARM
    number: float = 1
    time: str = ""
    id: str = ""
    """Text of ids, if it is another: URLs have them."""


HARMFUL = Values()


def harmful(kind: Any, name: str = "", values: Values = HARMFUL) -> Any:
    """A value of that type as the JSON of an answer has it, every text of it harmful."""
    moment = values.time or _an_hour_ago()
    if kind is Any or kind is str or kind is SecretStr:
        if name in NOW_FIELDS:
            return moment
        if values.id and (name == "id" or name.endswith("_id")):
            return values.id
        return values.text + "x" * LONG if name in LONG_FIELDS and values.text == HARM else values.text
    if kind in (datetime, date):
        return moment[: 10 if kind is date else None]
    if kind is bool:
        return True
    if kind in (int, float):
        return values.number
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Annotated, Union, types.UnionType):
        return harmful(next(one for one in arguments if one is not type(None)), name, values)
    if origin is list:
        return [harmful(arguments[0], name, values)]
    if origin is dict:
        return {values.text: harmful(arguments[1], name, values)}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {
            one: harmful(field.annotation, one, values)
            for one, field in kind.model_fields.items()
            if one != "latest_job"  # a project's, whose jobs have projects …
        }
    if is_dataclass(kind) or is_typeddict(kind):
        return {one: harmful(hint, one, values) for one, hint in get_type_hints(kind).items()}
    return values.text


def answer_of(route: Route[Any], values: Values = HARMFUL) -> Any:
    """An answer of that route, every text of it harmful."""
    body = harmful(route.kind, values=values)
    return {route.inside: body} if route.inside else body


def _log(now_ms: int, values: Values) -> list[dict[str, Any]]:
    record = harmful(models.LogRecord, values=values)
    traceback = f"Traceback (most recent call last):{HARM}"
    number = f"{values.number:.0f}" if isinstance(values.number, float) else str(values.number)
    steps = f"step {number}/{number} loss {number}e{number} eta {number}:{number}:{number}"
    texts = [record["message"], HARM, f"step 3/9 loss 0.5 {HARM}", traceback, steps]
    return [
        record | {"timestamp": str((now_ms - 5_000 + n) * 1_000_000), "message": text}
        for n, text in enumerate(texts)
    ]


class HostileServer(FakeBaseten):
    """A server that keeps the API's shapes and nothing else; every id leads to the same things."""

    def __init__(self, values: Values = HARMFUL) -> None:
        super().__init__()
        harm = partial(harmful, values=values)

        nodes = {"node_count": 2} if abs(values.number) < 2**63 else {}

        def hostile_job(status: str, **changes: object) -> dict[str, Any]:
            return harm(models.TrainingJob) | nodes | {"current_status": status} | changes

        text = values.id or values.text
        job = hostile_job("TRAINING_JOB_RUNNING", id=f"live{text}")
        ended = hostile_job(text, id=f"odd{text}")
        waiting = hostile_job("TRAINING_JOB_PENDING", id=f"wait{text}")
        project = harm(models.TrainingProject) | {"latest_job": job}
        log = _log(int(time.time() * 1000), values)
        jobs = [job, ended, waiting]
        bodies: dict[Route[Any], Any] = {
            **{route: answer_of(route, values) for route in ROUTES if not route.is_change},
            routes.PROJECTS: {"training_projects": [project]},
            routes.PROJECT: {"training_project": project},
            routes.JOBS: {"training_project": project, "training_jobs": jobs},
            routes.SEARCH_JOBS: {"training_jobs": jobs},
            routes.JOB: {"training_job": job},
            routes.JOB_METRICS: harm(models.JobMetrics) | {"training_job": job},
            routes.CHECKPOINT_FILES: harm(models.CheckpointFilesPage) | {"next_page_token": None},
        }
        for route, body in bodies.items():
            self.on(route.method, route.pattern, Answer(body))
        for logs in (routes.JOB_LOGS, routes.DEPLOYMENT_LOGS):
            self.on(logs.method, logs.pattern, lambda asked: Answer({"logs": page(log, asked.query)}))
        self.job_id = job["id"]


def refusing(status: int) -> FakeBaseten:
    """A server that refuses everything, in words that mean harm."""
    server = FakeBaseten()
    body = json.dumps({"code": HARM, "message": HARM, "detail": HARM}).encode()
    answer = Answer(body, status=status, headers={"X-Request-Id": f"{MARK}\tid"})
    for method in ("GET", "POST"):
        server.on(method, ".*", answer)
    return server


def obeyed(screen: str) -> list[str]:
    """What a terminal would do of the harm, were this written to it; ours is let through."""
    strings = [match for match in _OSC.finditer(screen) if not match["body"].startswith(_OWN_TITLE)]
    found = [match.group() for match in strings if MARK in match["body"]]
    for match in _CSI.finditer(screen):
        parameters = _COLOUR_NUMBER.sub("", match["parameters"]).split(";")
        if "4242" in parameters or (match.group().endswith("m") and _BLINK in parameters):
            found.append(match.group())
    plain = _CSI.sub("", _OSC.sub("", screen))
    return found + [one for one in hidden_in(plain) if one not in "\x1b\x07\r\n\x0f"]


def hidden_in(text: str) -> list[str]:
    """Characters that have no picture: controls, bidirectional overrides, surrogates."""
    return sorted(one for one in {*text} - {"\n"} if unicodedata.category(one) in _HIDDEN)
