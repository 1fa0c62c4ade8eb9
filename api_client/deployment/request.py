"""A config → the one request that deploys it, exactly as the official CLI sends it (API facts, 2.4)."""

from __future__ import annotations

import shlex
from typing import Any

from api_client.definitions import DeployCheckpointsConfig, EnvironmentValue, SecretReference
from api_client.deployment.config_building import DeployAnswers

DEPLOY_MUTATION = """
mutation ($request: CreateModelVersionFromInferenceTemplateRequest!) {
    create_model_version_from_inference_template(request: $request) {
        model_version {
            id
            name
            model_id
        }
        truss_config
    }
}
"""
DEPLOY_FIELD = "create_model_version_from_inference_template"
"""Where the answer is."""

_COMMAND = "bt-tui deploy_checkpoints"


def deployment_request(
    config: DeployCheckpointsConfig, *, instance_type_id: str, dry_run: bool
) -> dict[str, Any]:
    """The mutation's ``request``. Base model, ranks and folders are not sent: the server finds them."""
    details = config.checkpoint_details
    variables = config.runtime.environment_variables if config.runtime else {}
    return {
        "metadata": {"oracle_name": config.model_name},
        "weights_sources": [
            *(
                _training_checkpoint(each.training_job_id, each.checkpoint_name)
                for each in (details.checkpoints if details else [])
            ),
            *(_loops_checkpoint(each) for each in (details.loops_checkpoint_ids if details else [])),
        ],
        "inference_stack": {
            "stack_type": "VLLM",
            "environment_variables": [_variable(name, value) for name, value in variables.items()],
        },
        "instance_type_id": instance_type_id,
        "dry_run": dry_run,
    }


def _training_checkpoint(job_id: str, name: str) -> dict[str, Any]:
    return {
        "weight_source_type": "B10_CHECKPOINTING",
        "b10_training_checkpoint_weights_source": {
            "checkpoint": {"training_job_id": job_id, "checkpoint_name": name}
        },
    }


def _loops_checkpoint(checkpoint_id: str) -> dict[str, Any]:
    return {
        "weight_source_type": "B10_LOOPS_CHECKPOINTING",
        "b10_loops_checkpoint_weights_source": {"checkpoint": {"loops_checkpoint_id": checkpoint_id}},
    }


def _variable(name: str, value: EnvironmentValue) -> dict[str, Any]:
    if isinstance(value, SecretReference):
        return {"name": name, "value": value.name, "is_secret_reference": True}
    return {"name": name, "value": value, "is_secret_reference": False}


def equivalent_command(answers: DeployAnswers) -> str:
    """One line for a POSIX shell (bash, zsh) that gives the same answers; it still asks for confirmation."""
    options: list[tuple[str, str]] = [("--job-id", answers.job_id)]
    options += [("--checkpoint", name) for name in answers.checkpoint_names]
    if answers.base_model:
        options.append(("--base-model", answers.base_model))
    if answers.lora_rank is not None:
        options.append(("--lora-rank", str(answers.lora_rank)))
    options.append(("--model-name", answers.model_name))
    if answers.gpu_type:
        options.append(("--gpu", f"{answers.gpu_type}:{answers.gpu_count}"))
    if answers.hf_secret:
        options.append(("--hf-secret", answers.hf_secret))
    options += [("--env", f"{name}={value}") for name, value in answers.environment]
    options += [("--secret", f"{name}={secret}") for name, secret in answers.secrets]
    return " ".join([_COMMAND, *(_option(name, value) for name, value in options)])


def _option(name: str, value: str) -> str:
    # A value with a dash in front would be read as another option.
    return f"{name}={_quoted(value)}" if value.startswith("-") else f"{name} {_quoted(value)}"


def _quoted(text: str) -> str:
    """One word for the shell, printable and on one line."""
    if text.isprintable():
        return shlex.quote(text)
    return f"$'{''.join(map(_escaped, text))}'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
