"""The last step: build the config, check it, and offer to deploy, save or change it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from api_client.definitions import CheckpointList, DeployCheckpointsConfig
from api_client.deployment import DeployAnswers, build_config, equivalent_command, render_python, validate
from api_client.errors import ConfigurationError
from api_client.submission.findings import Finding, most_severe_first
from tui.wizard.environment_steps import (
    chosen_instance,
    gated_model,
    parse_gpu,
    price_an_hour,
)
from tui.wizard.state import CHECKPOINTS, REVIEW, WizardState, is_lora
from tui.wizard.step import Choice, Step, choice_problem


def deploy_answers(state: WizardState) -> DeployAnswers:
    """Convert the answers for the client. Raises ValueError while the GPUs are not answered."""
    answers = state.answers
    gpu = parse_gpu(answers.gpu or "")
    if gpu is None:
        raise ValueError("choose GPUs first")
    job = state.job
    return DeployAnswers(
        project_id=job.project_id if job else "",
        job_id=answers.job_id or "",
        checkpoint_names=tuple(each.checkpoint_id for each in state.chosen),
        base_model=answers.base_model or None,
        lora_rank=answers.lora_rank if is_lora(state) and isinstance(answers.lora_rank, int) else None,
        model_name=answers.model_name or "",
        gpu_type=gpu[0],
        gpu_count=gpu[1],
        hf_secret=answers.hf_secret or None,
        environment=answers.environment or (),
        secrets=answers.secrets or (),
    )


def deploy_config(state: WizardState) -> DeployCheckpointsConfig:
    """Build the config from the answers, keeping fields of a config file that no question covers.

    Raises ValueError while answers are missing, and ConfigurationError if they make no valid config.
    """
    given = state.config
    built = build_config(deploy_answers(state), state.chosen)
    return built.model_copy(
        update={
            "checkpoint_details": _checkpoint_details(state, built, given),
            "compute": _compute(built, given),
        }
    )


def _checkpoint_details(
    state: WizardState, built: DeployCheckpointsConfig, given: DeployCheckpointsConfig | None
) -> CheckpointList | None:
    details = given.checkpoint_details if given else None
    if details is None or state.serves_loops:
        return details or built.checkpoint_details
    new = built.checkpoint_details or CheckpointList()
    return details.model_copy(
        update={
            "base_model_id": state.answers.base_model or None,
            "checkpoints": details.checkpoints if state.keeps_config_checkpoints else new.checkpoints,
        }
    )


def _compute(built: DeployCheckpointsConfig, given: DeployCheckpointsConfig | None) -> object:
    if given is None or given.compute is None or built.compute is None:
        return built.compute
    return given.compute.model_copy(update={"accelerator": built.compute.accelerator})


def findings(state: WizardState, config: DeployCheckpointsConfig) -> tuple[Finding, ...]:
    """Return problems and remarks about the config, errors first."""
    found = validate(
        config,
        state.facts.checkpoints,
        files=state.facts.files,
        instances=state.facts.instances,
        secret_names=state.facts.secret_names,
    )
    return most_severe_first((*found, *_losses(state), *_gated(state)))


def _gated(state: WizardState) -> Iterator[Finding]:
    base_model = gated_model(state)
    if base_model and not state.answers.hf_secret:
        problem = f"{base_model} is gated: it can't be downloaded without a Hugging Face token"
        store = state.facts.store_secret if state.facts.secret_names == () else ""
        remedy = f"store one: {store}" if store else "choose a secret with a token"
        yield Finding("warning", "runtime.environment_variables", problem, remedy)


def _losses(state: WizardState) -> Iterator[Finding]:
    place = "checkpoint_details.checkpoints"
    best = next((one.name for one in state.facts.judged.values() if one.is_best), "")
    for checkpoint in state.chosen:
        known = state.facts.judged.get(checkpoint.checkpoint_id)
        if known is not None and known.fault is not None:
            problem = f"{known.name!r} was {known.fault.words(checkpoint.created_at)}"
            yield Finding("warning", place, problem, f"best: {best!r}" if best else "")
    if state.chosen and state.facts.unchecked_reason:
        yield Finding("info", place, f"checkpoints not checked: {state.facts.unchecked_reason}")


DEPLOY = "deploy"
DRY_RUN = "dry-run"
SAVE = "save"
SHOW = "show"
LEAVE = "leave"
CHANGE = "change:"
"""Prefix of an action that changes an answer; the step's id follows."""

