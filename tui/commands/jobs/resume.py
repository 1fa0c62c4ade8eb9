"""``bt-tui resume``: Continue an ended job from a checkpoint, as a new job."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import click

from api_client import ConfigFileError, Submission, TrainingClient, load_training_project, plan_archive
from api_client.definitions import BasetenCheckpoint, LoadCheckpointConfig, TrainingProject
from api_client.definitions.jobs import LOADED_CHECKPOINTS_FOLDER
from api_client.models import Checkpoint, TrainingJob, TrainingProject as Project
from api_client.submission.payload import Overrides, apply_overrides
from api_client.words import listed
from tui.analysis.checkpoints.facts import CheckpointFacts, checkpoint_facts, facts_of_run, newest_sound
from tui.analysis.run.resumed import next_name
from tui.analysis.run.snapshot import RunSnapshot
from tui.commands.jobs.download import download_code
from tui.commands.jobs.push import (
    JobDraft,
    PushOptions,
    check_and_submit,
    findings_of,
    print_or_tail,
    push_options,
    show_dry_run,
)
from tui.commands.support.options import examples, format_option, job_argument, job_named
from tui.commands.support.output import JSON, TABLE, CommandFailed, CommandOutput, ExitCode, not_in_job_error
from tui.commands.support.run_reading import read_evidence
from tui.commands.support.session import client_command
from tui.commands.support.terminal import confirm
from tui.text.sanitize import sanitize
from tui.text.units import duration

LATEST, BEST = "latest", "best"
LOAD_VARIABLE = "BT_LOAD_CHECKPOINT_DIR"


@examples(
    "bt-tui resume abc1234 --dry-run --yes",
    "bt-tui resume abc1234 --from best --tail",
    "bt-tui resume abc1234 --from checkpoint-400 --yes",
)
@click.command()
@job_argument
@click.option(
    "--from",
    "from_checkpoint",
    metavar="[latest|best|NAME]",
    default=LATEST,
    show_default=True,
    help="Checkpoint to continue from: latest (if the loss broke: before that), best (by loss), or a name.",
)
@click.option(
    "--config", "config_name", metavar="FILE", help="The config in the job's code (default: config.py)."
)
@click.option(
    "--python",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="PATH",
    help="Load the config with this Python interpreter (for its imports).",
)
@click.option(
    "--anyway",
    is_flag=True,
    help="Submit even if the code reads no checkpoint or the job was already resumed.",
)
@push_options(format_option(TABLE, JSON))
@client_command
async def resume(
    client: TrainingClient,
    output: CommandOutput,
    job_id: str,
    from_checkpoint: str,
    config_name: str | None,
    python: Path | None,
    anyway: bool,
    cli_options: PushOptions,
) -> ExitCode:
    """Continue a job that has ended from one of its checkpoints, as a new job NAME-r2.

    Downloads the job's code, **executes its config.py on this machine** in a separate process, sets its
    load_checkpoint_config, keeps the hardware that the job had, shows what changes, and submits it. A job is
    refused if nothing in its code reads $BT_LOAD_CHECKPOINT_DIR: it would start from the beginning.
    """
    if not cli_options.dry_run:
        client.check_may_change("submitting a job")
    job = await job_named(client, job_id)
    if not job.is_finished:
        raise CommandFailed(f"job {job.id} has not ended: it would run twice; stop it first", ExitCode.USAGE)
    if not (anyway or cli_options.dry_run):
        await _refuse_second_resume(client, job)
    confirm(f"execute the config of job {job.id} on this machine?", assume_yes=cli_options.assume_yes)
    with tempfile.TemporaryDirectory(prefix="bt-tui-resume-", ignore_cleanup_errors=True) as folder:
        draft = await resume_draft(
            client,
            output,
            job,
            Path(folder),
            from_checkpoint=from_checkpoint,
            config_name=config_name,
            python=python,
            anyway=anyway,
        )
        if cli_options.dry_run:
            show_dry_run(output, draft, cli_options, await findings_of(client, draft, cli_options))
            return ExitCode.OK
        submission = await check_and_submit(client, output, draft, cli_options)
    return await print_or_tail(client, output, submission.training_job, submission.as_dict(), cli_options)


async def _refuse_second_resume(client: TrainingClient, job: TrainingJob) -> None:
    """Raise CommandFailed if the job was already resumed, by a job that has not ended."""
    for other_job in await client.jobs.search(project_id=job.project_id):
        if other_job.name == next_name(job) and not other_job.is_finished:
            raise CommandFailed(
                f"job {job.id} was resumed as {other_job.id}, which has not ended: it would run twice "
                f"(--anyway resumes it again)",
                ExitCode.USAGE,
            )


async def resume_now(
    client: TrainingClient,
    output: CommandOutput,
    job: TrainingJob,
    since: datetime,
    other_resuming_ids: Collection[str],
) -> TrainingJob:
    """Resume a job from its newest checkpoint without asking, unless it was resumed after ``since``.

    Returns the job that resumes it, also if that job existed already.

    ``other_resuming_ids`` are ids of jobs that resumed other jobs: these may have the same name, but don't
    count.

    Raises CommandFailed, ConfigurationError and RequestError.
    """
    name = next_name(job)
    for other_job in await client.jobs.search(project_id=job.project_id):
        is_recent = other_job.created_at is not None and other_job.created_at >= since - timedelta(minutes=5)
        if other_job.name == name and is_recent and other_job.id not in other_resuming_ids:
            return other_job
    with tempfile.TemporaryDirectory(prefix="bt-tui-resume-", ignore_cleanup_errors=True) as folder:
        draft = await resume_draft(client, output, job, Path(folder))
        options = PushOptions(assume_yes=True)
        submission: Submission = await check_and_submit(client, output, draft, options)
    return submission.training_job


async def resume_draft(
    client: TrainingClient,
    output: CommandOutput,
    job: TrainingJob,
    folder: Path,
    *,
    from_checkpoint: str = LATEST,
    config_name: str | None = None,
    python: Path | None = None,
    anyway: bool = False,
) -> JobDraft:
    """Prepare a job that continues ``job``, with its code in ``folder``; print to stderr what changes.

    Raises CommandFailed, ConfigurationError and RequestError.
    """
    checkpoint = await _checkpoint_to_load(client, output, job, from_checkpoint)
    code = await _download_and_unpack(client, output, job, folder)
    config = find_config(code, config_name)
    try:
        loaded = await asyncio.to_thread(load_training_project, config, python=python or Path(sys.executable))
    except ConfigFileError as error:
        position = str(config.relative_to(code)) + (f":{error.line}" if error.line else "")
        problem = error.problem.replace(f"{code}/", "")
        raise CommandFailed(f"{position} in the code of job {job.id}: {problem}", ExitCode.USAGE) from error
    if not anyway and not reads_checkpoint(code, loaded):
        raise CommandFailed(
            f"not resumed: nothing in the code of job {job.id} reads ${LOAD_VARIABLE}, so it would start "
            f"from its beginning (--anyway submits it)",
            ExitCode.USAGE,
        )
    previous_project = await client.projects.get(job.project_id)
    project, changes = continued_project(loaded, job, checkpoint, previous_project)
    for change in changes:
        output.print_message(change)
    # The downloaded folder already contains all code, also that of the former workspace.
    project.job.workspace = None
    return JobDraft(project, code, await asyncio.to_thread(plan_archive, code, None))


async def _checkpoint_to_load(
    client: TrainingClient, output: CommandOutput, job: TrainingJob, from_checkpoint: str
) -> str:
    """Return the name of the checkpoint to continue from, once its upload is done, or after five minutes."""
    for attempt in range(30):
        facts = checkpoint_facts(await client.checkpoints.list(job.project_id, job.id))
        newest = next((fact for fact in facts if fact.is_newest), None)
        if from_checkpoint != LATEST or newest is None or newest.sync != "uploading":
            break
        if attempt == 0:
            output.print_message(f"waiting for {newest.name}, which is being uploaded")
        await client.clock.sleep(10.0)
    stored_checkpoints = [fact.checkpoint for fact in facts if fact.sync != "uploading"]
    names = [checkpoint.checkpoint_id for checkpoint in stored_checkpoints]
    if not stored_checkpoints:
        raise CommandFailed(f"job {job.id} has no stored checkpoint", ExitCode.NOT_FOUND)
    if from_checkpoint in (LATEST, BEST):
        return await _selected_checkpoint(client, output, job, stored_checkpoints, from_checkpoint)
    if from_checkpoint not in names:
        raise not_in_job_error(job.id, "checkpoint", from_checkpoint, names)
    return from_checkpoint


async def _selected_checkpoint(
    client: TrainingClient,
    output: CommandOutput,
    job: TrainingJob,
    stored_checkpoints: list[Checkpoint],
    from_checkpoint: str,
) -> str:
    """Return the best checkpoint, or the newest checkpoint from before the loss broke."""
    evidence = await read_evidence(client, job, stored_checkpoints)
    facts = facts_of_run(evidence.run)
    if from_checkpoint == BEST:
        checkpoint = next((fact for fact in facts if fact.is_best), None)
        reason = evidence.problem or _why_none_is_best(facts, evidence.run)
    else:
        checkpoint = newest_sound(facts)
        reason = "all were written after the loss broke; --from NAME uses one of them anyway"
        if evidence.problem:
            output.print_message(f"not checked whether the loss broke: {evidence.problem}")
    if checkpoint is None:
        raise CommandFailed(f"job {job.id} has no {from_checkpoint} checkpoint: {reason}", ExitCode.NOT_FOUND)
    newest = next(fact for fact in facts if fact.is_newest)
    if newest.fault is not None:
        fault_text = newest.fault.words(newest.checkpoint.created_at)
        lead_time = _time_before_fault(checkpoint, newest)
        output.print_message(
            f"resuming not from {newest.name}, {fault_text}, but from {checkpoint.name}{lead_time}"
        )
    return checkpoint.name


def _why_none_is_best(facts: Sequence[CheckpointFacts], run: RunSnapshot) -> str:
    scored_facts = [fact for fact in facts if fact.score is not None and fact.fault is None]
    if not scored_facts:
        return "the log reports no loss for its steps"
    if len(scored_facts) == 1 and scored_facts[0].score is not None:
        name = scored_facts[0].name
        return f"only {name} has a loss to compare, {scored_facts[0].score.words}; --from {name} uses it"
    if run.progress is not None and not run.progress.has_ranking_loss:
        return "the loss does not show which is better in this kind of training; choose one with --from NAME"
    if len(scored_facts) < len(facts):
        return "the losses of some are unknown; --from NAME uses one of them"
    return "their losses differ by less than the noise; --from latest uses the newest"


def _time_before_fault(candidate: CheckpointFacts, newest: CheckpointFacts) -> str:
    """Return how long before the fault of ``newest`` the candidate was saved.

    The text is such as ``, 5m before the loss broke``; empty if a time is unknown.
    """
    broke_at = newest.fault.since if newest.fault is not None else None
    saved_at = candidate.checkpoint.created_at
    return (
        f", {duration((broke_at - saved_at).total_seconds())} before the loss broke"
        if broke_at and saved_at
        else ""
    )


async def _download_and_unpack(
    client: TrainingClient, output: CommandOutput, job: TrainingJob, folder: Path
) -> Path:
    """Download the code of a job and return its folder."""
    report = await download_code(client, output, job, folder, "code")
    if report.unpacked_to is None:
        raise CommandFailed(f"the code of job {job.id} is not an archive", ExitCode.UNEXPECTED)
    return report.unpacked_to


def find_config(code: Path, file_name: str | None = None) -> Path:
    """Return the config in a job's code: the file ``file_name``, else config.py, else the only possible file.

    Raises CommandFailed.
    """
    if file_name is not None:
        path = (code / file_name).resolve()
        if not path.is_relative_to(code.resolve()) or not path.is_file():
            raise CommandFailed(f"the job's code has no file {file_name!r}", ExitCode.NOT_FOUND)
        return path
    if (code / "config.py").is_file():
        return code / "config.py"
    configs = [
        path
        for path in _possible_scripts(code)
        if path.suffix == ".py" and b"TrainingProject" in path.read_bytes()
    ]
    if len(configs) != 1:
        names = listed([sanitize(str(path.relative_to(code))) for path in configs], 5) or "none"
        raise CommandFailed(
            f"which file of the job's code is its config? Give --config FILE ({names} could be)",
            ExitCode.USAGE,
        )
    return configs[0]


def reads_checkpoint(code: Path, project: TrainingProject) -> bool:
    """Return True if something in the code or in the start commands reads the checkpoint's folder."""
    load_config = project.job.runtime.load_checkpoint_config
    folder = load_config.download_folder if load_config is not None else LOADED_CHECKPOINTS_FOLDER
    searched_texts = [LOAD_VARIABLE.encode(), folder.encode()]
    commands = [command.encode() for command in project.job.runtime.start_commands]
    return any(
        searched_text in text
        for searched_text in searched_texts
        for text in (*commands, *map(Path.read_bytes, _possible_scripts(code)))
    )


