"""Generate text to copy or save: example calls, a ``config.py`` for the official SDK, and truss configs.

The ``config.py`` creates an equal config when it runs.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from api_client.addresses import BaseUrl, parse_base_url
from api_client.definitions import Accelerator, AcceleratorSpec, DeployCheckpointsConfig
from api_client.deployment.sending import DeploymentResult
from api_client.files import write_file
from api_client.models import Checkpoint, TrainingJob
from api_client.models.checkpoints import checkpoint_address
from api_client.remotes import Remote
from api_client.servable import kind_of


def serves_nothing(remote: Remote) -> bool:
    """Return True if the remote is on this machine: an emulator, which serves no models."""
    return _api_address(remote).is_loopback


@dataclass(frozen=True, slots=True)
class Calls:
    """Example calls of a deployment: a curl command, and a program that uses the ``openai`` package.

    Their lines fit a terminal of 80 columns, so that they can be copied with the mouse.
    """

    url: str
    curl: str
    python: str


def calls(remote: Remote, result: DeploymentResult, checkpoints: Sequence[Checkpoint]) -> Calls | None:
    """Return example calls for the first checkpoint; None without ids or without checkpoints."""
    if not checkpoints or not result.model_id or not result.version_id:
        return None
    name, is_whisper = checkpoints[0].checkpoint_id, kind_of(checkpoints[0]) == "whisper"
    return calls_of(remote, result.model_id, result.version_id, name, is_whisper=is_whisper)


def calls_of(
    remote: Remote, model_id: str, deployment_id: str, checkpoint_name: str, *, is_whisper: bool = False
) -> Calls:
    """Return example calls of a deployment; ``checkpoint_name`` is the ``model`` in requests."""
    # The emulator serves no model, so show the production host.
    host = "api.baseten.co" if serves_nothing(remote) else _api_address(remote).netloc
    url = f"https://model-{model_id}.{host}/deployment/{deployment_id}/sync/v1"  # OpenAI-compatible
    if is_whisper:
        path = "audio/transcriptions"
        data = f"-F file=@audio.wav -F {shlex.quote(f'model={checkpoint_name}')}"
        arguments, response_text = 'file=open("audio.wav", "rb")', "answer.text"
    else:
        path = "chat/completions"
        messages = json.dumps([{"role": "user", "content": "What did you learn?"}])
        body = f'{{"model": {json.dumps(checkpoint_name)}, "messages":\n    {messages}}}'
        data = f"-H 'Content-Type: application/json' \\\n  -d {shlex.quote(body)}"
        arguments, response_text = f"messages={messages}", "answer.choices[0].message.content"
    header = '-H "Authorization: Api-Key $BASETEN_API_KEY"'
    return Calls(
        url,
        f'URL={shlex.quote(url)}\ncurl "$URL/{path}" \\\n  {header} \\\n  {data}',
        f"""import os

from openai import OpenAI