NONE = "none"


@dataclass(frozen=True, slots=True)
class Review:
    """A deployment that is about to be made.

    ``lines`` are each step's id, title and answer as text. ``forms`` are the same config as a file for the
    official SDK (``python``), as ``json`` and as a ``command`` line.
    """

    config: DeployCheckpointsConfig
    lines: tuple[tuple[str, str, str], ...]
    findings: tuple[Finding, ...]
    forms: Mapping[str, str]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that prevent the deployment."""
        return tuple(each for each in self.findings if each.severity == "error")


def review(state: WizardState, asked: tuple[Step, ...]) -> Review:
    """Return the full review. Raises ValueError while answers are missing."""
    config = deploy_config(state)
    return Review(
        config=config,
        lines=tuple((step.id, step.title, answer_text(state, step)) for step in asked),
        findings=findings(state, config),
        forms={
            "python": render_python(config),
            "json": json.dumps(config.model_dump(mode="json"), indent=2),
            "command": equivalent_command(deploy_answers(state), state.facts.command_options),
        },
    )


def review_step(state: WizardState, asked: tuple[Step, ...]) -> Step:
    """Ask for the action: deploy, dry run, save, show, change an answer or leave. There is no default."""
    choices = _actions(state, asked)
    return Step(
        state,
        id=REVIEW,
        title="Review",
        question="What next?",
        kind="review",
        flag="--yes",
        choices=choices,
        check=lambda answer: choice_problem(choices, answer, "an action"),
        put=lambda before, _answer: before,
    )


def answer_text(state: WizardState, step: Step) -> str:
    """Return the present answer as text; only the names of variables, because values may be tokens."""
    answer = step.answer
    if step.kind == "pairs":
        pairs = [each for each in answer if isinstance(each, tuple)] if isinstance(answer, tuple) else []
        return ", ".join(name for name, _value in pairs) or NONE
    if isinstance(answer, tuple):
        return ", ".join(str(each) for each in answer) or NONE
    if step.flag == "--gpu":
        return _gpu_text(state, str(answer))
    if step.flag == "--job-id" and state.job is not None and state.job.name:
        return f"{state.job.name} ({state.job.id})"
    return str(answer) if answer not in (None, "") else NONE


def _gpu_text(state: WizardState, answer: str) -> str:
    instance = chosen_instance(state)
    if instance is None:
        return answer
    # Instance type names usually start with the answer: "H100:4 104x936".
    gpus = () if instance.name.split(" ")[0] == answer else (answer,)
    return " · ".join(part for part in (*gpus, instance.name, price_an_hour(instance)) if part)


def _actions(state: WizardState, asked: tuple[Step, ...]) -> tuple[Choice, ...]:
    try:
        config = deploy_config(state)
    except (ValueError, ConfigurationError) as error:
        reason = str(error)
    else:
        errors = [each for each in findings(state, config) if each.severity == "error"]
        reason = errors[0].problem if errors else ""
    changes = tuple(
        Choice(f"{CHANGE}{step.id}", f"Change {_inside_a_sentence(step.title)}", _described(state, step))
        for step in asked
        if not (step.is_given and step.flag == "--job-id")
    )
    return (
        Choice(DEPLOY, "Deploy", "asks to confirm", reason),
        Choice(DRY_RUN, "Dry run", "shows the Truss config only", reason),
        Choice(SAVE, "Save as a Python file", "for either CLI's --config"),
        Choice(SHOW, "Show as Python, JSON and command line"),
        *changes,
        Choice(LEAVE, "Leave"),
    )


def _described(state: WizardState, step: Step) -> str:
    """Return the answer, and what is known of a single checkpoint."""
    text = answer_text(state, step)
    known = state.facts.judged.get(text) if step.id == CHECKPOINTS else None
    return f"{text} · {known.marks}" if known is not None and known.marks else text


def _inside_a_sentence(title: str) -> str:
    """Lowercase a title unless it begins with a name such as ``GPU`` or ``LoRA``."""
    return title.lower() if title.split(maxsplit=1)[0][1:].islower() else title
