"""The package's public names, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

from api_client import deployment


def test_every_public_name_is_there_and_none_is_a_module() -> None:
    for name in deployment.__all__:
        assert not isinstance(getattr(deployment, name), ModuleType), name
    assert sorted(deployment._HOME_OF) == sorted(deployment.__all__)
    assert set(deployment.__all__) <= set(dir(deployment))


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = deployment.Nonsense


def test_ranks_and_selections_need_no_network() -> None:
    code = (
        "import sys, api_client.deployment.validation, api_client.deployment.selection,"
        " api_client.deployment.instances; print('httpx' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert said.strip() == "False"
