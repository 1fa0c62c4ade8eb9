"""Submissions to ``FakeBaseten`` that keeps the published API: what is sent, when, how often."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from api_client import Overrides, TrainingClient, errors, push
from api_client.definitions import Image, Runtime, TrainingJob, TrainingProject, Workspace
from api_client.submission.submitting import Submission, SubmissionProgress
from api_client.transfers import uploads
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, job, project
from support.fake_object_store import BUCKET, SESSION_TOKEN, UPLOADED_KEY, FakeObjectStore, Trouble
from support.log_server import FastClock
from support.remotes import remote_of

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
    """``FakeBaseten`` that also takes submissions, with their code in the store."""

    def __init__(self, store: FakeObjectStore, source: Path) -> None:
        super().__init__()
        self.store, self.source = store, source
        self.created: list[dict[str, Any]] = []
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

    async def push(self, config: TrainingProject, of_remote: str | None = None, **how: Any) -> Submission:
        """Submit, from a remote of that team."""
        clock = FastClock(pause_s=0.001)
        async with TrainingClient(replace(remote_of(self), team=of_remote), clock=clock) as client:
            return await client.push(config, source_dir=self.source, **how)


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    folder = tmp_path / "source"
    (folder / "lib").mkdir(parents=True)
    (folder / "train.py").write_text("print('hello')")
    (folder / "lib/model.py").write_text("")
    with FakeObjectStore() as store, Platform(store, folder) as running:
        yield running


def config(team: str | None = None, **fields: Any) -> TrainingProject:
    runtime = Runtime(start_commands=["python train.py"])
    made = TrainingJob(image=Image(base_image="python:3.12"), runtime=runtime, **fields)
    return TrainingProject(name="llama-sft", job=made, team_name=team)


async def test_the_code_is_there_before_what_is_published_is_created(platform: Platform) -> None:
    progress: list[SubmissionProgress] = []
    submission = await platform.push(config(), on_progress=progress.append)
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
    phases = [phase for phase, _ in groupby(each.phase for each in progress)]
    assert phases == ["archiving", "uploading", "creating"]
    uploading = [each for each in progress if each.phase == "uploading"]
    assert uploading[-1].done_bytes == uploading[-1].total_bytes == len(stored)
    (sent,) = platform.created
    assert set(sent) == PUBLISHED_JOB_FIELDS | SENT_BY_THE_OFFICIAL_CLIENT_TOO
    assert sent["runtime"]["artifacts"] == [{"s3_bucket": BUCKET, "s3_key": UPLOADED_KEY}]
    assert sent["truss_user_env"]["truss_client_version"].startswith("bt-tui/")
    assert platform.upserted[0].body == {"training_project": {"name": "llama-sft"}}
    # Neither side sees the other's credentials.
    assert all(platform.key not in str(taken) for taken in platform.store.taken)
    assert all(SESSION_TOKEN not in str(asked) for asked in platform.asked)


async def test_a_workspace_that_cannot_be_archived_asks_for_no_credentials(platform: Platform) -> None:
    with pytest.raises(errors.ArchiveError, match="external_dirs"):
        await platform.push(config(workspace=Workspace(external_dirs=["../none"])))
    with pytest.raises(errors.ConfigurationError, match="h100"):
        await platform.push(config(), overrides=Overrides(accelerator="h100"))
    assert f"GET {CREDENTIALS_ROUTE}" not in platform.routes()
    assert not any(each.startswith("POST /v1/") for each in platform.routes())


async def test_a_store_that_takes_no_data_is_told(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "STALLED_AFTER_S", 0.01)
    notes, noted = [], threading.Event()
    platform.store.trouble = {"whole": [Trouble(until=noted), Trouble(cut_after=100)]}

    def hear(progress: SubmissionProgress) -> None:
        notes.append(progress.note)
        if progress.note:
            noted.set()

    await platform.push(config(), on_progress=hear)
    assert any("confirmed no data" in note for note in notes)


async def test_what_was_left_out_or_replaced_is_said(platform: Platform) -> None:
    submission = await platform.push(config(name="mine"), overrides=Overrides(job_name="run-7"))
    assert platform.created[0]["name"] == "run-7"
    assert submission.warnings[0] == "name: run-7 replaces the config's mine"
    assert "lib/" in submission.warnings[1]


PRODUCT = "/v1/teams/t2/training_projects"
NO_TEAM = "/v1/training_projects"
BOTH = [DEFAULT_TEAM, TEAM]


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
    platform: Platform, argument: str | None, override: str | None, in_config: str | None, of_remote: str
) -> None:
    platform.on("GET", "/v1/teams", Answer({"teams": BOTH}))
    await platform.push(config(in_config), of_remote, team=argument, overrides=Overrides(team=override))
    (upserted,) = platform.upserted
    assert upserted.path == PRODUCT
    assert upserted.body == {"training_project": {"name": "llama-sft", "team_name": "Product"}}


@pytest.mark.parametrize(
    ("teams", "homes", "path", "warning"),
    [
        (BOTH, ["Product"], PRODUCT, ""),
        (BOTH, [], NO_TEAM, "goes to the default team 'Research'"),
        ([DEFAULT_TEAM], [], NO_TEAM, ""),
        ([TEAM], [], PRODUCT, ""),
    ],
)
async def test_without_a_name_it_is_the_project_s_team_or_the_default(
    platform: Platform, teams: list[dict[str, object]], homes: list[str], path: str, warning: str
) -> None:
    platform.on("GET", "/v1/teams", Answer({"teams": teams}))
    platform.projects = [project(team_name=home) for home in homes]
    submission = await platform.push(config())
    assert platform.upserted[0].path == path
    assert warning in submission.warnings[0]


async def test_a_team_that_is_unknown_or_one_of_several_is_refused_before_anything_is_uploaded(
    platform: Platform,
) -> None:
    platform.on("GET", "/v1/teams", Answer({"teams": BOTH}))
    with pytest.raises(errors.ConfigurationError, match=r"no team 'Sales' \(known: Product, Research\)"):
        await platform.push(config(), team="Sales")
    platform.projects = [project("p1", team_name="Research"), project("p2", team_name="Product")]
    with pytest.raises(errors.ConfigurationError, match=r"several teams .* \(Product, Research\)"):
        await platform.push(config())
    assert (platform.store.taken, platform.upserted) == ([], [])


@pytest.mark.proves("docs/library.md", "The client library")
async def test_push_for_scripts_answers_as_documented_inside_of_a_running_loop_too(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    (platform.source / "config.py").write_text(
        "from truss_train import Image, Runtime, TrainingJob, TrainingProject\n"
        "job = TrainingJob(image=Image(base_image='x'), runtime=Runtime(start_commands=['true']))\n"
        "project = TrainingProject(name='quick', job=job)\n"
    )
    for name, value in platform.environ().items():
        monkeypatch.setenv(name, value)
    overrides = Overrides(job_name="first")
    for result in (
        await asyncio.to_thread(push, platform.source / "config.py", overrides=overrides),
        push(config(), source_dir=platform.source, overrides=overrides),
    ):
        assert set(result) == {"training_project", "training_job", *result["training_job"]}
        assert result["name"] == result["training_job"]["name"] == "first"
        assert isinstance(result["training_job"]["id"], str)
    assert [asked.body["training_project"]["name"] for asked in platform.upserted] == ["quick", "llama-sft"]


async def test_killed_push_would_leave_nothing_of_its_archive(
    platform: Platform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    files: dict[str, list[Path]] = {}

    def look(progress: SubmissionProgress) -> None:
        files[progress.phase] = list(folder.iterdir())

    await platform.push(config(), on_progress=look)
    assert files == {"archiving": [], "uploading": [], "creating": []}
