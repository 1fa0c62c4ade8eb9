"""The submit screen's feed: config files to choose from, the checks of a job, and its submission.

Listing config files never runs them; loading one does, in a process of its own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Literal

from api_client.definitions import TrainingProject
from api_client.errors import ApiClientError
from api_client.models import TrainingJob
from api_client.submission.archive import ArchivePlan, plan_archive
from api_client.submission.config_file import load_training_project
from api_client.submission.findings import Finding
from api_client.submission.payload import Overrides, apply_overrides
from api_client.submission.preflight import preflight
from api_client.submission.submitting import SubmissionProgress, submit
from tui.analysis.redaction import redaction
from tui.feeds.throttle import SnapshotFeed
from tui.readers.session import Session
from tui.settings.remembered import State, change_state, read_state, state_path
from tui.system.saved_files import expanded_path
from tui.system.starters import STARTER_PROJECTS, TEMPLATES, StarterProject
from tui.text.failures import creation_doubt
from tui.text.units import bytes_iec

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "build", "dist"})
RECENT_CONFIGS_FILE = "recent-configs.json"


@dataclass(frozen=True, slots=True)
class ConfigChoice:
    """A config file (``is_recent`` if it was submitted from this machine before), or a starter project."""

    path: Path
    is_recent: bool = False
    starter: StarterProject | None = None

    @property
    def name(self) -> str:
        working_directory = Path.cwd()
        return str(
            self.path.relative_to(working_directory)
            if self.path.is_relative_to(working_directory)
            else self.path
        )

    @property
    def note(self) -> str:
        if self.starter is not None:
            return f"{self.starter.machine} · {self.starter.summary}"
        return "recent" if self.is_recent else ""

    def read(self) -> str:
        """Return the config's text without values of environment variables; "" if it cannot be read."""
        with suppress(OSError):
            config = self.path if self.starter is None else TEMPLATES / self.name / "config.py"
            return _redacted_source(config)
        return ""


STARTERS = tuple(ConfigChoice(Path(starter.name), starter=starter) for starter in STARTER_PROJECTS)


@dataclass(frozen=True)
class RecentConfigs(State):
    paths: list[str] = field(default_factory=list)
    """Paths of submitted configs, newest first."""


def find_configs(folder: Path, state_file: Path) -> tuple[ConfigChoice, ...]:
    """Return the recent configs that still exist, newest first, then each ``config.py`` below ``folder``.

    A ``config.py`` that names no training project is skipped: many programs have one. For any other file,
    users can type its path.
    """
    remembered = read_state(state_file, RecentConfigs).paths
    recent_paths = [Path(path) for path in remembered if os.path.isfile(path)]  # noqa: PTH113 - never raises
    nearby_paths = (
        path for path in _config_files(folder) if path not in recent_paths and _names_a_project(path)
    )
    return (
        *(ConfigChoice(path, True) for path in recent_paths),
        *(ConfigChoice(path, False) for path in islice(nearby_paths, 50)),
    )


def remember_config(path: Path, state_file: Path) -> None:
    """Put a config at the top of the recent configs. Write errors are ignored."""
    with suppress(OSError):
        change_state(
            state_file,
            RecentConfigs,
            lambda before: RecentConfigs(paths=list(dict.fromkeys([str(path), *before.paths]))[:20]),
        )


def _names_a_project(path: Path) -> bool:
    """Return True if the file names the class ``TrainingProject``, or a variable ``training_project``."""
    if not path.is_file():  # Opening a pipe of that name would block.
        return False
    try:
        with path.open("rb") as file:
            text = file.read(65_536)
    except OSError:
        return False
    return b"TrainingProject" in text or b"training_project" in text


def _config_files(root: Path) -> Iterator[Path]:
    for folder, subfolders, files in os.walk(root):
        depth = len(Path(folder).relative_to(root).parts)
        subfolders[:] = sorted(
            name for name in subfolders if depth < 3 and name not in SKIPPED_FOLDERS and name[0] != "."
        )
        yield from (Path(folder, name) for name in sorted(files) if name == "config.py")


Stage = Literal["choosing", "loading", "reviewing", "submitting", "submitted"]


def _redacted_source(config: Path) -> str:
    if (size_bytes := config.stat().st_size) > 100_000:  # redacting a megabyte takes five seconds
        return (
            f"# {bytes_iec(size_bytes)}: too large to show with the values of environment variables removed"
        )
    text = config.read_text(encoding="utf-8", errors="replace")
    redacted, _ = redaction({config.name: text}, lambda _value: "…")
    lines = (redacted(config.name) or "").splitlines(keepends=True)
    # leave out docstrings and comments, which are hidden as a whole
    return "".join(line for line in lines if line.strip() not in ("…", "# …")).strip()


