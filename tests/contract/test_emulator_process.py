"""The emulator as a process: what it leaves behind, and whom it outlives (nobody)."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from api_client.emulator.data_folder import DataFolder, EmulatorStartError
from api_client.emulator.processes import EmulatorChild, EmulatorFailed
from api_client.emulator.store.database import Database

PATIENCE_S = 20.0
HALF_A_REQUEST = (
    "POST /v1/training_jobs/search HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    "Authorization: Bearer {}\r\nContent-Length: 100\r\n\r\n{{"
)
REAL_KEY = "the-users-real-key"
TICK_S = 0.05


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        threading.Event().wait(TICK_S)


def client_of(child: EmulatorChild) -> httpx.Client:
    return httpx.Client(base_url=child.url, headers={"Authorization": f"Bearer {child.key}"}, trust_env=False)


def submit(client: httpx.Client, name: str, command: str, **more: Any) -> str:
    """Create a job; its path. ``environment_variables`` are its runtime's, whatever else is its compute's."""
    variables = more.pop("environment_variables", {})
    project = client.post("/v1/training_projects", json={"training_project": {"name": "lab"}}).json()
    jobs = f"/v1/training_projects/{project['training_project']['id']}/jobs"
    spec = {
        "name": name,
        "image": {"base_image": "python:3.11"},
        "compute": {"node_count": 1, **more},
        "runtime": {"start_commands": [command], "environment_variables": variables},
    }
    made = client.post(jobs, json={"training_job": spec})
    return f"{jobs}/{made.json()['training_job']['id']}"


def job_at(client: httpx.Client, path: str) -> dict[str, Any]:
    job: dict[str, Any] = client.get(path).json()["training_job"]
    return job


def has_status(client: httpx.Client, path: str, status: str) -> Callable[[], bool]:
    return lambda: job_at(client, path)["current_status"] == f"TRAINING_JOB_{status}"


def messages(client: httpx.Client, path: str) -> list[str]:
    return [line["message"] for line in client.get(path + "/logs").json()["logs"]]


def completed(client: httpx.Client, name: str, command: str, **more: Any) -> str:
    """Create a job and wait until it has run; its path."""
    path = submit(client, name, command, **more)
    eventually(has_status(client, path, "COMPLETED"))
    return path


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatorChild]:
    """An emulator for tests that leave each other alone; its user has a key of Baseten's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BASETEN_API_KEY", REAL_KEY)
        # Not a copy of the warm process: /proc shows the environment that a process was started with.
        patch.setattr("api_client.emulator.processes.subprocess", subprocess)
        with EmulatorChild(world="empty", data_dir=tmp_path_factory.mktemp("lab") / "data") as child:
            yield child


@pytest.fixture(scope="module")
def client(lab: EmulatorChild) -> Iterator[httpx.Client]:
    with client_of(lab) as opened:
        yield opened


def test_emulator_listens_on_loopback_only(lab: EmulatorChild) -> None:
    connections = psutil.Process(lab.pid).net_connections(kind="inet")
    assert {one.laddr.ip for one in connections if one.status == psutil.CONN_LISTEN} == {"127.0.0.1"}


def test_a_job_runs_and_everything_of_it_is_gone_afterwards() -> None:
    with EmulatorChild(world="empty") as child, client_of(child) as client:
        path = completed(client, "two nodes", "echo rank $BT_NODE_RANK of $BT_GROUP_SIZE", node_count=2)
        assert {"rank 0 of 2", "rank 1 of 2"} <= set(messages(client, path))
        assert (child.data_dir.stat().st_mode & 0o777) == 0o700
        assert ((child.data_dir / "key").stat().st_mode & 0o777) == 0o600
        folder, process = child.data_dir, psutil.Process(child.pid)
        half_a_request = socket.create_connection((urlsplit(child.url).hostname, urlsplit(child.url).port))
        half_a_request.sendall(HALF_A_REQUEST.format(child.key).encode())
        # By the answer to a whole request, the half one has been read too.
        assert client.get("/v1/teams").status_code == 200
        started = time.monotonic()
    # Not a measurement: a shutdown that waits for open connections is aborted only after twice as long.
    assert time.monotonic() - started < 5
    half_a_request.close()
    assert not process.is_running()
    assert not folder.exists()


def test_no_key_of_ours_reaches_a_job(lab: EmulatorChild, client: httpx.Client) -> None:
    assert REAL_KEY not in psutil.Process(lab.pid).environ().values()
    path = completed(client, "curious", "env; cat /proc/$PPID/environ | tr '\\0' '\\n'; true")
    text = "\n".join(messages(client, path))
    assert "BT_TRAINING_JOB_ID" in text
    assert REAL_KEY not in text
    assert lab.key not in text


