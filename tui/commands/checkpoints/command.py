"""``bt-tui checkpoints``: List, inspect and download the checkpoints of a job.

``show`` reads the contents of a checkpoint with range requests, without downloading the weights.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import click

from api_client.checkpoints import TrainerState, UnreadableFile, Weights, is_safetensors, name_inside
from api_client.client import TrainingClient
from api_client.models import Checkpoint, CheckpointFile, TrainingJob
from tui.analysis.checkpoints.facts import CheckpointFacts, Score, checkpoint_facts, facts_of_run, fault_lines
from tui.analysis.export import csv_lines, csv_text, json_number
from tui.analysis.ordering import ordered
from tui.commands.checkpoints.download import download_checkpoints, snippet, urls
from tui.commands.support.options import (
    DESCENDING,
    JobChoice,
    examples,
    format_option,
    job_argument_and_options,
    job_options,
    listing_format_option,
    order_option,
    recording_option,
)
from tui.commands.support.output import CSV, JSON, TABLE, CommandOutput, not_in_job_error
from tui.commands.support.run_reading import read_evidence
from tui.commands.support.session import client_command
from tui.commands.support.tables import Cell, facts_text, table_text, table_text_if_any
from tui.tables.checkpoints import CHECKPOINT_COLUMNS, CheckpointRow
from tui.tables.column import Column, export_table, needed_columns, select_columns, text_column
from tui.text.times import iso_time, local_stamp, local_time
from tui.text.units import UNKNOWN, bytes_decimal, bytes_iec, count, counted, number

MAX_VALUE_CHARACTERS = 200
SHOWN_CONFIG_KEYS = ("architectures", "model_type", "hidden_size", "num_hidden_layers", "torch_dtype")


@examples(
    "bt-tui checkpoints show checkpoint-400 --job-id abc1234",
    "bt-tui checkpoints show checkpoint-400 --job-id abc1234 -o json | jq .weights.parameter_count",
)
@click.command("show", short_help="Show what is inside a checkpoint, without downloading it.")
@click.argument("checkpoint", metavar="CHECKPOINT")
@job_options
@format_option(TABLE, JSON)
@client_command
async def show(
    client: TrainingClient,
    output: CommandOutput,
    checkpoint: str,
    choice: JobChoice,
) -> None:
    """Show a checkpoint: its adapter's configuration, its tensors, and the state saved by the trainer.

    Weights are not downloaded: only the headers of safetensors files and small JSON files are read.
    """
    job = await choice.find(client)
    checkpoints = await client.checkpoints.list(job.project_id, job.id)
    listed_checkpoint = next((item for item in checkpoints if item.checkpoint_id == checkpoint), None)
    files = await checkpoint_files(client, job, checkpoint)
    details = await _read_details(client, job, checkpoint, files)
    document = _checkpoint_document(job.id, checkpoint, listed_checkpoint, files, details)
    output.print_result(document, _details_text(output, document, listed_checkpoint, details))
    for problem in details.problems:
        output.print_message(problem)


@dataclass(slots=True)
class _CheckpointDetails:
    """The readable parts of a checkpoint, and an error for each unreadable part."""

    weights: Weights | None = None
    adapter: Any = None
    config: Any = None
    state: TrainerState | None = None
    problems: list[str] = field(default_factory=list)


async def _read_details(
    client: TrainingClient, job: TrainingJob, checkpoint: str, files: list[CheckpointFile]
) -> _CheckpointDetails:
    contents = client.checkpoint_contents
    project_and_job_id = (job.project_id, job.id)
    details = _CheckpointDetails()
    file_by_name = {name_inside(file.relative_file_name, checkpoint): file for file in reversed(files)}

    async def read_if_present(name: str, read_file: Any) -> Any:
        file = file_by_name.get(name)
        if file is None:
            return None
        try:
            return await read_file(*project_and_job_id, file)
        except UnreadableFile as error:
            details.problems.append(str(error))
            return None

    details.adapter = await read_if_present("adapter_config.json", contents.json)
    details.config = await read_if_present("config.json", contents.json)
    details.state = await read_if_present("trainer_state.json", contents.trainer_state)
    if any(is_safetensors(file.relative_file_name) for file in files):
        weights = await contents.weights(*project_and_job_id, files)
        details.weights = weights if weights.tensors else None
        details.problems += weights.problems
    return details


def _checkpoint_document(
    job_id: str,
    checkpoint: str,
    listed_checkpoint: Checkpoint | None,
    files: list[CheckpointFile],
    details: _CheckpointDetails,
) -> dict[str, Any]:
    return {
        "job_id": job_id,
        "checkpoint_id": checkpoint,
        "checkpoint": listed_checkpoint.model_dump(mode="json") if listed_checkpoint else None,
        "total_files": len(files),
        "total_size_bytes": sum(max(0, file.size_bytes) for file in files),
        "node_ranks": sorted({file.node_rank for file in files}),
        "adapter_config": details.adapter,
        "config": details.config,
        "weights": _weights_record(details.weights) if details.weights else None,
        "trainer_state": _trainer_state_record(details.state) if details.state else None,
        "problems": details.problems,
    }


def _weights_record(weights: Weights) -> dict[str, Any]:
    tensors = weights.tensors
    largest_tensors = sorted(tensors, key=lambda tensor: -tensor.size_bytes)[:10]
    return {
        "files": len(weights.shards),
        "tensor_count": len(tensors),
        "parameter_count": weights.parameter_count,
        "parameters_by_dtype": weights.parameters_by_dtype,
        "data_bytes": weights.data_bytes,
        "header_bytes_read": weights.bytes_read,
        "metadata": weights.metadata,
        "largest_tensors": [
            {name: getattr(tensor, name) for name in ("name", "dtype", "shape", "size_bytes")}
            for tensor in largest_tensors
        ],
    }


def _trainer_state_record(state: TrainerState) -> dict[str, Any]:
    return {
        "global_step": state.global_step,
        "max_steps": state.max_steps,
        "epoch": state.epoch,
        "best_metric": state.best_metric,
        "best_model_checkpoint": state.best_model_checkpoint,
        "last": {name: curve[-1][1] for name, curve in state.curves.items()},
        "points": {name: len(curve) for name, curve in state.curves.items()},
    }


def _details_text(
    output: CommandOutput,
    document: dict[str, Any],
    listed_checkpoint: Checkpoint | None,
    details: _CheckpointDetails,
) -> str:
    adapter = details.adapter if isinstance(details.adapter, dict) else {}
    config = details.config if isinstance(details.config, dict) else {}
    weights = document["weights"]
    facts = [
        *_listing_facts(document, listed_checkpoint),
        *((f"adapter {name}", Cell(_value_text(value))) for name, value in sorted(adapter.items())),
        *((name, Cell(_value_text(config[name]))) for name in SHOWN_CONFIG_KEYS if name in config),
        *(_state_facts(details.state) if details.state else ()),
        *(_weight_facts(weights) if weights else ()),
    ]
    tensors = table_text_if_any(TENSOR_COLUMNS, weights["largest_tensors"] if weights else (), output)
    return facts_text(facts, output) + (f"\n{tensors}" if tensors else "")


TENSOR_COLUMNS: tuple[Column[dict[str, Any]], ...] = (
    text_column("SIZE", lambda tensor: bytes_iec(tensor["size_bytes"]), right_aligned=True),
    text_column("TYPE", lambda tensor: tensor["dtype"]),
    text_column(
        "SHAPE", lambda tensor: " × ".join(map(str, tensor["shape"])) or "scalar", right_aligned=True
    ),
    text_column("LARGEST TENSORS", lambda tensor: tensor["name"], shrinks=True),
)


def _weight_facts(weights: dict[str, Any]) -> list[tuple[str, Cell]]:
    by_dtype = weights["parameters_by_dtype"].items()
    parameter_counts_text = (
        ", ".join(f"{count(parameter_count)} {dtype}" for dtype, parameter_count in by_dtype) or UNKNOWN
    )
    header_bytes, weight_bytes = bytes_iec(weights["header_bytes_read"]), bytes_iec(weights["data_bytes"])
    facts = [
        ("parameters", Cell(f"{count(weights['parameter_count'])} ({parameter_counts_text})", "strong")),
        ("tensors", Cell(f"{count(weights['tensor_count'])} in {counted(weights['files'], 'file')}")),
        ("read", Cell(f"{header_bytes} of headers for {weight_bytes} of weights")),
    ]
    return facts + [
        (f"metadata {name}", Cell(_value_text(text))) for name, text in weights["metadata"].items()
    ]


def _listing_facts(document: dict[str, Any], listed_checkpoint: Checkpoint | None) -> list[tuple[str, Cell]]:
    facts = [("checkpoint", Cell(document["checkpoint_id"], "strong")), ("job", Cell(document["job_id"]))]
    if listed_checkpoint is not None:
        (fact,) = checkpoint_facts([listed_checkpoint])
        facts += [
            ("step", Cell(count(fact.step))),
            ("type", Cell(fact.kind)),
            ("base model", Cell(fact.checkpoint.base_model or UNKNOWN)),
            ("storage", Cell(fact.sync, "caution" if fact.sync == "uploading" else None)),
        ]
    ranks = document["node_ranks"]
    nodes = f", of {counted(len(ranks), 'node')}" if len(ranks) > 1 else ""
    size = bytes_iec(document["total_size_bytes"])
    return [*facts, ("files", Cell(f"{count(document['total_files'])}, {size}{nodes}"))]


def _state_facts(state: TrainerState) -> list[tuple[str, Cell]]:
    best_metric_text = "" if state.best_metric is None else number(state.best_metric)
    best_name = (
        f" by {state.best_model_checkpoint}" if best_metric_text and state.best_model_checkpoint else ""
    )
    return [
        ("trained", Cell(f"step {count(state.global_step)} of {count(state.max_steps)}")),
        *(
            (name.replace("_", " "), Cell(f"{number(curve[-1][1])} at step {count(curve[-1][0])}"))
            for name, curve in state.curves.items()
        ),
        ("best metric", Cell(best_metric_text + best_name)),
    ]


def _value_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE_CHARACTERS else text[: MAX_VALUE_CHARACTERS - 1] + "…"


@examples(
    "bt-tui checkpoints files checkpoint-400 --job-id abc1234",
    "bt-tui checkpoints files --job-id abc1234 -o json | jq '.total_size_bytes'",
)
@click.command("files", short_help="List the files of a checkpoint.")
@click.argument("checkpoint", metavar="[CHECKPOINT]", required=False)
@job_options
@click.option("--urls", is_flag=True, help="Include download URLs in JSON and CSV; anyone can use them.")
@listing_format_option
@client_command
async def files(
    client: TrainingClient,
    output: CommandOutput,
    checkpoint: str | None,
    choice: JobChoice,
    urls: bool,
) -> None:
    """List the files of a checkpoint from all nodes (default: the files of all checkpoints of the job).

    Download URLs are included only with --urls; "bt-tui checkpoints urls" writes the URLs to a file. On
    Baseten, URLs expire after seven days.
    """
    await print_files(client, output, choice, checkpoint, with_urls=urls)


async def print_files(
    client: TrainingClient,
    output: CommandOutput,
    choice: JobChoice,
    checkpoint: str | None,
    *,
    with_urls: bool = False,
) -> None:
    job = await choice.find(client)
    files = await checkpoint_files(client, job, checkpoint)
    total_bytes = sum(max(0, file.size_bytes) for file in files)
    field_names = [name for name in CSV_TITLES if with_urls or name != "url"]
    rows = ([getattr(file, name) for name in field_names] for file in files)
    document = {
        "job_id": job.id,
        "checkpoint_id": checkpoint,
        "total_files": len(files),
        "total_size_bytes": total_bytes,
        "files": [file.model_dump(mode="json", include=set(field_names)) for file in files],
    }
    output.print_result(
        document,
        lambda: table_text_if_any(FILE_COLUMNS, files, output),
        lambda: csv_lines([[CSV_TITLES[name] for name in field_names], *rows]),
    )
    if output.format == TABLE:
        output.print_message(f"{counted(len(files), 'file')}, {bytes_iec(total_bytes)}")


async def checkpoint_files(
    client: TrainingClient, job: TrainingJob, checkpoint: str | None
) -> list[CheckpointFile]:
    """Return the files of one or all checkpoints. Raises CommandFailed if ``checkpoint`` does not exist."""
    if checkpoint is None:
        return [file async for file in client.checkpoints.files(job.project_id, job.id)]
    files = await client.checkpoints.files_of(job.project_id, job.id, checkpoint)
    if not files:
        names = [item.checkpoint_id for item in await client.checkpoints.list(job.project_id, job.id)]
        if checkpoint not in names:
            raise not_in_job_error(job.id, "checkpoint", checkpoint, names)
    return files


CSV_TITLES = {
    "relative_file_name": "File",
    "node_rank": "Node rank",
    "size_bytes": "Size (bytes)",
    "last_modified": "Modified",
    "url": "URL",
}
"""CSV titles by field of a file. The URL comes last, and is included only with ``--urls``."""

FILE_COLUMNS: tuple[Column[CheckpointFile], ...] = (
    text_column("SIZE", lambda file: bytes_iec(file.size_bytes), right_aligned=True),
    text_column("MODIFIED", lambda file: local_stamp(file.last_modified), "muted"),
    text_column("RANK", lambda file: str(file.node_rank), right_aligned=True),
    text_column("FILE", lambda file: file.relative_file_name),
)


_SORT_KEYS: dict[str, Callable[[Checkpoint], Any]] = {
    "checkpoint-id": lambda checkpoint: checkpoint.checkpoint_id,
    "size": lambda checkpoint: checkpoint.size_bytes,
    "created": lambda checkpoint: checkpoint.created_at,
    "type": lambda checkpoint: checkpoint.checkpoint_type or None,
}


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
    "--sort", type=click.Choice(tuple(_SORT_KEYS)), default="created", show_default=True, help="Sort key."
)
@order_option
@listing_format_option
@client_command
async def list_checkpoints(
    client: TrainingClient,
    output: CommandOutput,
    choice: JobChoice,
    checkpoint_name: str | None,
    sort: str,
    order: str,
) -> None:
    """List the checkpoints of a job and mark the newest, the best, unfinished uploads and broken losses.

    Checkpoints are judged as on the job's screen: by the log (all of it, up to 100,000 lines) and by the
    trainer_state.json of the newest checkpoint. The best checkpoint has the lowest evaluation loss, or the
    lowest training loss if there are no evaluations. A checkpoint that is unfinished, or was written after
    the loss became NaN or exploded, is never the best. CSV output has no judgments.
    """
    if checkpoint_name is not None:
        await print_files(client, output, choice, checkpoint_name)
        return
    job = await choice.find(client)
    checkpoints = await client.checkpoints.list(job.project_id, job.id)
    checkpoints = ordered(checkpoints, _SORT_KEYS[sort], descending=order == DESCENDING)
    if not checkpoints:
        output.print_message(f"job {job.id} has no checkpoints")
    if output.format == CSV:
        output.write_text(csv_text([export_table("", _fields(job.id), checkpoints)]))
        return
    evidence = await read_evidence(client, job, checkpoints)
    if evidence.problem:
        output.print_message(f"checkpoints not checked: {evidence.problem}")
    facts = facts_of_run(evidence.run)
    if output.format == JSON:
        output.print_json(
            {
                "job_id": job.id,
                "total_checkpoints": len(facts),
                "checkpoints": [_checkpoint_record(job.id, fact) for fact in facts],
                "not_judged_because": evidence.problem or None,
            }
        )
    elif checkpoints:
        _print_table(output, facts, client.clock.now())


def _official_id(checkpoint: Checkpoint) -> str:
    """Return the id that the official command shows beside the name; empty for training jobs."""
    official_id = (checkpoint.model_extra or {}).get("id")
    return official_id if isinstance(official_id, str) else ""


def _checkpoint_record(job_id: str, fact: CheckpointFacts) -> dict[str, Any]:
    checkpoint = fact.checkpoint
    adapter = checkpoint.lora_adapter_config
    return {
        **{column.id: column.export(checkpoint) for column in _fields(job_id) if column.export},
        "checkpoint_type": checkpoint.checkpoint_type or "",
        "base_model": checkpoint.base_model or "",
        "sync_status": checkpoint.sync_status,
        "loss": _score_record(fact.score),
        "training_loss": _score_record(fact.loss),
        "evaluation_loss": _score_record(fact.evaluation),
        "is_best": fact.is_best,
        "judged": fact.is_checked,
        "fault": _fault_record(fact),
        **({"lora_adapter_config": adapter} if adapter else {}),
    }


def _score_record(score: Score | None) -> dict[str, Any] | None:
    if score is None:
        return None
    return {"name": score.name, "value": json_number(score.value), "step": score.at_step}


def _fault_record(facts: CheckpointFacts) -> dict[str, Any] | None:
    fault = facts.fault
    if fault is None:
        return None
    since = iso_time(fault.since.timestamp()) if fault.since else None
    return {"kind": str(fault.kind), "text": fault.words(facts.checkpoint.created_at), "since": since}


def _fields(job_id: str) -> tuple[Column[Checkpoint], ...]:
    """Return the fields of a checkpoint in JSON and CSV, with the official names."""
    return (
        Column("job_id", field="Job ID", export=lambda _checkpoint: job_id),
        Column("id", field="Checkpoint ID", export=_official_id),
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


def _print_table(output: CommandOutput, facts: Sequence[CheckpointFacts], now: datetime) -> None:
    """Print the table; to fit 80 cells, print a shared base model, the best score and faults to stderr."""
    base_models = {fact.checkpoint.base_model or UNKNOWN for fact in facts}
    column_ids = "name marks step reward loss evaluation kind size age sync base"
    if len(base_models) == 1:
        column_ids = column_ids.removesuffix(" base")
        if base_models != {UNKNOWN}:
            output.print_message(f"base model: {base_models.pop()}")
    for fact in facts:
        if fact.is_best and fact.score:
            output.print_message(f"best: {fact.name}, {fact.score.words}")
    for line in fault_lines(facts):
        output.print_message(line)
    rows = [CheckpointRow(fact.name, fact, now) for fact in facts]
    output.write_text(
        table_text(needed_columns(select_columns(CHECKPOINT_COLUMNS, column_ids), rows), rows, output)
    )


for _command in (files, show, urls, snippet, download_checkpoints):
    checkpoints.add_command(_command)
