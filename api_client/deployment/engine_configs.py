"""Configs that serve a full checkpoint by other means: the Engine-Builder, or vLLM in a Truss of one's own.

They contain only what Baseten documents: docs.baseten.co/training/deploy-with-engine-builder,
/development/model/bdn#baseten-training and /examples/vllm. ``truss push FOLDER`` deploys either.
"""

from __future__ import annotations

import json
import re
import shlex

from api_client.models import Checkpoint, TrainingJob
from api_client.servable import kind_of

ENGINE, VLLM = "engine", "vllm"
VLLM_IMAGE = "vllm/vllm-openai:v0.12.0"
"""That of the documented example."""

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)


def checkpoint_address(job: TrainingJob, checkpoint_name: str) -> str:
    """Return ``bt://project@job/checkpoint``, which weights of a Truss are loaded from.

    Empty if a name is not plain: whether and how others are escaped is not documented.
    """
    project = job.training_project.name if job.training_project is not None else ""
    names = (project, job.id, checkpoint_name)
    return f"bt://{project}@{job.id}/{checkpoint_name}" if all(map(_PLAIN.fullmatch, names)) else ""


def engine_configs(job: TrainingJob, checkpoint: Checkpoint, *, model_name: str, gpu: str) -> dict[str, str]:
    """Return the YAML of both configs by name; empty for a checkpoint for which none is documented."""
    address = checkpoint_address(job, checkpoint.checkpoint_id)
    if kind_of(checkpoint) != "full" or not address or job.training_project is None:
        return {}
    count = gpu.partition(":")[2] or "1"
    head = f"# Deploy it with: truss push FOLDER (of this file)\nmodel_name: {json.dumps(model_name)}\n"
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
    if count != "1":
        engine += f"    tensor_parallel_count: {count}\n"
    serve = f"vllm serve /models/checkpoint --served-model-name {shlex.quote(checkpoint.checkpoint_id)}"
    serve += f" --tensor-parallel-size {count}" if count != "1" else ""
    vllm = f"""base_image:
  image: {VLLM_IMAGE}
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
    return {ENGINE: head + resources + engine, VLLM: head + vllm + resources}
