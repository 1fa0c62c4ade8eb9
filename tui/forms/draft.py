"""The values of a deploy form: the server's facts, the user's answers, and the values derived from both.

Each value is the user's answer, or else a proposal, which is computed from the facts and from other answers.
So a changed answer updates the proposals that depend on it, but nothing that the user has typed.
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
"""Name of the secret with a Hugging Face token that the official tools propose."""
NO_SECRET = ""
"""The answer that no Hugging Face token is used."""
GATED_PREFIXES = ("meta-llama/", "google/gemma-2", "google/gemma-3")
"""Name prefixes of models that Hugging Face serves only to accounts that were granted access."""
MEMORY_HEADROOM_FACTOR = 1.25
"""Ratio of GPU memory to the size of the weights: activations and the KV cache need memory, too."""

Created = TypeVar("Created", TrainingJob, Checkpoint)


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts from the server: jobs, checkpoints of one job, GPU types and secrets."""

    now: datetime
    jobs: tuple[TrainingJob, ...] = ()
    checkpoints_job_id: str | None = None
    """Id of the job that ``checkpoints`` belong to; None before a job's checkpoints have been fetched."""
    checkpoints: tuple[Checkpoint, ...] = ()
    unfit_reasons: Mapping[str, str] = field(default_factory=dict)
    """Why each checkpoint cannot be deployed, by checkpoint name; empty for deployable checkpoints."""
    files: tuple[CheckpointFile, ...] | None = None
    """The files of the job that decide whether its checkpoints can be served; None if unknown."""
    instances: tuple[ListedInstance, ...] = ()
    secret_names: tuple[str, ...] | None = None
    """Names of the workspace's secrets; None if unknown."""
    checkpoint_facts: Mapping[str, CheckpointFacts] = field(default_factory=dict)
    """Facts derived from the run, such as losses, by checkpoint name."""
    unchecked_reason: str = ""
    """Why the losses of the checkpoints are unknown; empty if they are known."""
    command_options: tuple[str, ...] = ()
    """Command-line options that select the same remote."""
    store_secret_command: str = ""
    """Command that stores a Hugging Face token as a secret of the workspace; empty if there is none."""

    def with_checkpoints(
        self, job_id: str, checkpoints: Sequence[Checkpoint], files: Sequence[CheckpointFile] | None
    ) -> Facts:
        """Return these facts with the checkpoints of a job; ``files`` are the job's, None if unknown.

        If a name is listed twice, use the first: deployments identify a checkpoint only by job and name.
        """
        unique_checkpoints = {
            (checkpoint.training_job_id, checkpoint.checkpoint_id): checkpoint
            for checkpoint in reversed(checkpoints)
        }
        return replace(
            self,
            checkpoints_job_id=job_id,
            checkpoints=tuple(reversed(unique_checkpoints.values())),
            unfit_reasons={
                checkpoint.checkpoint_id: _unfit_reason(checkpoint, files)
                for checkpoint in unique_checkpoints.values()
            },
            files=None if files is None else relevant_files(files),
            checkpoint_facts={},
            unchecked_reason="",
        )

    def with_evidence(self, run: RunSnapshot, problem: str = "") -> Facts:
        """Return these facts with ``checkpoint_facts`` of a run; ``problem`` is why losses are unknown."""
        by_name = {facts.name: facts for facts in facts_of_run(replace(run, checkpoints=self.checkpoints))}
        return replace(self, checkpoint_facts=by_name, unchecked_reason=problem)


def _unfit_reason(checkpoint: Checkpoint, files: Sequence[CheckpointFile] | None) -> str:
    reason = why_not_deployable(checkpoint, files)
    if reason or kind_of(checkpoint) != "lora":
        return reason
    return rank_for(adapter_ranks([checkpoint])).refusal


