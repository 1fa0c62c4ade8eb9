"""What the request tells by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from api_client.preflight.findings import Finding
from api_client.preflight.job_request import JobRequest

SESSION_ON_STARTUP = "on_startup"


def config_findings(request: JobRequest, unknown_fields: Iterable[str]) -> Iterator[Finding]:
    """Findings that need neither the archive nor the account."""
    yield from _nothing_to_run(request)
    yield from _without_checkpoints(request)
    for field in unknown_fields:
        problem = "the API knows no such field; it is sent, and most likely ignored"
        yield Finding("warning", field, problem, "check the spelling, or remove it")


def _nothing_to_run(request: JobRequest) -> Iterator[Finding]:
    if any(command.strip() for command in request.start_commands):
        return
    field = "runtime.start_commands"
    if request.session_trigger == SESSION_ON_STARTUP:
        problem = "empty: the job ends as soon as it starts, and its session with it"
        yield Finding("warning", field, problem, "keep it alive: start_commands=['sleep infinity']")
    else:
        yield Finding("error", field, "empty: there is nothing to run", "say what to run, as ['./run.sh']")


def _without_checkpoints(request: JobRequest) -> Iterator[Finding]:
    if request.checkpointing:
        return
    remedy = "CheckpointingConfig(enabled=True), and write to $BT_CHECKPOINT_DIR"
    field = "runtime.checkpointing_config"
    if request.spot:
        problem = "checkpointing is off, and a spot job can be preempted: its results would be lost"
        yield Finding("warning", field, problem, remedy)
    elif request.node_count > 1 or request.total_gpus > 1:
        problem = f"checkpointing is off for {request.machine}: if the job fails, its results are lost"
        yield Finding("warning", field, problem, remedy)
