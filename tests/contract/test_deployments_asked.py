"""What the deployment mutation renders, makes and refuses."""

from __future__ import annotations

import json
import shlex
from typing import Any

import httpx
import pytest

from api_client.emulator.backend import StoredFile
from api_client.models import Checkpoint
from support.deployment_requests import DEPLOY, ask, deployed, refusal, request_for
from support.fake_backend import START
from support.served_platform import Served

GIB = 1024**3
LORA = "checkpoint-100"
Known = dict[str, Checkpoint]
LOOPS = {"weight_source_type": "B10_LOOPS_CHECKPOINTING"}


@pytest.fixture
def checkpoints(served: Served, monkeypatch: pytest.MonkeyPatch) -> Known:
    """The checkpoints of every job, for a test to add to."""
    known: Known = {}
    monkeypatch.setattr(served.backend, "checkpoints", lambda job_id: list(known.values()))
    return known


def add(known: Known, name: str, kind: str = "lora", **more: Any) -> None:
    fields = {"base_model": "meta-llama/Llama-3.1-8B", "sync_status": "COMPLETE", **more}
    known[name] = Checkpoint(checkpoint_id=name, checkpoint_type=kind, created_at=START, **fields)


def dry_run(http: httpx.Client, request: dict[str, Any]) -> dict[str, Any]:
    answer = ask(http, {**request, "dry_run": True})["data"][DEPLOY]
    assert answer["model_version"] is None
    config: dict[str, Any] = json.loads(answer["truss_config"])
    return config


def server_words(config: dict[str, Any]) -> list[str]:
    """The words of the server's command, behind what comes before it in the shell."""
    shell, flag, script = shlex.split(config["docker_server"]["start_command"])
    assert (shell, flag) == ("sh", "-c")
    return shlex.split(script.rpartition("exec ")[2])


def after(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def test_a_dry_run_renders_and_makes_nothing(http: httpx.Client, served: Served) -> None:
    environment = [
        {"name": "HF_TOKEN", "value": "hf_access_token", "is_secret_reference": True},
        {"name": "GREETING", "value": "it's; $HOME", "is_secret_reference": False},
    ]
    config = dry_run(http, request_for((served.job_id, LORA), environment=environment))
    assert config["model_name"] == "fine-tuned-llm"
    resources = {"accelerator": "H100:2", "cpu": "52", "memory": "468Gi", "use_gpu": True}
    assert config["resources"] == resources
    assert config["secrets"] == {"hf_access_token": None}
    assert config["environment_variables"] == {"GREETING": "it's; $HOME"}
    assert config["training_checkpoints"]["artifact_references"] == [
        {"training_job_id": served.job_id, "paths": [f"rank-0/{LORA}/"]}
    ]
    words = server_words(config)
    assert words[:3] == ["vllm", "serve", "meta-llama/Llama-3.1-8B"]
    assert after(words, "--max-lora-rank") == "16"
    assert after(words, "--tensor-parallel-size") == "2"
    assert after(words, "--lora-modules").startswith(f"{LORA}=/tmp/training_checkpoints/{served.job_id}/")
    assert "export HF_TOKEN=" in config["docker_server"]["start_command"]
    assert http.get("/v1/models").json() == {"models": []}


def test_the_servers_rank_holds_every_adapter(http: Any, served: Served, checkpoints: Known) -> None:
    cases: tuple[tuple[list[Any], str], ...] = (([24], "32"), (["abc"], "16"), ([8, 64, 24], "64"))
    for ranks, served_rank in cases:
        for number, rank in enumerate(ranks):
            add(checkpoints, f"c-{number}", lora_adapter_config={"r": rank})
        words = server_words(dry_run(http, request_for(*((served.job_id, name) for name in checkpoints))))
        assert after(words, "--max-lora-rank") == served_rank
        modules = words[words.index("--lora-modules") + 1 :][: len(ranks)]
        assert [word.partition("=")[0] for word in modules] == [*checkpoints]


def test_full_weights_and_whisper_are_folders(http: Any, served: Served, checkpoints: Known) -> None:
    add(checkpoints, ".", kind="full")
    add(checkpoints, "speech", kind="whisper")
    full, whisper = (dry_run(http, request_for((served.job_id, name))) for name in checkpoints)
    assert server_words(full)[2] == f"/tmp/training_checkpoints/{served.job_id}/rank-0"
    assert full["training_checkpoints"]["artifact_references"][0]["paths"] == ["rank-0/"]
    assert after(server_words(whisper), "--served-model-name") == "speech"
    assert "transcriptions" in whisper["docker_server"]["predict_endpoint"]


def test_the_same_name_is_the_same_model(http: httpx.Client, served: Served) -> None:
    first = deployed(http, request_for((served.job_id, LORA)))
    second = deployed(http, request_for((served.job_id, LORA)))
    other = deployed(http, request_for((served.job_id, LORA), metadata={"oracle_name": "another"}))
    assert first["model_id"] == second["model_id"] != other["model_id"]
    assert (first["name"], second["name"], other["name"]) == ("deployment-1", "deployment-2", "deployment-1")
    models = {model["name"]: model for model in http.get("/v1/models").json()["models"]}
    assert models["fine-tuned-llm"]["deployments_count"] == 2
    assert models["fine-tuned-llm"]["production_deployment_id"] == first["id"]


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"weights_sources": []}, "VALIDATION_ERROR", "request.weights_sources"),
    ({"weights_sources": [{}]}, "VALIDATION_ERROR", "weights_sources.0"),
    ({"weights_sources": [LOOPS]}, "NOT_IMPLEMENTED", "Loops"),
    ({"metadata": {"oracle_name": " "}}, "VALIDATION_ERROR", "oracle_name"),
    ({"metadata": {"oracle_name": "\ud800"}}, "VALIDATION_ERROR", "oracle_name"),
    ({"metadata": None}, "VALIDATION_ERROR", "metadata"),
    ({"inference_stack": {"stack_type": "TGI"}}, "VALIDATION_ERROR", "stack_type"),
    ({"environment": [{"name": "A=B", "value": ""}]}, "VALIDATION_ERROR", "variables.0.name"),
    ({"environment": [{"name": "A", "value": 1}]}, "VALIDATION_ERROR", "value"),
    ({"dry_run": "no"}, "VALIDATION_ERROR", "dry_run"),
    ({"instance_type_id": "a-toaster"}, "RESOURCE_NOT_FOUND", "a-toaster"),
]


