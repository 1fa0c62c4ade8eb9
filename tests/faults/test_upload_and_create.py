"""Submissions to ``FakeBaseten`` that keeps the published API: what is sent, when, how often."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from api_client import (
    ArchiveError,
    ConfigurationError,
    Overrides,
    Remote,
    ServerFault,
    TrainingClient,
    push,
)
from api_client.definitions import Image, Runtime, TrainingJob, TrainingProject, Workspace
from api_client.submission.submitting import Submission, SubmissionProgress
from api_client.transfers import uploads
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, job, project
from support.fake_object_store import BUCKET, SESSION_TOKEN, UPLOADED_KEY, FakeObjectStore, Trouble
from support.log_server import FastClock

CREDENTIALS_ROUTE = "/v1/blobs/credentials/train"
JOBS_ROUTE = "POST /v1/training_projects/proj1/jobs"
PUBLISHED_JOB_FIELDS = {
    "image", "compute", "runtime", "interactive_session", "name", "priority", "weights",
    "enable_baseten_workdir", "truss_user_env",
}  # fmt: skip
SENT_BY_THE_OFFICIAL_CLIENT_TOO = {"workspace"}
TEAM = {"id": "t2", "name": "Product", "default": False, "created_at": "2025-03-01T12:00:00Z"}
DEFAULT_TEAM = {"id": "t1", "name": "Research", "default": True, "created_at": "2025-03-01T12:00:00Z"}


class Platform(FakeBaseten):
    """A fake of Baseten that also takes submissions; what it was asked in ``asked``."""

    def __init__(self, store: FakeObjectStore) -> None:
        super().__init__()
        self.store = store
        self.created: list[dict[str, object]] = []
        self.upserted: list[ReceivedRequest] = []
        self.on("GET", CREDENTIALS_ROUTE, lambda _: Answer(store.credentials()))
        self.on("POST", "/v1/(teams/[^/]+/)?training_projects", self._upsert)
        self.on(*JOBS_ROUTE.split(), self._create)

    def _upsert(self, asked: ReceivedRequest) -> Answer:
        self.upserted.append(asked)
        return Answer({"training_project": project(name=asked.body["training_project"]["name"])})

    def _create(self, asked: ReceivedRequest) -> Answer:
        self.created.append(asked.body["training_job"])
        return Answer({"training_job": job("job7", "CREATED", name=asked.body["training_job"]["name"])})

    def routes(self) -> list[str]:
        return [f"{asked.method} {asked.path}" for asked in self.asked]

    def has_teams(self, *teams: dict[str, object]) -> None:
        self.on("GET", "/v1/teams", Answer({"teams": teams}))

    async def push(
        self, config: TrainingProject, source: Path, of_remote: str | None = None, **how: Any
    ) -> Submission:
        """Submit, from a remote of that team."""
        remote = Remote("baseten", self.url, self.url, SecretStr(self.key), "a test", team=of_remote)
        async with TrainingClient(remote, clock=FastClock()) as client:
            return await client.push(config, source_dir=source, **how)


@pytest.fixture
def platform() -> Iterator[Platform]:
    with FakeObjectStore() as store, Platform(store) as running:
        yield running


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "train.py").write_text("print('hello')")
    (folder / "lib").mkdir()
    (folder / "lib/model.py").write_text("")
    return folder


def config(**fields: object) -> TrainingProject:
    runtime = Runtime(start_commands=["python train.py"])
    made = TrainingJob(image=Image(base_image="python:3.12"), runtime=runtime, **fields)
    return TrainingProject(name="llama-sft", job=made)


async def test_the_code_is_there_before_what_is_published_is_created(
    platform: Platform, source: Path
) -> None:
    told: list[SubmissionProgress] = []
    submission = await platform.push(config(), source, on_progress=told.append)
    assert [each for each in platform.routes() if "teams" not in each and "graphql" not in each] == [
        f"GET {CREDENTIALS_ROUTE}",
        "POST /v1/training_projects",
        JOBS_ROUTE,
    ]
    stored = platform.store.object
    assert stored is not None and b"print('hello')" in stored
    assert submission.training_job.id == "job7"
    assert set(submission.as_dict()) == {"training_project", "training_job"}
    assert submission.as_dict()["training_job"]["current_status"] == "TRAINING_JOB_CREATED"
    phases = [each.phase for each in told]
    assert phases == sorted(phases, key=["archiving", "uploading", "creating"].index)
    assert set(phases) == {"archiving", "uploading", "creating"}
    uploading = [each for each in told if each.phase == "uploading"]
    assert uploading[-1].done_bytes == uploading[-1].total_bytes == len(stored)
    (sent,) = platform.created
    assert set(sent) == PUBLISHED_JOB_FIELDS | SENT_BY_THE_OFFICIAL_CLIENT_TOO
    assert sent["runtime"]["artifacts"] == [{"s3_bucket": BUCKET, "s3_key": UPLOADED_KEY}]
    assert sent["truss_user_env"]["truss_client_version"].startswith("bt-tui/")
    assert platform.upserted[0].body == {"training_project": {"name": "llama-sft"}}
    # Neither side sees the other's credentials.
    assert all(platform.key not in str(taken) for taken in platform.store.taken)
    assert all(SESSION_TOKEN not in str(asked) for asked in platform.asked)


async def test_an_error_answered_to_job_creation_is_not_repeated(platform: Platform, source: Path) -> None:
    platform.on(*JOBS_ROUTE.split(), Answer({"message": "try again"}, status=503))
    with pytest.raises(ServerFault, match="try again"):
        await platform.push(config(), source)
    assert platform.routes().count(JOBS_ROUTE) == 1


async def test_a_workspace_that_cannot_be_archived_asks_for_no_credentials(
    platform: Platform, source: Path
) -> None:
    with pytest.raises(ArchiveError, match="external_dirs"):
        await platform.push(config(workspace=Workspace(external_dirs=["../none"])), source)
    with pytest.raises(ConfigurationError, match="h100"):
        await platform.push(config(), source, overrides=Overrides(accelerator="h100"))
    assert f"GET {CREDENTIALS_ROUTE}" not in platform.routes()
    assert not any(each.startswith("POST /v1/") for each in platform.routes())


async def test_a_store_that_takes_no_data_is_told(
    platform: Platform, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "STALLED_AFTER_S", 0.01)
    told, noted = [], threading.Event()
    platform.store.trouble = {"whole": [Trouble(until=noted), Trouble(cut_after=100)]}

    def hear(progress: SubmissionProgress) -> None:
        told.append(progress.note)
        if progress.note:
            noted.set()

    await platform.push(config(), source, on_progress=hear)
    assert any("took no data" in note for note in told)


async def test_what_was_left_out_or_replaced_is_said(platform: Platform, source: Path) -> None:
    submission = await platform.push(config(name="mine"), source, overrides=Overrides(job_name="run-7"))
    assert platform.created[0]["name"] == "run-7"
    assert submission.warnings[0] == "name: run-7 replaces the config's mine"
    assert "lib/" in submission.warnings[1]


@pytest.mark.parametrize(
    ("argument", "override", "in_config", "of_remote"),
    [
        ("Product", "Research", "Research", "Research"),
        (None, "Product", "Research", "Research"),
        (None, None, "Product", "Research"),
        (None, None, None, "Product"),
    ],
)
async def test_the_team_that_was_named_nearest_counts(
    platform: Platform,
    source: Path,
    argument: str | None,
    override: str | None,
    in_config: str | None,
    of_remote: str | None,
) -> None:
    platform.has_teams(DEFAULT_TEAM, TEAM)
    made = config()
    made.team_name = in_config
    await platform.push(made, source, of_remote, team=argument, overrides=Overrides(team=override))
    (upserted,) = platform.upserted
    assert upserted.path == "/v1/teams/t2/training_projects"
    assert upserted.body == {"training_project": {"name": "llama-sft", "team_name": "Product"}}


@pytest.mark.parametrize(
    ("teams", "homes", "path", "warning"),
    [
        ([DEFAULT_TEAM, TEAM], ["Product"], "/v1/teams/t2/training_projects", ""),
        ([DEFAULT_TEAM, TEAM], [], "/v1/training_projects", "goes to the default team 'Research'"),
        ([DEFAULT_TEAM], [], "/v1/training_projects", ""),
        ([TEAM], [], "/v1/teams/t2/training_projects", ""),
    ],
)
async def test_without_a_name_it_is_the_project_s_team_or_the_default(
    platform: Platform,
    source: Path,
    teams: list[dict[str, object]],
    homes: list[str],
    path: str,
    warning: str,
) -> None:
    platform.has_teams(*teams)
    platform.projects = [project(team_name=home) for home in homes]
    submission = await platform.push(config(), source)
    assert platform.upserted[0].path == path
    assert warning in submission.warnings[0]


async def test_a_team_that_is_unknown_or_one_of_several_is_refused_before_anything_is_uploaded(
    platform: Platform, source: Path
) -> None:
    platform.has_teams(DEFAULT_TEAM, TEAM)
    with pytest.raises(ConfigurationError, match=r"no team 'Sales' \(known: Product, Research\)"):
        await platform.push(config(), source, team="Sales")
    platform.projects = [project("p1", team_name="Research"), project("p2", team_name="Product")]
    with pytest.raises(ConfigurationError, match=r"several teams .* \(Product, Research\)"):
        await platform.push(config(), source)
    assert (platform.store.taken, platform.upserted) == ([], [])


async def test_push_for_scripts_answers_as_documented_inside_of_a_running_loop_too(
    platform: Platform, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "config.py").write_text(
        "from truss_train import Image, Runtime, TrainingJob, TrainingProject\n"
        "job = TrainingJob(image=Image(base_image='x'), runtime=Runtime(start_commands=['true']))\n"
        "project = TrainingProject(name='quick', job=job)\n"
    )
    for name, value in platform.environ().items():
        monkeypatch.setenv(name, value)
    overrides = Overrides(job_name="first")
    for result in (
        await asyncio.to_thread(push, source / "config.py", overrides=overrides),
        push(config(), source_dir=source, overrides=overrides),
    ):
        assert set(result) == {"training_project", "training_job", *result["training_job"]}
        assert result["name"] == result["training_job"]["name"] == "first"
        assert isinstance(result["training_job"]["id"], str)
    assert [asked.body["training_project"]["name"] for asked in platform.upserted] == ["quick", "llama-sft"]
