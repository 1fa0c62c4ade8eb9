"""The cache of a project after its most recent job: as models, or as plain records for 100,000 files.

The records lack fields that newer servers add, and take a third of the models' memory and parsing time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic_core import core_schema

from api_client.models.base import STRICT_TEXT, ApiModel, FastPath, Integer, MaxItems, NullAsEmpty

MAX_FILES = 150_000


class CachedFile(ApiModel):
    """File or folder of the cache; ``modified`` is the server's text, not parsed."""

    path: str
    size_bytes: Integer = 0
    modified: str = ""
    file_type: str = ""
    permissions: str = ""


class CacheSummary(ApiModel):
    """All files of a project's cache at ``timestamp``."""

    timestamp: str = ""
    project_id: str = ""
    file_summaries: Annotated[list[CachedFile], MaxItems(MAX_FILES), NullAsEmpty(list)] = []


def _int_or_zero(value: object) -> int:
    return int(value) if isinstance(value, int | float) and abs(value) < 2**63 else 0  # 0 for NaN, too


_Text = Annotated[str, FastPath(STRICT_TEXT, lambda _value: "")]
_Bytes = Annotated[int, FastPath(core_schema.int_schema(strict=True, gt=-(2**63), lt=2**63), _int_or_zero)]


@dataclass(slots=True)
class ListedPath:
    """File or folder of the cache, as the server sends it; a value of the wrong type becomes empty or 0."""

    path: str
    size_bytes: _Bytes = 0
    modified: _Text = ""
    file_type: _Text = ""
    permissions: _Text = ""


@dataclass(slots=True)
class CacheListing:
    """Content of ``CacheSummary``, without fields added by newer servers."""

    timestamp: _Text = ""
    project_id: _Text = ""
    file_summaries: Annotated[list[ListedPath], MaxItems(MAX_FILES), NullAsEmpty(list)] = field(
        default_factory=list
    )
