"""``bt-tui workstation``: Start a machine with GPUs to use over SSH."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import click

from api_client import Submission, TrainingClient, plan_archive
from api_client.submission.workstation import workstation_hosts, workstation_project
from tui.commands.jobs.push import JobDraft, PushOptions, push_options, submit_draft
from tui.commands.support.options import CommandSettings, examples, format_option, remote_option
from tui.commands.support.output import JSON, TEXT, CommandOutput, ExitCode, refuse_if


@examples(
    "bt-tui workstation --accelerator H100 --gpu-count 2",
    "bt-tui workstation --gpu-count 8 --checkpoint-from-job abc1234 --spot",
    "bt-tui workstation --node-count 2 --orchestrator none --dry-run",
    "bt-tui workstation -o json | jq -r '.nodes[].hostname'",
)
@click.command()
@click.option(
    "--accelerator", default="H100", show_default=True, metavar="TYPE", help="GPU type (case-insensitive)."
)
@click.option(
    "--gpu-count",
    type=click.IntRange(1, 8),
    metavar="N",
    help="Number of GPUs, 1 to 8 (default: 1).",
)
@click.option(
    "--node-count",
    type=click.IntRange(1, 16),
    metavar="N",
    help="Number of whole nodes of 8 GPUs, 1 to 16; replaces --gpu-count.",
)
@click.option(
    "--orchestrator",
    type=click.Choice(("slurm", "none"), case_sensitive=False),
    default="slurm",
    show_default=True,
    help="How several nodes are used: slurm needs truss; none leaves them idle, e.g. for torchrun.",
)
@click.option(
    "--project-id",
    "--project",
    "project_name",
    metavar="NAME",
    help="Project (default: workstation-TYPE).",
)
@click.option("--image", metavar="IMAGE", help="Container image (default: NVIDIA's for CUDA development).")
@click.option(
    "--enable-checkpointing",
    "saves_checkpoints",
    is_flag=True,
    help="Store the files in BT_CHECKPOINT_DIR as checkpoints.",
)
@click.option("--checkpoint-path", metavar="PATH", help="Path of the checkpoint folder in the container.")
@click.option(
    "--checkpoint-volume-size",
    "checkpoint_volume_size_gib",
    type=int,
    metavar="GIB",
    help="Size of the checkpoint volume in GiB.",
)
@click.option("--checkpoint-from-job", metavar="JOB_ID", help="Load the latest checkpoint of this job.")
@click.option("--spot", is_flag=True, help="Use spot capacity, which can be preempted.")
@push_options(format_option(TEXT, JSON, extra_names=["--output-format"]))
@remote_option
@click.pass_obj
def workstation(
    settings: CommandSettings,
    /,
    gpu_count: int | None,
    node_count: int | None,
    orchestrator: str,
    cli_options: PushOptions,
    **project_options: Any,
) -> ExitCode | None:
    """Start a job that only sleeps, on nodes that you reach by SSH. Billed until you stop it.

    The project's cache is mounted if the job has GPUs. The job is checked first, as in push. On several
    nodes, BT_LEADER_ADDR, BT_NODE_RANK and BT_GROUP_SIZE are set. Setting up SLURM requires scripts of
    the truss package: use truss train workstation.

    JSON has job_id, project, accelerator, gpu_count (per node), node_count, orchestrator, nodes (rank,
    hostname, is_leader) and job; with --tail on one line, followed by the log as ndjson.
    """
    refuse_if(gpu_count is not None and node_count is not None, "give either --gpu-count or --node-count")
    nodes = node_count or 1
    refuse_if(
        nodes > 1 and orchestrator == "slurm",
        "bt-tui does not set up SLURM: use truss train workstation, or --orchestrator none for idle "
        "nodes on which you start torchrun yourself",
    )
    if not project_options["saves_checkpoints"] and (
        project_options["checkpoint_path"] or project_options["checkpoint_volume_size_gib"] is not None
    ):
        settings.output.print_message("without --enable-checkpointing no checkpoints are stored")
    gpus = 8 if node_count is not None else gpu_count or 1
    project = workstation_project(gpu_count=gpus, node_count=nodes, **project_options)
    # An empty folder is submitted, as the official CLI does, never the working directory.
    with tempfile.TemporaryDirectory(prefix="bt-tui-workstation-") as folder:
        draft = JobDraft(project, Path(folder), plan_archive(Path(folder)))
        return submit_draft(settings, draft, cli_options, partial(_workstation_document, draft))


def _workstation_document(
    draft: JobDraft, client: TrainingClient, output: CommandOutput, submission: Submission
) -> dict[str, Any]:
    """Print to stderr how to reach the nodes, and return the JSON document of the workstation."""
    job, compute = submission.training_job, draft.project.job.compute
    hosts = workstation_hosts(job.id, compute.node_count, remote_name=client.remote.name)
    ssh = client.remote.command_line("ssh", job.id, *(("--node", "N") if len(hosts) > 1 else ()))
    install = client.remote.command_line("ssh-config", "--install")
    output.print_message(f"once the job is running: {ssh}; or, after {install}:")
    for host in hosts:
        output.print_message(
            f"  ssh {host.name}" + (" (leader)" if len(hosts) > 1 and host.node == 0 else "")
        )
    output.print_message(
        f"billed until you stop it: {client.remote.command_line('stop', job.id, changes=True)}"
    )
    spec = compute.accelerator
    return {
        "job_id": job.id,
        "project": {"id": submission.training_project.id, "name": submission.training_project.name},
        "accelerator": spec.accelerator.value if spec and spec.accelerator else None,
        "gpu_count": spec.count if spec else 0,
        "node_count": compute.node_count,
        "orchestrator": None,
        "nodes": [{"rank": host.node, "hostname": host.name, "is_leader": host.node == 0} for host in hosts],
        "job": submission.as_dict()["training_job"],
    }
