"""A deployment as far as it is answered: the server's facts, the answers, and the values that follow.

Each value is the answer, or else the proposal, so a changed answer changes what was proposed because of it;
what a user typed stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import TypeVar

from api_client.definitions import (
    CheckpointList,
    DeployCheckpointsConfig,
    offered_accelerators,
)
from api_client.deployment import HF_TOKEN, DeployAnswers, ListedInstance, Pairs, normal_gpu
from api_client.models import Checkpoint, CheckpointFile, TrainingJob
from api_client.servable import (
    RankAdvice,
    adapter_ranks,
    find_checkpoint,
    kind_of,
    needed_gpu_bytes,
    rank_for,
    relevant_files,
    stored_weight_bytes,
    why_not_deployable,
)
from tui.analysis.checkpoints.facts import CheckpointFacts, facts_of_run
from tui.analysis.run.snapshot import RunSnapshot
from tui.text.times import time_key

USUAL_HF_SECRET = "hf_access_token"
"""Name of the secret that the official tools propose."""
NO_SECRET = ""
"""Answer for using no Hugging Face token."""
GATED = ("meta-llama/", "google/gemma-2", "google/gemma-3")
"""Beginnings of the names of models that Hugging Face gives only to accounts that were granted access."""
HEADROOM = 1.25
"""Memory factor for activations and the KV cache in addition to the weights."""

Created = TypeVar("Created", TrainingJob, Checkpoint)


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts from the server."""

    now: datetime
    jobs: tuple[TrainingJob, ...] = ()
    checkpoints_of: str | None = None
    """The job whose checkpoints these are."""
    checkpoints: tuple[Checkpoint, ...] = ()
    unfit: Mapping[str, str] = field(default_factory=dict)
    """By name of a checkpoint: why it cannot be deployed; empty if it can."""
    files: tuple[CheckpointFile, ...] | None = None
    """The job's files that show if a checkpoint can be served; None if unknown."""
    instances: tuple[ListedInstance, ...] = ()
    secret_names: tuple[str, ...] | None = None
    """None if unknown."""
    judged: Mapping[str, CheckpointFacts] = field(default_factory=dict)
    """Facts of the job's checkpoints by name."""
    unchecked_reason: str = ""
    """Why the losses of the checkpoints are not known."""
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
        each_once = {
            (checkpoint.training_job_id, checkpoint.checkpoint_id): checkpoint
            for checkpoint in reversed(checkpoints)
        }
        return replace(
            self,
            checkpoints_of=job_id,
            checkpoints=tuple(reversed(each_once.values())),
            unfit={
                checkpoint.checkpoint_id: _unfit_reason(checkpoint, files)
                for checkpoint in each_once.values()
            },
            files=None if files is None else relevant_files(files),
            judged={},
            unchecked_reason="",
        )

    def with_evidence(self, run: RunSnapshot, problem: str = "") -> Facts:
        """Return these facts with the checkpoints judged by the losses of their run."""
        judged = facts_of_run(replace(run, checkpoints=self.checkpoints))
        return replace(self, judged={facts.name: facts for facts in judged}, unchecked_reason=problem)


def _unfit_reason(checkpoint: Checkpoint, files: Sequence[CheckpointFile] | None) -> str:
    reason = why_not_deployable(checkpoint, files)
    if reason or kind_of(checkpoint) != "lora":
        return reason
    return rank_for(adapter_ranks([checkpoint])).refusal