@dataclass(frozen=True, slots=True)
class SubmissionSnapshot:
    """The state of a submission. After an error, the previous stage is shown again with all its data."""

    stage: Stage = "choosing"
    choices: tuple[ConfigChoice, ...] | None = None
    config: Path | None = None
    source: str = ""
    """The text of the config, without values of environment variables."""
    project: TrainingProject | None = None
    """The project to send, with overrides applied."""
    plan: ArchivePlan | None = None
    is_reviewed: bool = False
    """False if the last review failed: ``project`` is from an earlier review and must not be submitted."""
    findings: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str = ""
    """Why the last step failed."""
    progress: SubmissionProgress | None = None
    job: TrainingJob | None = None

    @property
    def can_submit(self) -> bool:
        has_errors = any(finding.severity == "error" for finding in self.findings)
        return self.stage == "reviewing" and self.is_reviewed and not has_errors


class SubmissionFeed(SnapshotFeed[SubmissionSnapshot]):
    """Publishes a new snapshot after each step; await the steps one at a time."""

    def __init__(
        self,
        session: Session,
        publish: Callable[[SubmissionSnapshot], object],
        *,
        team: str = "",
    ) -> None:
        """Use ``team`` for projects that do not name a team; if empty, the remote's default team applies."""
        super().__init__(session, SubmissionSnapshot(), publish)
        self._team = team
        self._recent_configs_path = state_path(RECENT_CONFIGS_FILE)
        self._loaded_project: TrainingProject | None = None
        self._overrides = Overrides()

    async def find_configs_nearby(self) -> None:
        """Find configs to choose from, without running any."""
        configs = await asyncio.to_thread(find_configs, Path.cwd(), self._recent_configs_path)
        self._change(choices=(*configs, *STARTERS))

    async def load(self, config: Path) -> None:
        """Run the config file in a process of its own, then review the project that it defines."""
        config = await asyncio.to_thread(_absolute_path, config)
        self._change(stage="loading", config=config, error="")
        stop_loading = Event()  # also set after a cancellation, so that the thread ends
        try:
            project = await asyncio.to_thread(load_training_project, config, stop=stop_loading)
            source = await asyncio.to_thread(_redacted_source, config)
        except (ApiClientError, OSError) as error:
            self._change(stage="choosing", error=str(error))
            return
        finally:
            stop_loading.set()
        if self._team and not project.team_name:
            project = project.model_copy(update={"team_name": self._team})
        self._loaded_project = project
        self._change(source=source)
        await self.review(Overrides())

    async def review(self, overrides: Overrides) -> None:
        """Apply the overrides to the loaded project, plan its archive, and run the preflight checks."""
        if self._loaded_project is None or self.snapshot.config is None:
            return
        try:
            project, warnings = apply_overrides(self._loaded_project, overrides)
            plan = await asyncio.to_thread(plan_archive, self.snapshot.config.parent, project.job.workspace)
            findings = await preflight(self._session.client, project, plan)
        except ApiClientError as error:
            stage = "reviewing" if self.snapshot.project is not None else "choosing"
            self._change(stage=stage, is_reviewed=False, error=str(error))
            return
        self._overrides = overrides
        self._change(
            stage="reviewing",
            project=project,
            plan=plan,
            is_reviewed=True,
            findings=findings,
            warnings=warnings,
            error="",
        )

    async def submit(self) -> None:
        config, loaded_project = self.snapshot.config, self._loaded_project
        if config is None or loaded_project is None or not self.snapshot.can_submit:
            return
        self._change(stage="submitting", error="", progress=SubmissionProgress("archiving"))
        try:
            submission = await submit(
                self._session.client,
                loaded_project,
                source_dir=config.parent,
                overrides=self._overrides,
                on_progress=lambda progress: self._change(progress=progress),
                plan=self.snapshot.plan,
            )
        except ApiClientError as error:
            warning = creation_doubt(error, self._session.remote.command_line("jobs"))
            failure = "; ".join(filter(None, (str(error), warning)))
            self._change(stage="reviewing", error=failure, progress=None)
            return
        await asyncio.to_thread(remember_config, config, self._recent_configs_path)
        self._change(stage="submitted", job=submission.training_job)

    def back_to_choices(self) -> None:
        self._loaded_project = None
        self._change(stage="choosing", project=None, plan=None, findings=(), warnings=(), error="")


def _absolute_path(path: Path) -> Path:
    return expanded_path(str(path)).absolute()
