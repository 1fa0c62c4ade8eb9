"""Request deployments as the official CLI does."""

from __future__ import annotations

import json
from typing import Any

import httpx

DEPLOY = "create_model_version_from_inference_template"
MUTATION = f"""
    mutation ($request: CreateModelVersionFromInferenceTemplateRequest!) {{
        {DEPLOY}(request: $request) {{ model_version {{ id name model_id }} truss_config }}
    }}
    """
MACHINE_ID = "h100-2-52x468"


def request_for(*places: tuple[str, str], **changes: Any) -> dict[str, Any]:
    """The mutation's request for those checkpoints, each a job's id and a name."""
    environment = changes.pop("environment", [])
    return {
        "metadata": {"oracle_name": "fine-tuned-llm"},
        "weights_sources": [
            {
                "weight_source_type": "B10_CHECKPOINTING",
                "b10_training_checkpoint_weights_source": {
                    "checkpoint": {"training_job_id": job_id, "checkpoint_name": name}
                },
            }
            for job_id, name in places
        ],
        "inference_stack": {"stack_type": "VLLM", "environment_variables": environment},
        "instance_type_id": MACHINE_ID,
        "dry_run": False,
        **changes,
    }


def ask(http: httpx.Client, request: Any, query: str = MUTATION) -> dict[str, Any]:
    """The whole answer, whose status is 200 whatever it says."""
    # Made here, as httpx cannot encode text that is no valid Unicode.
    body = json.dumps({"query": query, "variables": {"request": request}})
    answer = http.post("/graphql/", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200
    return dict(answer.json())


def deployed(http: httpx.Client, request: dict[str, Any]) -> dict[str, Any]:
    return dict(ask(http, request)["data"][DEPLOY]["model_version"])


def refusal(http: httpx.Client, request: Any, query: str = MUTATION) -> tuple[str, str]:
    content = ask(http, request, query)
    assert content["data"] is None
    (error,) = content["errors"]
    assert error["message"] == error["extensions"]["description"]
    return error["extensions"]["code"], error["message"]
