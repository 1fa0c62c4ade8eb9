"""The published exit codes under faults of the server: each command, each class of fault."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from api_client.http.retry import RetryPolicy
from support.cli import RunCli
from support.fake_backend import START
from support.faulty import FaultyServer, faulty_server
from support.served_platform import KEY, served_platform

OF_A_JOB = ["job", "logs", "metrics", "stop", "cost", "recreate", "download", "health", "wait"]
COMMANDS = [f"{name} job00001" for name in OF_A_JOB]
COMMANDS += ["projects", "jobs", "capacity view", "deployments", "delete job00001 --yes"]
COMMANDS += ["checkpoints list --job-id job00001", "cache summarize llama-sft"]
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
PATIENT = {"logs job00001", "wait job00001"}
"""They wait for what may pass, as the streams do …"""
LASTING = {"401", "403", "404", "422", "redirect"}
"""… and this will not."""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyServer]:
    with faulty_server() as server, served_platform(server, tmp_path_factory.mktemp("platform")) as served:
        served.clock.moment = START
        yield server


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize("fault", FAULTS)
def test_every_command_tells_it_by_its_exit_code(
    fault: str, faulty: FaultyServer, cli: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = RetryPolicy.__init__.__defaults__
    monkeypatch.setattr(RetryPolicy.__init__, "__defaults__", (1, *defaults[1:]))
    code, words = FAULTS[fault]
    wrong = []
    for command in COMMANDS:
        if command in PATIENT and fault not in LASTING:
            continue
        faulty.set_faults(fault)
        result = cli(command, environ=faulty.environ())
        if result.code != code or words not in result.err or result.out or "Traceback" in result.err:
            wrong.append(f"{command}: {result.code} {result.out[:60]!r} {result.err[-300:]!r}")
        if KEY in result.out + result.err:
            wrong.append(f"{command} shows the key")
    assert wrong == []