url = {json.dumps(url)}
client = OpenAI(base_url=url, api_key=os.environ["BASETEN_API_KEY"])
answer = client.{path.replace("/", ".")}.create(
    model={json.dumps(checkpoint_name)},
    {arguments},
)
print({response_text})
""",
    )


def _api_address(remote: Remote) -> BaseUrl:
    return parse_base_url(remote.api_url, source=f"the API address of remote '{remote.name}'")


def render_python(config: DeployCheckpointsConfig) -> str:
    """Render source that imports only ``truss_train`` (and truss for GPUs); it creates an equal config."""
    expression = _python_expression(config, "\n")
    imports = ["from truss_train import definitions"]
    if "truss_config." in expression:
        imports.insert(0, "from truss.base import truss_config")
    import_lines = "\n".join(imports)
    docstring = (
        "Deploys checkpoints: `bt-tui deploy_checkpoints --config FILE`, or the same with `truss train`."
    )
    return f'"""{docstring}"""\n\n{import_lines}\n\ndeploy_config = {expression}\n'


def _python_expression(value: Any, line_break: str) -> str:
    """Return the expression that creates a value; ``line_break`` includes the indentation."""
    inner = line_break + "    "
    if isinstance(value, BaseModel):
        opening, items, closing = f"{_qualified_name(type(value))}(", list(_arguments(value, inner)), ")"
    elif isinstance(value, dict):
        opening, closing = "{", "}"
        items = [f"{key!r}: {_python_expression(item, inner)}" for key, item in value.items()]
    elif isinstance(value, list):
        opening, items, closing = "[", [_python_expression(item, inner) for item in value], "]"
    elif isinstance(value, Enum):
        return f"{_qualified_name(type(value))}.{value.name}"
    else:
        return repr(value)
    short = f"{opening}{', '.join(items)}{closing}"
    if "\n" not in short and len(inner) + len(short) <= 60:  # fits beside the steps of the wizard
        return short
    return f"{opening}{''.join(f'{inner}{item},' for item in items)}{line_break}{closing}"


def _arguments(model: BaseModel, line_break: str) -> Iterator[str]:
    """Yield keyword arguments for fields that differ from their defaults, and for fields of a newer SDK."""
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if field.is_required() or value != field.get_default(call_default_factory=True):
            yield f"{name}={_python_expression(value, line_break)}"
    if model.model_extra:
        yield f"**{model.model_extra!r}"


def _qualified_name(kind: type) -> str:
    is_in_truss = kind in (Accelerator, AcceleratorSpec)
    return f"{'truss_config' if is_in_truss else 'definitions'}.{kind.__name__}"


DEFAULT_FOLDER = Path("truss_configs")


def truss_config_path(result: DeploymentResult, directory: Path | None, now: datetime) -> Path:
    """Return the path of the truss config: in ``directory``, else in a folder named after the deployment.

    For a dry run, the folder is named after ``now``, in local time, as in the official CLI.
    """
    if directory is not None:
        return directory / "config.yaml"
    if result.version_id is None:
        return DEFAULT_FOLDER / f"dry_run_{now:%Y%m%d_%H%M%S}" / "config.yaml"
    # A name from the server must not point outside the folder.
    name = re.sub(r"[^0-9A-Za-z_.-]+", "_", f"{result.name}_{result.version_id}")[-120:].lstrip(".")
    return DEFAULT_FOLDER / (name or "deployment") / "config.yaml"


def write_truss_config(result: DeploymentResult, directory: Path | None, now: datetime) -> Path | None:
    """Write the truss config and return its path; None if the server returned none. Raises OSError."""
    if not result.truss_config:
        return None
    path = truss_config_path(result, directory, now)
    text = truss_config_yaml(result.truss_config)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text.encode())
    return path


def truss_config_yaml(truss_config: str) -> str:
    """Convert the JSON from the server to YAML; text that is not JSON is returned unchanged."""
    import yaml

    try:
        content = json.loads(truss_config)
    except ValueError:
        return truss_config
    text: str = yaml.safe_dump(content, sort_keys=True, allow_unicode=True)
    return text


ENGINE, VLLM = "engine", "vllm"


def engine_configs(job: TrainingJob, checkpoint: Checkpoint, *, model_name: str, gpu: str) -> dict[str, str]:
    """Return truss configs (YAML) by engine, ``ENGINE`` and ``VLLM``.

    The result is empty for a checkpoint for which the documentation has no truss config.
    """
    address = checkpoint_address(job, checkpoint.checkpoint_id)
    if kind_of(checkpoint) != "full" or not address or job.training_project is None:
        return {}
    gpu_count = gpu.partition(":")[2] or "1"
    header = f"# Deploy it with: truss push FOLDER (of this file)\nmodel_name: {json.dumps(model_name)}\n"
    resources = f"""resources:
  accelerator: {json.dumps(gpu.removesuffix(":1"))}
  use_gpu: true
"""
    engine = f"""trt_llm:
  build:
    base_model: decoder # of embeddings and rerankers encoder_bert or encoder, with a webserver_default_route
    checkpoint_repository:
      source: BASETEN_TRAINING
      repo: {json.dumps(job.training_project.name)}
      revision: {json.dumps(f"{job.id}/{checkpoint.checkpoint_id}")}
"""
    if gpu_count != "1":
        engine += f"    tensor_parallel_count: {gpu_count}\n"
    serve = f"vllm serve /models/checkpoint --served-model-name {shlex.quote(checkpoint.checkpoint_id)}"
    serve += f" --tensor-parallel-size {gpu_count}" if gpu_count != "1" else ""
    # The image of the documentation's example.
    vllm = f"""base_image:
  image: vllm/vllm-openai:v0.12.0
docker_server:
  start_command: {serve} --host 0.0.0.0 --port 8000
  readiness_endpoint: /health
  liveness_endpoint: /health
  predict_endpoint: /v1/chat/completions
  server_port: 8000
weights:
  - source: {json.dumps(address)}
    mount_location: /models/checkpoint
"""
    return {ENGINE: header + resources + engine, VLLM: header + vllm + resources}
