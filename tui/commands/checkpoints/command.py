"""``bt-tui checkpoints``: List, inspect and download the checkpoints of a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import click

from api_client.client import TrainingClient
from api_client.models import Checkpoint
from tui.analysis.checkpoints.facts import CheckpointFacts, Score, facts_of_run, fault_lines
from tui.analysis.export import csv_text, json_number
from tui.analysis.ordering import ordered
from tui.commands.checkpoints.download import download_checkpoints, snippet, urls
from tui.commands.checkpoints.show import files, print_files, show
from tui.commands.support.lookups import JobChoice
from tui.commands.support.options import (
    CSV,
    DESCENDING,
    JSON,
    examples,
    job_argument_and_options,
    listing_format_option,
    order_option,
    recording_option,
)
from tui.commands.support.output import Output
from tui.commands.support.run_options import read_evidence
from tui.commands.support.session import client_command
from tui.commands.support.tables import table_of
from tui.readers.run import CheckedRun
from tui.tables.checkpoints import CHECKPOINTS, CheckpointRow
from tui.tables.column import Column, chosen, exported
from tui.text.times import iso_time, local_time
from tui.text.units import UNKNOWN, bytes_decimal

_KEYS: dict[str, Callable[[Checkpoint], Any]] = {
    "checkpoint-id": lambda checkpoint: checkpoint.checkpoint_id,
    "size": lambda checkpoint: checkpoint.size_bytes,
    "created": lambda checkpoint: checkpoint.created_at,
    "type": lambda checkpoint: checkpoint.checkpoint_type or None,
}
SHOWN = "name marks step loss evaluation kind size age sync base"


@examples(
    "bt-tui checkpoints list abc1234",
    "bt-tui checkpoints show checkpoint-500 --job-id abc1234",
    "bt-tui checkpoints download checkpoint-500 --job-id abc1234",
)
@click.group()
def checkpoints() -> None:
    """List, inspect and download the checkpoints of a job."""


@examples(
    "bt-tui checkpoints list --job-id abc1234",
    "bt-tui checkpoints list --project llama-sft --sort size --order desc",
    "bt-tui checkpoints list --job-id abc1234 -o json | jq -r '.checkpoints[].checkpoint_id'",
)
@checkpoints.command("list", short_help="List the checkpoints of a job.")
@job_argument_and_options
@click.option(
    "--checkpoint-name", metavar="NAME", help="List this checkpoint's files, like checkpoints files NAME."
)
@recording_option
@click.option(
    "--sort", type=click.Choice(tuple(_KEYS)), default="created", show_default=True, help="Sort key."
)
@order_option
@listing_format_option
@client_command
async def list_checkpoints(
    client: TrainingClient,
    output: Output,
    choice: JobChoice,
    checkpoint_name: str | None,
    sort: str,
    order: str,
    output_format: str,
) -> None:
    """List the checkpoints of a job and mark the newest, the best, unfinished uploads and broken losses.

    Checkpoints are judged as on the job's screen: by the log (all of it, up to 100,000 lines) and by the
    trainer_state.json of the newest. The best has the lowest evaluation loss, or the lowest training loss
    if there are no evaluations. A checkpoint that is unfinished, or was written after the loss became NaN
    or exploded, is never the best. CSV output is not judged.
    """
    if checkpoint_name is not None:
        await print_files(client, output, choice, checkpoint_name, output_format)
        return
    job = await choice.find(client)
    listed = await client.checkpoints.list(job.project_id, job.id)
    listed = ordered(listed, _KEYS[sort], descending=order == DESCENDING)
    if not listed:
        output.remark(f"job {job.id} has no checkpoints")
    if output_format == CSV:
        output.data(csv_text([exported("", _fields(job.id), listed)]))
        return
    evidence = await read_evidence(client, job, listed)
    if evidence.problem:
        output.remark(f"checkpoints not checked: {evidence.problem}")
    facts = facts_of_run(evidence.run)
    if output_format == JSON:
        output.json(_document(job.id, facts, evidence))
    elif listed:
        _print_table(output, facts, client.clock.now())


def _own_id(checkpoint: Checkpoint) -> str:
    """Return the id that the official command shows beside the name; empty for training jobs."""
    own = (checkpoint.model_extra or {}).get("id")
    return own if isinstance(own, str) else ""


def _document(job_id: str, facts: Sequence[CheckpointFacts], evidence: CheckedRun) -> dict[str, Any]:
    return {
        "job_id": job_id,
        "total_checkpoints": len(facts),
        "checkpoints": [_entry(job_id, fact) for fact in facts],
        "not_judged_because": evidence.problem or None,
    }


def _entry(job_id: str, fact: CheckpointFacts) -> dict[str, Any]:
    checkpoint = fact.checkpoint
    adapter = checkpoint.lora_adapter_config
    return {
        **{column.id: column.export(checkpoint) for column in _fields(job_id) if column.export},
        "checkpoint_type": checkpoint.checkpoint_type or "",
        "base_model": checkpoint.base_model or "",
        "sync_status": checkpoint.sync_status,
        "loss": _loss(fact.score),
        "training_loss": _loss(fact.loss),
        "evaluation_loss": _loss(fact.evaluation),
        "is_best": fact.is_best,
        "judged": fact.is_checked,
        "fault": _fault(fact),
        **({"lora_adapter_config": adapter} if adapter else {}),
    }


def _loss(score: Score | None) -> dict[str, Any] | None:
    if score is None:
        return None
    return {"name": score.name, "value": json_number(score.value), "step": score.at_step}


def _fault(known: CheckpointFacts) -> dict[str, Any] | None:
    fault = known.fault
    if fault is None:
        return None
    since = iso_time(fault.since.timestamp()) if fault.since else None
    return {"kind": str(fault.kind), "text": fault.words(known.checkpoint.created_at), "since": since}


def _fields(job_id: str) -> tuple[Column[Checkpoint], ...]:
    """Return what JSON and CSV have of a checkpoint, by the official names."""
    return (
        Column("job_id", field="Job ID", export=lambda _checkpoint: job_id),
        Column("id", field="Checkpoint ID", export=_own_id),
        Column("checkpoint_id", field="Checkpoint Name", export=lambda checkpoint: checkpoint.checkpoint_id),
        Column("checkpoint_type", field="Type", export=lambda checkpoint: checkpoint.checkpoint_type),
        Column("base_model", field="Base Model", export=lambda checkpoint: checkpoint.base_model),
        Column("size_bytes", field="Size (bytes)", export=lambda checkpoint: checkpoint.size_bytes or 0),
        Column(
            "size_human_readable",
            field="Size (human readable)",
            export=lambda checkpoint: bytes_decimal(checkpoint.size_bytes or 0),
        ),
        Column("created_at", field="Created At", export=lambda checkpoint: local_time(checkpoint.created_at)),
    )


def _print_table(output: Output, facts: Sequence[CheckpointFacts], now: datetime) -> None:
    """Print the table within 80 cells; a shared base model, the best score and faults become remarks.

    The marks name uploads, so the storage is shown only if the server's word for it is unknown.
    """
    bases = {fact.checkpoint.base_model or UNKNOWN for fact in facts}
    shown = SHOWN
    if not any(fact.sync == "unknown" and fact.checkpoint.sync_status for fact in facts):
        shown = shown.replace(" sync", "")
    if all(fact.evaluation is None for fact in facts):
        shown = shown.replace(" evaluation", "")
    if len(bases) == 1:
        shown = shown.removesuffix(" base")
        if bases != {UNKNOWN}:
            output.remark(f"base model: {bases.pop()}")
    for fact in facts:
        if fact.is_best and fact.score:
            output.remark(f"best: {fact.name}, {fact.score.words}")
    for line in fault_lines(facts):
        output.remark(line)
    rows = [CheckpointRow(fact.name, fact, now) for fact in facts]
    output.data(table_of(chosen(CHECKPOINTS, shown), rows, output))


for _command in (files, show, urls, snippet, download_checkpoints):
    checkpoints.add_command(_command)
