"""The wizard's facts, answers and proposals.

If an earlier answer changes, later answers that only accepted a proposal are forgotten; typed ones stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from api_client.definitions import DeployCheckpointsConfig, LoRACheckpoint
from api_client.deployment import (
    ListedInstance,
    RankAdvice,
    adapter_ranks,
    kind_of,
    rank_for,
    relevant_files,
    selectable,
)
from api_client.models import Checkpoint, CheckpointFile, TrainingJob
from tui.analysis.checkpoints.facts import CheckpointFacts, facts_of_run
from tui.analysis.run.snapshot import RunSnapshot


def is_lora(state: WizardState) -> bool:
    return bool(state.chosen) and all(kind_of(each) == "lora" for each in state.chosen)


def advised_rank(state: WizardState) -> RankAdvice:
    return rank_for(adapter_ranks(state.chosen))


def inferred_base_model(state: WizardState) -> str:
    """Return the first base model named by a chosen checkpoint; empty if there is none."""
    return next((each.base_model for each in state.chosen if each.base_model), "")


def proposed_model_name(state: WizardState) -> str:
    """Return the last part of the base model's name for a LoRA, else the job's name."""
    if is_lora(state):
        base = state.answers.base_model or inferred_base_model(state)
        return base.rstrip("/").rsplit("/", 1)[-1]
    return (state.job.name if state.job else None) or ""


def forget_stale(before: WizardState, after: WizardState) -> WizardState:
    """Remove answers from ``after`` that only accepted a proposal of ``before`` and may be outdated.

    Typed answers are kept whatever is chosen later, and so are those from a file or an option.
    """
    old, given = before.answers, after.given
    answers = after.answers
    if BASE_MODEL not in given and old.base_model == inferred_base_model(before):
        answers = replace(answers, base_model=None)
    if LORA_RANK not in given and old.lora_rank == advised_rank(before).default:
        answers = replace(answers, lora_rank=None)
    if MODEL_NAME not in given and old.model_name == proposed_model_name(before):
        answers = replace(answers, model_name=None)
    return replace(after, answers=answers)


JOB = "job_id"
CHECKPOINTS = "checkpoint_names"
BASE_MODEL = "base_model"
LORA_RANK = "lora_rank"
MODEL_NAME = "model_name"
GPU = "gpu"
HF_SECRET = "hf_secret"
ENVIRONMENT = "environment"
SECRETS = "secrets"
REVIEW = "review"
"""Steps; each but the review is named as the field of ``Answers`` that it fills."""

Pairs = tuple[tuple[str, str], ...]
"""Name and value pairs."""

NO_SECRET = ""
"""Answer for using no Hugging Face token."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts from the server.

    ``checkpoints`` are those of the job ``checkpoints_of``; ``unfit`` maps the names of some to the
    reason why they cannot be deployed. ``files`` are the job's files that show if a checkpoint can be
    served. ``files`` and ``secret_names`` are None if unknown. ``judged`` has the facts of the job's
    checkpoints by name; ``unchecked_reason`` is the reason if their losses are not known.
    """

    now: datetime
    jobs: tuple[TrainingJob, ...] = ()
    checkpoints_of: str | None = None
    checkpoints: tuple[Checkpoint, ...] = ()
    unfit: Mapping[str, str] = field(default_factory=dict)
    files: tuple[CheckpointFile, ...] | None = None
    instances: tuple[ListedInstance, ...] = ()
    secret_names: tuple[str, ...] | None = None
    judged: Mapping[str, CheckpointFacts] = field(default_factory=dict)
    unchecked_reason: str = ""
    command_options: tuple[str, ...] = ()
    """Options of a command line that reaches the same server."""
    store_secret: str = ""
    """Command that stores a Hugging Face token where the deployment can read it; empty if none does."""

    def with_checkpoints(
        self, job_id: str, checkpoints: Sequence[Checkpoint], files: Sequence[CheckpointFile] | None
    ) -> Facts:
        """Return these facts with the checkpoints of a job; ``files`` are the job's, None if unknown.

        If a checkpoint is listed twice, the first counts: deployments identify it only by job and name.
        """
        each_once = {(each.training_job_id, each.checkpoint_id): each for each in reversed(checkpoints)}
        checkpoints = tuple(reversed(each_once.values()))
        unfit = {each.checkpoint_id: selectable(each, files) for each in checkpoints}
        return replace(
            self,
            checkpoints_of=job_id,
            checkpoints=checkpoints,
            unfit=unfit,
            files=None if files is None else relevant_files(files),
            judged={},
            unchecked_reason="",
        )

    def with_evidence(self, run: RunSnapshot, problem: str = "") -> Facts:
        """Return these facts with the checkpoints judged by the losses of their run."""
        known = facts_of_run(replace(run, checkpoints=self.checkpoints))
        return replace(self, judged={one.name: one for one in known}, unchecked_reason=problem)


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers so far; None means not yet answered. An empty text is the answer "none"."""

    job_id: str | None = None
    checkpoint_names: tuple[str, ...] = ()
    base_model: str | None = None
    lora_rank: int | str | None = None
    model_name: str | None = None
    gpu: str | None = None
    hf_secret: str | None = None
    environment: Pairs | None = None
    secrets: Pairs | None = None