@dataclass(frozen=True)
class DeployDraft:
    """Facts and answers, and the values that follow; each is named as its field of ``DeployAnswers``."""

    facts: Facts
    answers: DeployAnswers = field(default_factory=DeployAnswers)
    given: frozenset[str] = frozenset()
    """The fields that options or a file have answered."""
    config: DeployCheckpointsConfig | None = None
    """The file's."""

    @property
    def job(self) -> TrainingJob | None:
        return next((job for job in self.facts.jobs if job.id == self.answers.job_id), None)

    @property
    def needs_checkpoints(self) -> bool:
        """True if a job is chosen whose checkpoints have not been fetched."""
        return self.answers.job_id is not None and self.facts.checkpoints_of != self.answers.job_id

    # Checkpoints

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """The checkpoints of the chosen job; none until they have been fetched."""
        return () if self.needs_checkpoints else self.facts.checkpoints

    @property
    def details(self) -> CheckpointList:
        """The checkpoints of the config file."""
        return (self.config and self.config.checkpoint_details) or CheckpointList()

    @property
    def asks_checkpoints(self) -> bool:
        """False if a config file names checkpoints of Loops runs or of several jobs: those are used."""
        jobs = {checkpoint.training_job_id for checkpoint in self.details.checkpoints}
        return self.answers.job_id is not None or not (self.details.loops_checkpoint_ids or len(jobs) > 1)

    @property
    def job_ids(self) -> tuple[str, ...]:
        """The jobs whose checkpoints are chosen."""
        if self.answers.job_id is not None:
            return (self.answers.job_id,)
        return tuple(dict.fromkeys(checkpoint.training_job_id for checkpoint in self.details.checkpoints))

    @cached_property
    def proposed_checkpoints(self) -> tuple[str, ...]:
        """The best checkpoint, else the newest that is deployable and sound."""
        facts = self.facts
        newest = [checkpoint.checkpoint_id for checkpoint in newest_first(self.checkpoints)]
        possible = [name for name in newest if not facts.unfit[name]]
        judged = {name: facts.judged[name] for name in possible if name in facts.judged}
        best = [name for name, checkpoint in judged.items() if checkpoint.is_best]
        sound = [name for name in possible if name not in judged or not judged[name].fault]
        return tuple((best or sound or possible)[:1])

    @property
    def checkpoint_names(self) -> tuple[str, ...]:
        return self.answers.checkpoint_names or self.proposed_checkpoints

    @cached_property
    def chosen(self) -> tuple[Checkpoint, ...]:
        """The chosen checkpoints in the order of the answer, without unknown names."""
        names = [(self.answers.job_id or "", name) for name in self.checkpoint_names]
        if not self.asks_checkpoints:
            names = [(named.training_job_id, named.checkpoint_name) for named in self.details.checkpoints]
        matches = (find_checkpoint(self.checkpoints, *name) for name in names)
        return tuple(match for match in matches if match is not None)

    @cached_property
    def is_lora(self) -> bool:
        return bool(self.chosen) and all(kind_of(checkpoint) == "lora" for checkpoint in self.chosen)

    # The model

    @property
    def inferred_base_model(self) -> str:
        """The first base model named by a chosen checkpoint; empty if there is none."""
        return next((checkpoint.base_model for checkpoint in self.chosen if checkpoint.base_model), "")

    @property
    def base_model(self) -> str:
        return _or_proposed(self.answers.base_model, self.inferred_base_model)

    @cached_property
    def rank_advice(self) -> RankAdvice:
        return rank_for(adapter_ranks(self.chosen))

    @property
    def lora_rank(self) -> int | str | None:
        return _or_proposed(self.answers.lora_rank, self.rank_advice.default)

    @property
    def proposed_model_name(self) -> str:
        """The last part of the base model's name for a LoRA, else the job's name."""
        if self.is_lora:
            return self.base_model.rstrip("/").rsplit("/", 1)[-1]
        return (self.job.name if self.job else None) or ""

    @property
    def model_name(self) -> str:
        return _or_proposed(self.answers.model_name, self.proposed_model_name)

    # Where it runs

    @cached_property
    def offers(self) -> dict[str, ListedInstance]:
        """The instance that a deployment gets, by GPUs as in config files, cheapest first."""
        offers: dict[str, ListedInstance] = {}
        for instance in self.facts.instances:
            if instance.gpu and instance.node_count in (1, None):
                offers.setdefault(instance.gpu, instance)
        return dict(sorted(offers.items(), key=lambda offer: _cheapest_first(offer[1])))

    @property
    def stored_bytes(self) -> int | None:
        """The size of the weights' files; None if unknown."""
        return stored_weight_bytes(self.chosen, self.facts.files)

    @property
    def chosen_with_base(self) -> list[Checkpoint]:
        """The chosen checkpoints with the base model, whose name indicates its size."""
        update = {"base_model": self.base_model} if self.base_model else {}
        return [checkpoint.model_copy(update=update) for checkpoint in self.chosen]

    @cached_property
    def proposed_gpu(self) -> str | None:
        """The cheapest GPUs that fit the weights with headroom, else those with the most memory."""
        usable = {gpu: instance for gpu, instance in self.offers.items() if has_name_in_configs(gpu)}
        need = (self.stored_bytes or needed_gpu_bytes(self.chosen_with_base) or 0) * HEADROOM
        fitting = (gpu for gpu, instance in usable.items() if instance.gpu_memory_bytes >= need)
        largest = max(usable, key=lambda gpu: usable[gpu].gpu_memory_bytes, default=None)
        return next(fitting, largest)

    @property
    def gpu(self) -> str | None:
        return normal_gpu(self.answers.gpu) if self.answers.gpu else self.proposed_gpu

    # Its environment

    @property
    def proposed_hf_secret(self) -> str:
        """The usual name if such a secret exists, else a similar one, else NO_SECRET."""
        names = () if self.has_token else self.facts.secret_names or ()
        if USUAL_HF_SECRET in names:
            return USUAL_HF_SECRET
        return next((name for name in names if name.lower() in ("hf_token", "huggingface_token")), NO_SECRET)

    @property
    def hf_secret(self) -> str:
        return _or_proposed(self.answers.hf_secret, self.proposed_hf_secret)

    @property
    def has_token(self) -> bool:
        """True if the variables or other secrets have the Hugging Face token."""
        return any(name == HF_TOKEN for name, _value in (*self.environment, *self.secrets))

    @property
    def environment(self) -> Pairs:
        return self.answers.environment or ()

    @property
    def secrets(self) -> Pairs:
        return self.answers.secrets or ()

    @property
    def complete(self) -> DeployAnswers:
        """The answers, with the proposals for those that are missing."""
        return DeployAnswers(
            job_id=self.answers.job_id,
            checkpoint_names=tuple(checkpoint.checkpoint_id for checkpoint in self.chosen),
            base_model=self.base_model,
            lora_rank=self.lora_rank if self.is_lora else None,
            model_name=self.model_name,
            gpu=self.gpu,
            hf_secret=self.hf_secret,
            environment=self.environment,
            secrets=self.secrets,
        )

    @property
    def gated_model(self) -> str:
        """The base model that must be downloaded with a token, unless a variable holds one; else empty."""
        needs_token = self.is_lora and not self.has_token and self.base_model.startswith(GATED)
        return self.base_model if needs_token else ""


Value = TypeVar("Value")


def _or_proposed(answer: Value | None, proposed: Value) -> Value:
    return proposed if answer is None else answer


def _cheapest_first(instance: ListedInstance) -> tuple[float, int, str]:
    price = instance.price if instance.price is not None else math.inf
    return (price, instance.gpu_memory_bytes, instance.gpu)


def has_name_in_configs(gpu: str) -> bool:
    return gpu.partition(":")[0] in offered_accelerators()


def newest_first(created: Iterable[Created]) -> list[Created]:
    return sorted(created, key=lambda item: time_key(item.created_at), reverse=True)
