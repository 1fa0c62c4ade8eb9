"""Answers as another version of the server, or one whose clock is wrong, would give them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode

from api_client.emulator.answers import JsonAnswer
from api_client.emulator.fault_layer.rules import Fault

UNHEARD_OF = "FROM_A_LATER_VERSION"
UNKNOWN_FIELDS = {"x_later_version": {"deep": [1, None, {"more": "😀"}]}}
OPEN_VALUES = frozenset(
    {
        "auth_provider",
        "availability_model",
        "checkpoint_sync_status",
        "level",
        "session_provider",
        "sync_status",
        "trigger",
    }
)
"""Fields that hold one word of a list that may grow."""

OPTIONAL = frozenset(
    {
        "auth_code_generated_at",
        "authenticated_at",
        "email",
        "error_message",
        "event_message",
        "exit_code",
        "expires_at",
        "min_gpus",
        "node_count",
        "org_capacity",
        "pending_seconds",
        "priority",
        "released_at",
        "request_id",
        "target_job_name",
        "team_capacity",
        "training_job_name",
        "tunnel_name",
        "user",
        "working_directory",
    }
)
"""Fields of answers that the published description does not require."""

_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_EPOCH_NS = re.compile(r"\d{19}", re.ASCII)
_EPOCH_FIELDS = ("start_epoch_millis", "end_epoch_millis")
_NS_PER_S, _MS_PER_S = 1_000_000_000, 1000


def rewritten(body: bytes, faults: Sequence[Fault]) -> bytes:
    """A JSON body after these faults; anything else stays as it is."""
    try:
        value = json.loads(body)
    except ValueError:
        return body
    for fault in faults:
        match fault.kind:
            case "drift":
                value = _drifted(value)
            case "nulls":
                value = _without_lists(value)
            case "statuses":
                value = _of_odd_status(value)
            case "skew":
                value = _shifted(value, fault.seconds or 0.0)
    return bytes(JsonAnswer(value).body)


def shifted_query(query: bytes, ahead_s: float) -> bytes:
    """A query in the time of a server whose clock is ``ahead_s`` ahead, translated into the true time."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    moved = [
        (
            name,
            str(int(text) - int(ahead_s * _MS_PER_S)) if name in _EPOCH_FIELDS and text.isdecimal() else text,
        )
        for name, text in pairs
    ]
    return urlencode(moved).encode("latin-1")


def _drifted(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {
            name: UNHEARD_OF if name in OPEN_VALUES and isinstance(item, str) else _drifted(item)
            for name, item in value.items()
            if name not in OPTIONAL
        }
        # The keys of series by GPU are numbers: what is not one of them is no new field there.
        return kept if kept and all(name.isdecimal() for name in kept) else {**UNKNOWN_FIELDS, **kept}
    if isinstance(value, list):
        return [_drifted(item) for item in value] or None
    return value


def _without_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_lists(item) for name, item in value.items()}
    return None if isinstance(value, list) else value


def _of_odd_status(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: UNHEARD_OF if name == "current_status" else _of_odd_status(item)
            for name, item in value.items()
        }
    return [_of_odd_status(item) for item in value] if isinstance(value, list) else value


def _shifted(value: Any, ahead_s: float) -> Any:
    if isinstance(value, dict):
        return {name: _shifted(item, ahead_s) for name, item in value.items()}
    if isinstance(value, list):
        return [_shifted(item, ahead_s) for item in value]
    if isinstance(value, str) and _ISO.fullmatch(value):
        return (datetime.fromisoformat(value) + timedelta(seconds=ahead_s)).isoformat()
    if isinstance(value, str) and _EPOCH_NS.fullmatch(value):
        return str(int(value) + int(ahead_s * _NS_PER_S))
    return value
