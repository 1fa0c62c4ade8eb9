"""The Truss configuration of a deployment: vLLM on the chosen machine, with the checkpoints beside it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from api_client.emulator.serving.adapter_rank import served_rank
from api_client.emulator.serving.chosen import LORA, ChosenCheckpoint
from api_client.emulator.serving.template_request import EnvironmentVariable
from api_client.models import InstanceType

SERVER_IMAGE = "vllm/vllm-openai:v0.11.0"
SERVER_PORT = 8000
HEALTH_PATH = "/health"
ENDPOINTS = {"whisper": "/v1/audio/transcriptions"}
CHAT_ENDPOINT = "/v1/chat/completions"
DOWNLOAD_FOLDER = "/tmp/training_checkpoints"
"""Where checkpoints appear in the server's container, each below its job's id (API facts, 7)."""

SECRETS_FOLDER = "/secrets"
FIRST_NODE = "rank-0"
CONCURRENCY = 256
MILLICPU = 1000
MIB_PER_GIB = 1024


def render(
    model_name: str,
    machine: InstanceType,
    checkpoints: Sequence[ChosenCheckpoint],
    environment: Sequence[EnvironmentVariable],
) -> dict[str, Any]:
    """The configuration as config.yaml would hold it. Secrets appear by name alone."""
    secrets = [variable for variable in environment if variable.is_secret_reference]
    return {
        "model_name": model_name,
        "model_metadata": {
            "example_model_input": _example(checkpoints[0]),
            "tags": ["openai-compatible"],
        },
        "base_image": {"image": SERVER_IMAGE},
        "docker_server": {
            "start_command": start_command(machine, checkpoints, secrets),
            "server_port": SERVER_PORT,
            "predict_endpoint": ENDPOINTS.get(checkpoints[0].kind, CHAT_ENDPOINT),
            "readiness_endpoint": HEALTH_PATH,
            "liveness_endpoint": HEALTH_PATH,
        },
        "environment_variables": {
            variable.name: variable.value for variable in environment if not variable.is_secret_reference
        },
        "resources": _resources(machine),
        "runtime": {"predict_concurrency": CONCURRENCY},
        "secrets": {variable.value: None for variable in secrets},
        "training_checkpoints": {
            "download_folder": DOWNLOAD_FOLDER,
            "artifact_references": [
                {"training_job_id": each.job.id, "paths": [f"{PurePosixPath(FIRST_NODE, each.name)}/"]}
                for each in checkpoints
            ],
        },
    }


def start_command(
    machine: InstanceType, checkpoints: Sequence[ChosenCheckpoint], secrets: Sequence[EnvironmentVariable]
) -> str:
    """What the container runs: secrets come from their files, then vLLM takes over."""
    words = ["exec", "vllm", "serve", *_weights_arguments(checkpoints)]
    words += ["--port", str(SERVER_PORT), "--dtype", "bfloat16"]
    words += ["--tensor-parallel-size", str(max(1, machine.gpu_count))]
    exports = [
        f'export {each.name}="$(cat {shlex.quote(f"{SECRETS_FOLDER}/{each.value}")})"' for each in secrets
    ]
    return shlex.join(["sh", "-c", "; ".join([*exports, shlex.join(words)])])


def _weights_arguments(checkpoints: Sequence[ChosenCheckpoint]) -> list[str]:
    first = checkpoints[0]
    if first.kind != LORA:
        return [_folder_of(first), "--served-model-name", first.name]
    return [
        first.base_model or "",
        "--enable-lora",
        "--max-lora-rank",
        str(served_rank(each.rank for each in checkpoints)),
        "--max-loras",
        str(len(checkpoints)),
        "--lora-modules",
        *(f"{each.name}={_folder_of(each)}" for each in checkpoints),
    ]


def _folder_of(checkpoint: ChosenCheckpoint) -> str:
    return str(PurePosixPath(DOWNLOAD_FOLDER, checkpoint.job.id, FIRST_NODE, checkpoint.name))


def _resources(machine: InstanceType) -> dict[str, Any]:
    resources: dict[str, Any] = {
        "cpu": str(machine.millicpu_limit // MILLICPU),
        "memory": f"{machine.memory_limit_mib // MIB_PER_GIB}Gi",
        "use_gpu": machine.gpu_count > 0,
    }
    if machine.gpu_type:
        # The accelerator's name in a configuration has no dash (API facts, 3.2).
        resources["accelerator"] = f"{machine.gpu_type.replace('-', '_')}:{machine.gpu_count}"
    return resources


def _example(checkpoint: ChosenCheckpoint) -> dict[str, Any]:
    if checkpoint.kind in ENDPOINTS:
        return {"model": checkpoint.name, "file": "speech.wav"}
    return {"model": checkpoint.name, "messages": [{"role": "user", "content": "Hello!"}]}
