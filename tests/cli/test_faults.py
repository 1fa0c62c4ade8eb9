"""The published exit codes under faults of the server: each command, each class of fault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from api_client.http.retry import RetryPolicy
from support.cli import RunCli
from support.fake_backend import START
from support.faulty import FaultyServer, faulty_server
from support.served_platform import KEY, served_platform

COMMANDS: dict[str, tuple[str, ...]] = {
    "projects": ("projects",),
    "jobs": ("jobs",),
    "job": ("job", "job00001"),
    "logs": ("logs", "job00001"),
    "metrics": ("metrics", "job00001"),
    "checkpoints": ("checkpoints", "list", "--job-id", "job00001"),
    "cache": ("cache", "summarize", "llama-sft"),
    "capacity": ("capacity", "view"),
    "deployments": ("deployments",),
    "stop": ("stop", "job00001", "--yes"),
    "delete": ("delete", "job00001", "--yes"),
    "cost": ("cost", "job00001"),
    "recreate": ("recreate", "job00001"),
    "download": ("download", "job00001"),
    "health": ("health", "job00001"),
    "wait": ("wait", "job00001"),
}
FAULTS = {
    "401": (6, "refused the key of remote"),
    "403": (6, "refused the key of remote"),
    "404": (7, ""),
    "422": (1, "422"),
    "429": (8, "429"),
    "503": (8, "503"),
    "html": (1, "HTML"),
    "malformed": (1, "unexpected data"),
    "reset": (8, "broke off its response"),
    "redirect": (1, "elsewhere.invalid"),
}
PATIENT = {"logs", "wait"}
"""They wait for what may pass, as the streams do …"""
LASTING = {"401", "403", "404", "422", "redirect"}
"""… and this will not."""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyServer]:
    with faulty_server() as server, served_platform(server, tmp_path_factory.mktemp("platform")) as served:
        served.clock.moment = START
        yield server


@pytest.mark.parametrize("fault", FAULTS)
def test_every_command_tells_it_by_its_exit_code(
    fault: str, faulty: FaultyServer, cli: RunCli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    defaults = RetryPolicy.__init__.__defaults__
    monkeypatch.setattr(RetryPolicy.__init__, "__defaults__", (1, *defaults[1:]))
    monkeypatch.chdir(tmp_path)
    environ = {
        "BASETEN_API_KEY": KEY,
        "BASETEN_REMOTE_URL": faulty.url,
        "BASETEN_MANAGEMENT_API_URL_OVERRIDE": faulty.url,
    }
    code, words = FAULTS[fault]
    wrong = []
    for name, arguments in COMMANDS.items():
        if name in PATIENT and fault not in LASTING:
            continue
        faulty.set_faults(fault)
        result = cli(*arguments, environ=environ)
        if result.code != code or words not in result.err or result.out or "Traceback" in result.err:
            wrong.append(f"{name}: {result.code} {result.out[:60]!r} {result.err[-300:]!r}")
        if KEY in result.out + result.err:
            wrong.append(f"{name} shows the key")
    assert wrong == []
