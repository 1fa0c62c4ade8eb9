"""Answers of the published API in which every text that the models know of means harm."""

from __future__ import annotations

import json
import re
import time
import types
import unicodedata
from dataclasses import is_dataclass
from datetime import date, datetime
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from typing_extensions import get_type_hints, is_typeddict

from api_client import models
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


def harmful(kind: Any, name: str = "") -> Any:
    """A value of that type as the JSON of an answer has it, every text of it harmful."""
    if kind is Any or kind is str or kind is SecretStr:
        if name in NOW_FIELDS:
            return _an_hour_ago()
        return HARM + "x" * LONG if name in LONG_FIELDS else HARM
    if kind in (datetime, date):
        return _an_hour_ago()[: 10 if kind is date else None]
    if kind in (int, float, bool):
        return kind(1)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Annotated, Union, types.UnionType):
        return harmful(next(one for one in arguments if one is not type(None)), name)
    if origin is list:
        return [harmful(arguments[0], name)]
    if origin is dict:
        return {HARM: harmful(arguments[1], name)}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {
            one: harmful(field.annotation, one)
            for one, field in kind.model_fields.items()
            if one != "latest_job"  # a project's, whose jobs have projects …
        }
    if is_dataclass(kind) or is_typeddict(kind):
        return {one: harmful(hint, one) for one, hint in get_type_hints(kind).items()}
    return HARM


def hostile_job(status: str, **changes: object) -> dict[str, Any]:
    return harmful(models.TrainingJob) | {"current_status": status} | changes


def _log(now_ms: int) -> list[dict[str, Any]]:
    record = harmful(models.LogRecord)
    traceback = f"Traceback (most recent call last):{HARM}"
    texts = [record["message"], HARM, f"step 3/9 loss 0.5 {HARM}", traceback]
    return [
        record | {"timestamp": str((now_ms - 5_000 + n) * 1_000_000), "message": text}
        for n, text in enumerate(texts)
    ]


class HostileServer(FakeBaseten):
    """A server that keeps the API's shapes and nothing else; every id leads to the same things."""

    def __init__(self) -> None:
        super().__init__()
        job = hostile_job("TRAINING_JOB_RUNNING", node_count=2, id=f"live{HARM}")
        ended = hostile_job(HARM, id=f"odd{HARM}")
        waiting = hostile_job("TRAINING_JOB_PENDING", id=f"wait{HARM}")
        project = harmful(models.TrainingProject) | {"latest_job": job}
        a_job = r"/v1/training_projects/[^/]+/jobs/[^/]+"
        files = harmful(models.CheckpointFilesPage) | {"next_page_token": None}
        log = _log(int(time.time() * 1000))
        jobs = [job, ended, waiting]
        for method, path, body in (
            ("GET", "/v1/training_projects", {"training_projects": [project]}),
            ("GET", "/v1/training_projects/[^/]+", {"training_project": project}),
            ("GET", "/v1/training_projects/[^/]+/jobs", {"training_project": project, "training_jobs": jobs}),
            ("POST", "/v1/training_jobs/search", {"training_jobs": jobs}),
            ("GET", a_job, {"training_job": job}),
            ("GET", f"{a_job}/metrics", harmful(models.JobMetrics)),
            ("GET", f"{a_job}/checkpoints", {"checkpoints": [harmful(models.Checkpoint)]}),
            ("GET", f"{a_job}/checkpoint_files", files),
            ("GET", f"{a_job}/auth_codes", {"auth_codes": [harmful(models.AuthCode)]}),
            ("GET", "/v1/training_projects/[^/]+/cache/summary", harmful(models.CacheSummary)),
            ("GET", "/v1/training/capacity", harmful(models.TrainingCapacity)),
            ("GET", "/v1/training/jobs/[^/]+/queue_context", harmful(models.QueueContext)),
            ("GET", "/v1/instance_types", {"instance_types": [harmful(models.InstanceType)]}),
            ("GET", "/v1/instance_type_prices", {"instance_types": [harmful(models.InstanceTypePrice)]}),
            ("GET", "/v1/billing/usage_summary", {"training_usage": harmful(models.TrainingUsage)}),
            ("GET", "/v1/teams", {"teams": [harmful(models.Team)]}),
            ("GET", "/v1/users/me", harmful(models.UserInfo)),
            ("GET", "/v1/(teams/[^/]+/)?secrets", {"secrets": [harmful(models.Secret)]}),
            ("GET", "/v1/models", {"models": [harmful(models.Model)]}),
            ("GET", "/v1/models/[^/]+/deployments", {"deployments": [harmful(models.Deployment)]}),
        ):
            self.on(method, path, Answer(body))
        self.on("GET", f"{a_job}/logs", lambda asked: Answer({"logs": page(log, asked.query)}))
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
