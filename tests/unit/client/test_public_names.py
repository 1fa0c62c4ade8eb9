"""The package's public names, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import api_client


def test_every_public_name_is_there() -> None:
    for name in api_client.__all__:
        assert getattr(api_client, name) is not None
    assert set(api_client.__all__) <= set(dir(api_client))


def test_the_lazy_names_are_the_public_names() -> None:
    assert sorted(name for names in api_client._HOMES.values() for name in names) == api_client.__all__


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = api_client.Nonsense


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import api_client", ("pydantic", "httpx", "asyncio")),
        ("import api_client.models", ("httpx", "asyncio")),
        ("from api_client import RequestError", ("httpx", "pydantic")),
        ("from api_client import resolve_remote", ("httpx",)),
        # httpx loads rich and click by itself where they are installed.
        ("from api_client import TrainingClient", ("textual", "starlette", "uvicorn", "psutil", "sqlite3")),
    ],
)
def test_imports_stay_light(statement: str, unwanted: tuple[str, ...]) -> None:
    code = f"{statement}; import sys; print([name for name in {unwanted!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