@dataclass(frozen=True, slots=True)
class WizardState:
    """Facts and answers. ``given`` are the steps answered beforehand, ``config`` is the file's, if any."""

    facts: Facts
    answers: Answers = field(default_factory=Answers)
    given: frozenset[str] = frozenset()
    config: DeployCheckpointsConfig | None = None

    @property
    def job(self) -> TrainingJob | None:
        for job in self.facts.jobs:
            if job.id == self.answers.job_id:
                return job
        return None

    @property
    def needs_checkpoints(self) -> bool:
        """True if a job is chosen whose checkpoints have not been fetched."""
        return self.answers.job_id is not None and self.facts.checkpoints_of != self.answers.job_id

    @property
    def chosen(self) -> tuple[Checkpoint, ...]:
        """The chosen checkpoints in the order of the answer, without unknown names."""
        details = self.config.checkpoint_details if self.config else None
        if details is not None and self.keeps_config_checkpoints:
            wanted = [(each.training_job_id, each.checkpoint_name) for each in details.checkpoints]
        else:
            wanted = [(self.answers.job_id or "", name) for name in self.answers.checkpoint_names]
        known = {self._key(each): each for each in self.facts.checkpoints}
        return tuple(known[key] for key in wanted if key in known)

    @property
    def keeps_config_checkpoints(self) -> bool:
        """True if the checkpoints and the rank are still those of the config file."""
        details = self.config.checkpoint_details if self.config else None
        if details is None or not details.checkpoints:
            return False
        ranks = config_ranks(self.config)
        return (
            {each.checkpoint_name for each in details.checkpoints} == set(self.answers.checkpoint_names)
            and details.checkpoints[0].training_job_id == self.answers.job_id
            and (not ranks or self.answers.lora_rank == max(ranks))
        )

    @property
    def serves_loops(self) -> bool:
        """True if the config names checkpoints of Loops runs; then none are asked for."""
        details = self.config.checkpoint_details if self.config else None
        return bool(details and details.loops_checkpoint_ids)

    def _key(self, checkpoint: Checkpoint) -> tuple[str, str]:
        """Return job and name; if the server omits the job, it is the requested one."""
        return (checkpoint.training_job_id or self.facts.checkpoints_of or "", checkpoint.checkpoint_id)


def config_ranks(config: DeployCheckpointsConfig | None) -> list[int]:
    details = config.checkpoint_details if config else None
    return [
        each.lora_details.rank
        for each in (details.checkpoints if details else [])
        if isinstance(each, LoRACheckpoint)
    ]
