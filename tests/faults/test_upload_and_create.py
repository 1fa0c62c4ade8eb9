"""Submissions to a stranger's server that keeps the published API: what is sent, when, how often."""

import asyncio
import threading
from pathlib import Path

import pytest
from fast_clock import FastClock
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
from api_client.submission.submitting import SubmissionProgress
from api_client.transfers import uploads
from support.fake_object_store import BUCKET, SESSION_TOKEN, UPLOADED_KEY, FakeObjectStore, Trouble
from support.stranger import Answer, FakeBaseten, ReceivedRequest, job, project

CREDENTIALS_ROUTE = "/v1/blobs/credentials/train"
PUBLISHED_JOB_FIELDS = {
    "image", "compute", "runtime", "interactive_session", "name", "priority", "weights",
    "enable_baseten_workdir", "truss_user_env",
}  # fmt: skip
SENT_BY_THE_OFFICIAL_CLIENT_TOO = {"workspace"}
TEAM = {"id": "t2", "name": "Product", "default": False, "created_at": "2025-03-01T12:00:00Z"}
DEFAULT_TEAM = {"id": "t1", "name": "Research", "default": True, "created_at": "2025-03-01T12:00:00Z"}


class Platform(FakeBaseten):
    """A stranger that also takes submissions; what it was asked in ``asked``."""

    def __init__(self, store: FakeObjectStore, teams: list[dict[str, object]] | None = None) -> None:
        super().__init__()
        self.created: list[dict[str, object]] = []
        self.upserted: list[ReceivedRequest] = []
        self.on("GET", CREDENTIALS_ROUTE, lambda _: Answer(body=store.credentials()))
        if teams is not None:
            self.on("GET", "/v1/teams", Answer(body={"teams": teams}))
        self.on("POST", "/v1/(teams/[^/]+/)?training_projects", self._upsert)
        self.on("POST", "/v1/training_projects/proj1/jobs", self._create)

    def _upsert(self, asked: ReceivedRequest) -> Answer:
        self.upserted.append(asked)
        return Answer(body={"training_project": project(name=asked.body["training_project"]["name"])})

    def _create(self, asked: ReceivedRequest) -> Answer:
        self.created.append(asked.body["training_job"])
        return Answer(body={"training_job": job("job7", "CREATED", name=asked.body["training_job"]["name"])})

    def routes(self) -> list[str]:
        return [f"{asked.method} {asked.path}" for asked in self.asked]

    def client(self, team: str | None = None) -> TrainingClient:
        remote = Remote("stranger", self.url, self.url, SecretStr(self.key), "a test", team=team)
        return TrainingClient(remote, clock=FastClock())


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


async def test_the_code_is_there_before_what_is_published_is_created(source: Path) -> None:
    told: list[SubmissionProgress] = []
    with FakeObjectStore() as store, Platform(store) as platform:
        async with platform.client() as client:
            submission = await client.push(config(), source_dir=source, on_progress=told.append)
    assert [each for each in platform.routes() if "teams" not in each and "graphql" not in each] == [
        f"GET {CREDENTIALS_ROUTE}",
        "POST /v1/training_projects",
        "POST /v1/training_projects/proj1/jobs",
    ]
    assert store.object is not None
    assert b"print('hello')" in store.object
    assert submission.training_job.id == "job7"
    assert set(submission.as_dict()) == {"training_project", "training_job"}
    assert submission.as_dict()["training_job"]["current_status"] == "TRAINING_JOB_CREATED"
    phases = [each.phase for each in told]
    assert phases == sorted(phases, key=["archiving", "uploading", "creating"].index)
    assert set(phases) == {"archiving", "uploading", "creating"}
    uploading = [each for each in told if each.phase == "uploading"]
    assert uploading[-1].done_bytes == uploading[-1].total_bytes == len(store.object)
    (sent,) = platform.created
    assert set(sent) == PUBLISHED_JOB_FIELDS | SENT_BY_THE_OFFICIAL_CLIENT_TOO
    assert sent["runtime"]["artifacts"] == [{"s3_bucket": BUCKET, "s3_key": UPLOADED_KEY}]
    assert sent["truss_user_env"]["truss_client_version"].startswith("bt-tui/")
    assert platform.upserted[0].body == {"training_project": {"name": "llama-sft"}}
    # Neither side sees the other's credentials.
    assert all(platform.key not in str(taken) for taken in store.taken)
    assert all(SESSION_TOKEN not in str(asked) for asked in platform.asked)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_an_error_answered_to_job_creation_is_not_repeated(source: Path, status: int) -> None:
    with FakeObjectStore() as store, Platform(store) as platform:
        answers = [Answer(status, {"message": "try again"})]

        def once(asked: ReceivedRequest) -> Answer:
            return answers.pop() if answers else platform._create(asked)

        platform.on("POST", "/v1/training_projects/proj1/jobs", once)
        async with platform.client() as client:
            with pytest.raises(ServerFault, match="try again"):
                await client.push(config(), source_dir=source)
    assert platform.routes().count("POST /v1/training_projects/proj1/jobs") == 1