def test_a_wrong_request_is_refused_in_words(http: httpx.Client, served: Served) -> None:
    for changes, code, words in REFUSED:
        found = refusal(http, request_for((served.job_id, LORA), **changes))
        assert (found[0], words in found[1]) == (code, True), found
    for no_request in (None, [], "text", {}):
        assert refusal(http, no_request)[0] == "VALIDATION_ERROR"
    assert http.get("/v1/models").json() == {"models": []}


def test_what_cannot_be_served_is_refused(http: httpx.Client, served: Served, checkpoints: Known) -> None:
    add(checkpoints, "lora", lora_adapter_config={"r": 8})
    add(checkpoints, "full", "full")
    add(checkpoints, "no base", base_model=None)
    add(checkpoints, "wide", lora_adapter_config={"r": 600})
    for expected, words, *places in (
        ("VALIDATION_ERROR", "only LoRA checkpoints", (served.job_id, "full"), (served.job_id, "lora")),
        ("VALIDATION_ERROR", "base model", (served.job_id, "no base")),
        ("VALIDATION_ERROR", "600", (served.job_id, "wide")),
        ("RESOURCE_NOT_FOUND", "nojob", ("nojob", "lora")),
        ("RESOURCE_NOT_FOUND", "checkpoint-7", (served.job_id, "checkpoint-7")),
    ):
        for is_dry in (True, False):
            code, message = refusal(http, request_for(*places, dry_run=is_dry))
            assert (code, words in message) == (expected, True), message
    request = request_for((served.job_id, "lora"))
    too_much = f"mutation {{ {DEPLOY}(request: $request) {{ truss_config }} other {{ id }} }}"
    assert refusal(http, request, too_much)[0] == "NOT_IMPLEMENTED"
    assert http.get("/v1/models").json() == {"models": []}


SMALL = "h100-1-26x234"
STARTS: list[tuple[str, dict[str, int], str, str | None]] = [
    ("full", {"model-00001-of-00001.safetensors": 10 * GIB}, SMALL, None),
    ("full", {"model.safetensors": 140 * GIB}, SMALL, "140 GiB"),
    ("full", {"model.safetensors": 140 * GIB}, "h100-2-52x468", None),
    ("full", {"model.safetensors": GIB, "optimizer.pt": 400 * GIB}, SMALL, None),
    ("full", {"__0_0.distcp": GIB, "nested/model.safetensors": GIB}, SMALL, "merged"),
    ("full", {"pytorch_model.bin": GIB}, SMALL, None),
    ("lora", {"adapter_model.safetensors": GIB}, "cpu-4x16", "no GPU"),
]


@pytest.mark.parametrize(("kind", "files", "machine_id", "fails_with"), STARTS)
def test_a_server_that_cannot_start_fails_with_the_reason(
    http: Any, served: Served, checkpoints: Known, kind: Any, files: Any, machine_id: Any, fails_with: Any
) -> None:
    add(checkpoints, "step-5", kind)
    served.backend.stored_files[served.job_id] = [
        StoredFile(f"step-5/{name}", 0, size, START.isoformat()) for name, size in files.items()
    ]
    version = deployed(http, request_for((served.job_id, "step-5"), instance_type_id=machine_id))
    path = f"/v1/models/{version['model_id']}/deployments/{version['id']}"
    served.clock.moment = served.clock.moment.replace(minute=5)
    logged = http.get(f"{path}/logs", params={"min_level": "ERROR"}).json()["logs"]
    assert http.get(path).json()["status"] == ("DEPLOY_FAILED" if fails_with else "ACTIVE")
    assert bool(logged) == bool(fails_with)
    assert fails_with is None or any(fails_with in line["message"] for line in logged)
