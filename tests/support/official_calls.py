"""Call the official ``baseten`` client, whose methods and models are generated from the published API."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any, get_args, get_type_hints

from baseten.client.managementapi._client import ApiClient


def official_call(api: ApiClient, name: str, ids: Mapping[str, str], /, **fields: Any) -> Any:
    """Call a method with those of the ids that it takes, and a request (or parameters) of ``fields``."""
    method = getattr(api, name)
    hints = get_type_hints(method)
    given: dict[str, Any] = {each: ids[each] for each in hints if each in ids}
    for place in ("request", "params"):
        if place in hints and (fields or place == "request"):
            (model,) = {*get_args(hints[place])} - {NoneType} or {hints[place]}
            given[place] = model.model_validate(fields)
    return method(**given)