@dataclass(frozen=True)
class DeployDraft:
    """Facts and answers, and the values derived from them, each named like its field of ``DeployAnswers``."""

    facts: Facts
    answers: DeployAnswers = field(default_factory=DeployAnswers)
    given_fields: frozenset[str] = frozenset()
    """Names of the fields of ``answers`` that command-line options or a config file have answered."""
    config: DeployCheckpointsConfig | None = None
    """The config file that the form was filled from, if any."""

    @property
    def job(self) -> TrainingJob | None:
        """The chosen job; None if no job is chosen, or the server does not list it."""
        return next((job for job in self.facts.jobs if job.id == self.answers.job_id), None)

    @property
    def needs_checkpoints(self) -> bool:
        """True if a job is chosen whose checkpoints have not been fetched."""
        return self.answers.job_id is not None and self.facts.checkpoints_job_id != self.answers.job_id

    # Checkpoints

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """The checkpoints of the chosen job; none until they have been fetched."""
        return () if self.needs_checkpoints else self.facts.checkpoints

    @property
    def config_checkpoints(self) -> CheckpointList:
        """The checkpoints that the config file names."""
        return (self.config and self.config.checkpoint_details) or CheckpointList()

    @property
    def asks_checkpoints(self) -> bool:
        """False if the config file names checkpoints of Loops runs or of several jobs, which are used."""
        jobs = {checkpoint.training_job_id for checkpoint in self.config_checkpoints.checkpoints}
        return self.answers.job_id is not None or not (
            self.config_checkpoints.loops_checkpoint_ids or len(jobs) > 1
        )

    @property
    def job_ids(self) -> tuple[str, ...]:
        """Ids of the jobs that the chosen checkpoints belong to."""
        if self.answers.job_id is not None:
            return (self.answers.job_id,)
        return tuple(
            dict.fromkeys(checkpoint.training_job_id for checkpoint in self.config_checkpoints.checkpoints)
        )

    @cached_property
    def proposed_checkpoints(self) -> tuple[str, ...]:
        """The best deployable checkpoint, else the newest deployable checkpoint without a fault."""
        facts = self.facts
        newest_names = [checkpoint.checkpoint_id for checkpoint in newest_first(self.checkpoints)]
        deployable_names = [name for name in newest_names if not facts.unfit_reasons[name]]
        known_facts = {
            name: facts.checkpoint_facts[name] for name in deployable_names if name in facts.checkpoint_facts
        }
        best_names = [name for name, checkpoint in known_facts.items() if checkpoint.is_best]
        sound_names = [
            name for name in deployable_names if name not in known_facts or not known_facts[name].fault
        ]
        return tuple((best_names or sound_names or deployable_names)[:1])

    @property
    def checkpoint_names(self) -> tuple[str, ...]:
        return self.answers.checkpoint_names or self.proposed_checkpoints

    @cached_property
    def chosen_checkpoints(self) -> tuple[Checkpoint, ...]:
        """The chosen checkpoints in the order of the answer, without names that the server does not list."""
        names = [(self.answers.job_id or "", name) for name in self.checkpoint_names]
        if not self.asks_checkpoints:
            names = [
                (named.training_job_id, named.checkpoint_name)
                for named in self.config_checkpoints.checkpoints
            ]
        matches = (find_checkpoint(self.checkpoints, *name) for name in names)
        return tuple(match for match in matches if match is not None)

    @cached_property
    def is_lora(self) -> bool:
        return bool(self.chosen_checkpoints) and all(
            kind_of(checkpoint) == "lora" for checkpoint in self.chosen_checkpoints
        )

    # The model

    @property
    def inferred_base_model(self) -> str:
        """The first base model that a chosen checkpoint names; empty if none names its base model."""
        return next(
            (checkpoint.base_model for checkpoint in self.chosen_checkpoints if checkpoint.base_model), ""
        )

    @property
    def base_model(self) -> str:
        return _or_proposed(self.answers.base_model, self.inferred_base_model)

    @cached_property
    def rank_advice(self) -> RankAdvice:
        return rank_for(adapter_ranks(self.chosen_checkpoints))

    @property
    def lora_rank(self) -> int | str | None:
        return _or_proposed(self.answers.lora_rank, self.rank_advice.default)

    @property
    def proposed_model_name(self) -> str:
        """For a LoRA, the last segment of the base model's name, else the job's name."""
        if self.is_lora:
            return self.base_model.rstrip("/").rsplit("/", 1)[-1]
        return (self.job.name if self.job else None) or ""

    @property
    def model_name(self) -> str:
        return _or_proposed(self.answers.model_name, self.proposed_model_name)

    # GPUs

    @cached_property
    def instances_by_gpu(self) -> dict[str, ListedInstance]:
        """Instance types by their GPUs as config files name them (``H100:2``), cheapest first.

        If several instance types have the same GPUs, a deployment gets the first that the server lists.
        """
        instances_by_gpu: dict[str, ListedInstance] = {}
        for instance in self.facts.instances:
            if instance.gpu and instance.node_count in (1, None):
                instances_by_gpu.setdefault(instance.gpu, instance)
        return dict(sorted(instances_by_gpu.items(), key=lambda pair: _cheapest_first(pair[1])))

    @property
    def stored_bytes(self) -> int | None:
        """Total size of the weight files of the chosen checkpoints; None if unknown."""
        return stored_weight_bytes(self.chosen_checkpoints, self.facts.files)

    @property
    def checkpoints_with_base_model(self) -> list[Checkpoint]:
        """The chosen checkpoints with the form's base model, whose name indicates its size."""
        update = {"base_model": self.base_model} if self.base_model else {}
        return [checkpoint.model_copy(update=update) for checkpoint in self.chosen_checkpoints]

    @cached_property
    def proposed_gpu(self) -> str | None:
        """The cheapest GPUs whose memory fits the weights with headroom, else the GPUs with most memory."""
        usable_instances = {
            gpu: instance for gpu, instance in self.instances_by_gpu.items() if has_name_in_configs(gpu)
        }
        needed_bytes = (
            self.stored_bytes or needed_gpu_bytes(self.checkpoints_with_base_model) or 0
        ) * MEMORY_HEADROOM_FACTOR
        fitting_gpus = (
            gpu for gpu, instance in usable_instances.items() if instance.gpu_memory_bytes >= needed_bytes
        )
        largest_gpu = max(
            usable_instances, key=lambda gpu: usable_instances[gpu].gpu_memory_bytes, default=None
        )
        return next(fitting_gpus, largest_gpu)

    @property
    def gpu(self) -> str | None:
        return normal_gpu(self.answers.gpu) if self.answers.gpu else self.proposed_gpu

    # Environment variables and secrets

    @property
    def proposed_hf_secret(self) -> str:
        """The secret with the usual name, else a secret with a similar name, else NO_SECRET."""
        names = () if self.has_token else self.facts.secret_names or ()
        if USUAL_HF_SECRET in names:
            return USUAL_HF_SECRET
        return next((name for name in names if name.lower() in ("hf_token", "huggingface_token")), NO_SECRET)

    @property
    def hf_secret(self) -> str:
        return _or_proposed(self.answers.hf_secret, self.proposed_hf_secret)

    @property
    def has_token(self) -> bool:
        """True if a variable or another secret already sets the Hugging Face token."""
        return any(name == HF_TOKEN for name, _value in (*self.environment, *self.secrets))

    @property
    def environment(self) -> Pairs:
        return self.answers.environment or ()

    @property
    def secrets(self) -> Pairs:
        return self.answers.secrets or ()

    @property
    def complete_answers(self) -> DeployAnswers:
        """The answers, with proposals in place of missing answers."""
        return DeployAnswers(
            job_id=self.answers.job_id,
            checkpoint_names=tuple(checkpoint.checkpoint_id for checkpoint in self.chosen_checkpoints),
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
        """The base model if downloading it needs a token that no variable sets; else empty."""
        needs_token = self.is_lora and not self.has_token and self.base_model.startswith(GATED_PREFIXES)
        return self.base_model if needs_token else ""


Value = TypeVar("Value")


def _or_proposed(answer: Value | None, proposed: Value) -> Value:
    return proposed if answer is None else answer


def _cheapest_first(instance: ListedInstance) -> tuple[float, int, str]:
    price = instance.price if instance.price is not None else math.inf
    return (price, instance.gpu_memory_bytes, instance.gpu)


def has_name_in_configs(gpu: str) -> bool:
    """Return True if a config file can name this GPU type."""
    return gpu.partition(":")[0] in offered_accelerators()


def newest_first(items: Iterable[Created]) -> list[Created]:
    return sorted(items, key=lambda item: time_key(item.created_at), reverse=True)