def _possible_scripts(code: Path) -> list[Path]:
    """Return the files that may be scripts: at most 1 MB, no .md or .rst."""
    files = [path for path in sorted(code.rglob("*")) if path.is_file() and not path.is_symlink()]
    return [path for path in files if path.suffix not in (".md", ".rst") and path.stat().st_size <= 1_000_000]


def continued_project(
    project: TrainingProject, job: TrainingJob, checkpoint: str, previous_project: Project
) -> tuple[TrainingProject, list[str]]:
    """Return the config's project, changed to continue ``job``, and a description of each change.

    The new job is in ``previous_project`` and has the hardware of ``job``, whatever the config names.
    """
    compute, machine = project.job.compute, job.instance_type
    previous_gpus = (
        f"{machine.gpu_type}:{machine.gpu_count}" if machine.gpu_count and machine.gpu_type else None
    )
    accelerator = compute.accelerator
    configured_gpus = (
        f"{accelerator.accelerator.value}:{accelerator.count}"
        if accelerator and accelerator.accelerator
        else None
    )
    has_same_availability = (job.availability_model or "").lower() in ("", compute.availability_model.value)
    overrides = Overrides(
        job_name=next_name(job),
        accelerator=previous_gpus if previous_gpus != configured_gpus else None,
        node_count=job.node_count if job.node_count not in (None, compute.node_count) else None,
        priority=job.priority if job.priority not in (None, 0, project.job.priority) else None,
        availability=None if has_same_availability else (job.availability_model or "").lower(),
    )
    resumed_project, replacements = apply_overrides(project, overrides)
    load_config = resumed_project.job.runtime.load_checkpoint_config or LoadCheckpointConfig()
    reference = BasetenCheckpoint.from_named_checkpoint(checkpoint, job.id)
    resumed_project.job.runtime.load_checkpoint_config = load_config.model_copy(
        update={"enabled": True, "checkpoints": [reference]}
    )
    for label, field, previous_value in (
        ("project", "name", previous_project.name),
        ("team", "team_name", previous_project.team_name),
    ):
        config_value = getattr(resumed_project, field)
        if previous_value and config_value not in (None, previous_value):
            replacements = (f"{label}: {previous_value} replaces the config's {config_value}", *replacements)
        setattr(resumed_project, field, previous_value or config_value)
    changes = [*replacements, f"load_checkpoint_config: {checkpoint} of job {job.id}"]
    return resumed_project, changes