@pytest.mark.proves("docs/emulator.md", "The emulator")
def test_a_restart_keeps_what_was_finished_and_fails_what_was_lost(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with EmulatorChild(world="empty", data_dir=folder) as child, client_of(child) as client:
        done = completed(client, "done", "echo it is done")
        lost = submit(client, "lost", "echo up; sleep 1000 & sleep 1000", node_count=2)
        eventually(has_status(client, lost, "RUNNING"))
        eventually(lambda: messages(client, lost).count("up") == 2)
        key = child.key
        emulator = psutil.Process(child.pid)
        workers = emulator.children(recursive=True)
        emulator.kill()
        _, alive = psutil.wait_procs(workers, timeout=PATIENCE_S)
        assert alive == []
        scratch = folder / "jobs" / lost.rpartition("/")[2] / "node-0" / "scratch"
        assert scratch.exists()
    with EmulatorChild(world="empty", data_dir=folder) as child, client_of(child) as client:
        assert child.key == key
        assert job_at(client, done)["current_status"] == "TRAINING_JOB_COMPLETED"
        assert "it is done" in messages(client, done)
        job = job_at(client, lost)
        assert job["current_status"] == "TRAINING_JOB_FAILED"
        assert "restarted" in job["error_message"]
        assert messages(client, lost).count("up") == 2
        assert not scratch.exists()
        os.kill(child.pid, signal.SIGHUP)
        assert psutil.Process(child.pid).wait(PATIENCE_S) in (0, None)


def test_a_folder_and_a_port_in_use_are_refused_in_words(tmp_path: Path, lab: EmulatorChild) -> None:
    with pytest.raises(EmulatorStartError, match="another emulator"):
        DataFolder(lab.data_dir)
    child = EmulatorChild(world="empty", data_dir=tmp_path / "data", port=urlsplit(lab.url).port or 0)
    with pytest.raises(EmulatorFailed, match="cannot listen"), child:
        pass


@pytest.mark.proves("docs/emulator.md", "The emulator")
def test_a_folder_of_something_else_or_of_another_version_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    tmp_path.chmod(0o755)
    with pytest.raises(EmulatorStartError, match="other files"):
        DataFolder(tmp_path)
    assert (tmp_path.stat().st_mode & 0o777) == 0o755
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    with closing(sqlite3.connect(tmp_path / "emulator.db")) as database:
        database.execute("CREATE TABLE fleet_tempo (wall_ns INTEGER)")
    with pytest.raises(EmulatorStartError, match="another version"):
        Database(tmp_path / "emulator.db")


@pytest.mark.proves("README.md", "Try it")
def test_the_demo_world_has_simulated_jobs_and_one_real_and_forgets_what_was_deleted(tmp_path: Path) -> None:
    def jobs_of(client: httpx.Client) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = client.post("/v1/training_jobs/search", json={}).json()["training_jobs"]
        return found

    def projects_of(client: httpx.Client) -> dict[str, str]:
        projects = client.get("/v1/training_projects").json()["training_projects"]
        return {project["name"]: project["id"] for project in projects}

    folder = tmp_path / "data"
    with EmulatorChild(data_dir=folder) as child, client_of(child) as client:
        found, projects = jobs_of(client), projects_of(client)
        assert len(found) > 20
        assert len({job["current_status"] for job in found}) >= 8
        (real,) = (job for job in found if job["name"] == "digits-mlp")
        assert real["node_count"] == 2
        path = f"/v1/training_projects/{real['training_project_id']}/jobs/{real['id']}"
        eventually(lambda: any("'loss'" in message for message in messages(client, path)))
        assert len(projects) > 5
        secrets = client.get("/v1/secrets").json()["secrets"]
        assert [secret["name"] for secret in secrets] == ["hf_access_token"]
        for name in ("evals", "digits"):
            assert client.delete(f"/v1/training_projects/{projects.pop(name)}").status_code == 200
    with EmulatorChild(data_dir=folder) as child, client_of(child) as client:
        assert projects_of(client) == projects
        assert {job["training_project"]["name"] for job in jobs_of(client)} <= set(projects)


@pytest.mark.proves("docs/emulator.md", "How a job's environment differs")
def test_a_secret_is_in_no_answer_and_in_no_file_but_its_own(lab: EmulatorChild, client: Any) -> None:
    value = "tell-nobody-5f1c"
    team = client.get("/v1/teams").json()["teams"][0]
    client.post(f"/v1/teams/{team['id']}/secrets", json={"name": "token", "value": value})
    variables = {"TOKEN": {"name": "token"}}
    path = completed(client, "quiet", 'echo "${#TOKEN} letters"', environment_variables=variables)
    assert f"{len(value)} letters" in messages(client, path)
    paths = ("", "/logs", "/metrics", "/checkpoints", "/checkpoint_files", "/../..", "/..")
    answers = [client.get(path + rest).text for rest in paths]
    answers += [client.get("/v1/secrets").text, client.post("/v1/training_jobs/search", json={}).text]
    assert not any(value in answer for answer in answers)
    files = [file for file in lab.data_dir.rglob("*") if file.is_file()]
    (holding,) = (file for file in files if value.encode() in file.read_bytes())
    assert holding.parent.name == "secrets"
    assert holding.stat().st_mode & 0o777 == 0o600


@pytest.mark.proves("docs/emulator.md", "Preempting a spot job")
def test_a_spot_job_is_preempted_on_request(lab: EmulatorChild, client: httpx.Client) -> None:
    path = submit(client, "spot", "sleep 1000", availability_model="spot")
    dedicated = submit(client, "dedicated", "sleep 1000")
    for each in (path, dedicated):
        eventually(has_status(client, each, "RUNNING"))
    job_id, dedicated_id = path.rpartition("/")[2], dedicated.rpartition("/")[2]
    assert client.post(f"/emulator/jobs/{job_id}/preempt").status_code == 200
    eventually(has_status(client, path, "PREEMPTED"))
    assert "reclaimed" in job_at(client, path)["error_message"]
    for refused, word in ((job_id, "PREEMPTED"), (dedicated_id, "dedicated")):
        answer = client.post(f"/emulator/jobs/{refused}/preempt")
        assert (answer.status_code, word in answer.json()["message"]) == (400, True)
    assert client.post("/emulator/jobs/nobody/preempt").status_code == 404
    assert httpx.post(f"{lab.url}/emulator/jobs/{dedicated_id}/preempt", trust_env=False).status_code == 401
    events = client.get(f"/v1/training/jobs/{job_id}/queue_context").json()["events"]
    assert events[-1]["status"] == "TRAINING_JOB_PREEMPTED"