async def test_a_workspace_that_cannot_be_archived_asks_for_no_credentials(source: Path) -> None:
    with FakeObjectStore() as store, Platform(store) as platform:
        async with platform.client() as client:
            with pytest.raises(ArchiveError, match="external_dirs"):
                await client.push(config(workspace=Workspace(external_dirs=["../none"])), source_dir=source)
            with pytest.raises(ConfigurationError, match="h100"):
                await client.push(config(), source_dir=source, overrides=Overrides(accelerator="h100"))
    assert f"GET {CREDENTIALS_ROUTE}" not in platform.routes()
    assert not any(each.startswith("POST /v1/") for each in platform.routes())


async def test_a_store_that_takes_no_data_is_told(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "STALLED_AFTER_S", 0.01)
    told: list[SubmissionProgress] = []
    with FakeObjectStore() as store, Platform(store) as platform:
        noted = threading.Event()
        store.trouble = {"whole": [Trouble(until=noted), Trouble(cut_after=100)]}

        def hear(progress: SubmissionProgress) -> None:
            told.append(progress)
            if progress.note:
                noted.set()

        async with platform.client() as client:
            await client.push(config(), source_dir=source, on_progress=hear)
    assert any("took no data" in each.note for each in told)


async def test_what_was_left_out_or_replaced_is_said(source: Path) -> None:
    with FakeObjectStore() as store, Platform(store) as platform:
        async with platform.client() as client:
            submission = await client.push(
                config(name="mine"), source_dir=source, overrides=Overrides(job_name="run-7")
            )
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
    source: Path, argument: str | None, override: str | None, in_config: str | None, of_remote: str | None
) -> None:
    with FakeObjectStore() as store, Platform(store, [DEFAULT_TEAM, TEAM]) as platform:
        made = config()
        made.team_name = in_config
        async with platform.client(of_remote) as client:
            await client.push(made, source_dir=source, team=argument, overrides=Overrides(team=override))
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
    source: Path, teams: list[dict[str, object]], homes: list[str], path: str, warning: str
) -> None:
    with FakeObjectStore() as store, Platform(store, teams) as platform:
        platform.projects = [project(team_name=home) for home in homes]
        async with platform.client() as client:
            submission = await client.push(config(), source_dir=source)
    assert platform.upserted[0].path == path
    assert warning in submission.warnings[0]


async def test_a_project_of_several_teams_is_for_the_user_to_decide(source: Path) -> None:
    with FakeObjectStore() as store, Platform(store, [DEFAULT_TEAM, TEAM]) as platform:
        platform.projects = [project("p1", team_name="Research"), project("p2", team_name="Product")]
        async with platform.client() as client:
            with pytest.raises(ConfigurationError, match=r"several teams .* \(Product, Research\)"):
                await client.push(config(), source_dir=source)
    assert platform.upserted == []


async def test_an_unknown_team_is_refused_before_anything_is_uploaded(source: Path) -> None:
    with FakeObjectStore() as store, Platform(store, [DEFAULT_TEAM, TEAM]) as platform:
        async with platform.client() as client:
            with pytest.raises(ConfigurationError, match=r"no team 'Sales' \(known: Product, Research\)"):
                await client.push(config(), source_dir=source, team="Sales")
    assert store.taken == []
    assert platform.upserted == []


async def test_push_for_scripts_answers_as_documented_inside_of_a_running_loop_too(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "config.py").write_text(
        "from truss_train import Image, Runtime, TrainingJob, TrainingProject\n"
        "job = TrainingJob(image=Image(base_image='x'), runtime=Runtime(start_commands=['true']))\n"
        "project = TrainingProject(name='quick', job=job)\n"
    )
    with FakeObjectStore() as store, Platform(store) as platform:
        for name, value in platform.environ().items():
            monkeypatch.setenv(name, value)
        overrides = Overrides(job_name="first")
        for result in (
            await asyncio.to_thread(push, source / "config.py", overrides=overrides),
            push(config(), source_dir=source, overrides=overrides),
        ):
            assert set(result) == {"training_project", "training_job"}
            assert result["training_job"]["name"] == "first"
            assert isinstance(result["training_job"]["id"], str)
    assert [asked.body["training_project"]["name"] for asked in platform.upserted] == ["quick", "llama-sft"]
