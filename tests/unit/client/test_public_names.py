"""The package's public names, and what importing them costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import api_client


def test_every_public_name_is_there_and_no_other() -> None:
    assert api_client.__file__ is not None
    body = ast.parse(Path(api_client.__file__).read_text()).body
    checked = next(part for part in body if isinstance(part, ast.If))  # if TYPE_CHECKING
    imports = [line for line in checked.body if isinstance(line, ast.ImportFrom)]
    assert sorted(api_client.__all__) == sorted(name.name for line in imports for name in line.names)
    for name in api_client.__all__:
        assert getattr(api_client, name) is not None
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = api_client.Nonsense
    assert set(api_client.__all__) <= set(dir(api_client))


def test_imports_stay_light() -> None:
    """Each after those before it, in one process; httpx loads rich and click by itself."""
    steps = {
        "from api_client import RequestError": ["httpx", "pydantic", "asyncio"],
        "import api_client.models": ["httpx", "asyncio"],
        "from api_client import resolve_remote": ["httpx"],
        "from api_client import TrainingClient": ["textual", "starlette", "uvicorn", "psutil", "sqlite3"],
    }
    told = [
        f"{step}; print([each for each in {names} if each in sys.modules])" for step, names in steps.items()
    ]
    command = [sys.executable, "-c", "\n".join(["import sys", *told])]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["[]"] * len(steps)
