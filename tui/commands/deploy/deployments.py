"""``bt-tui deployments``: List deployments; promote, stop or retry a deployment."""

from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import click

from api_client import NotFound, RequestError, TrainingClient
from api_client.deployment import Calls, deployment_link, follow, serves_nothing
from api_client.models import Model
from api_client.models.deployments import SERVING_STATUSES
from api_client.models.logs import NS_PER_S, stamp_ns
from tui.analysis.deployments import (
    VERBS,
    DeploymentChange,
    DeploymentVerb,
    ListedDeployment,
    startup_text,
    status_tone,
    status_word,
)
from tui.commands.jobs.stop import print_failure
from tui.commands.logs.printing import LogPrinter, OutputLine
from tui.commands.support.options import (
    Command,
    CommandSettings,
    examples,
    format_option,
    job_named,
    remote_option,
    resolve_since,
    since_option,
    yes_option,
)
from tui.commands.support.output import (
    CSV,
    JSON,
    NDJSON,
    TABLE,
    TEXT,
    CommandFailed,
    CommandOutput,
    ExitCode,
    known_names_text,
    refuse_if,
)
from tui.commands.support.session import client_command, run_on_remote
from tui.commands.support.tables import Cell, facts_text, print_list
from tui.commands.support.terminal import confirm
from tui.readers.deployment import ServedModel, change_deployment, list_deployments, read_served
from tui.tables.column import Column, select_columns, text_cell
from tui.tables.jobs import age_of
from tui.text.sanitize import sanitize_multiline
from tui.text.times import local_time
from tui.text.units import UNKNOWN

COLUMNS: tuple[Column[ListedDeployment], ...] = (
    Column("id", "id", text_cell(lambda deployment: deployment.id), export=lambda deployment: deployment.id),
    Column(
        "name",
        "deployment",
        text_cell(lambda deployment: deployment.name),
        shrinks=True,
        export=lambda deployment: deployment.name,
    ),
    Column("model_id", export=lambda deployment: deployment.model_id),
    Column(
        "model_name",
        "model",
        text_cell(lambda deployment: deployment.model_name or deployment.model_id, "strong"),
        shrinks=True,
        export=lambda deployment: deployment.model_name,
    ),
    Column(
        "status",
        "status",
        lambda deployment: [(status_word(deployment.status), status_tone(deployment.status))],
        export=lambda deployment: deployment.status,
    ),
    Column(
        "environment",
        "environment",
        text_cell(lambda deployment: deployment.environment or ""),
        export=lambda deployment: deployment.environment,
    ),
    Column(
        "active_replica_count",
        "replicas",
        text_cell(lambda deployment: str(deployment.active_replica_count)),
        align="right",
        export=lambda deployment: deployment.active_replica_count,
    ),
    Column(
        "instance_type_name",
        "instance",
        text_cell(lambda deployment: deployment.instance_type_name or "", "muted"),
        shrinks=True,
        export=lambda deployment: deployment.instance_type_name,
    ),
    Column(
        "created_at",
        "age",
        text_cell(lambda deployment: age_of(deployment.created_at)),
        align="right",
        export=lambda deployment: deployment.created_at,
    ),
)
LISTED_DEPLOYMENT_COLUMNS = select_columns(
    COLUMNS, "status model_name name id environment active_replica_count instance_type_name created_at"
)

model_option = click.option("--model", metavar="MODEL", help="Only deployments of this model (id or name).")


def deployment_argument(command: Command) -> Command:
    """Add the argument DEPLOYMENT_ID, and ``--model``, which avoids listing the deployments of all models."""
    for parameter in (model_option, click.argument("deployment_id", metavar="DEPLOYMENT_ID")):
        command = parameter(command)
    return command


async def _models(client: TrainingClient, name_or_id: str | None) -> list[Model]:
    models = await client.models.list()
    if name_or_id is None:
        return models
    matching = [model for model in models if name_or_id in (model.id, model.name)]
    if not matching:
        names = known_names_text(model.name or model.id for model in models)
        raise CommandFailed(f"no model {name_or_id!r} (known: {names})", ExitCode.NOT_FOUND)
    return matching


async def _find_deployment(client: TrainingClient, deployment_id: str, model: str | None) -> ListedDeployment:
    for deployment in await list_deployments(client, await _models(client, model)):
        if deployment.id == deployment_id:
            return deployment
    command = client.remote.command_line("deployments")
    raise CommandFailed(f"no deployment {deployment_id!r}; see {command}", ExitCode.NOT_FOUND)


@examples(
    "bt-tui deployments",
    "bt-tui deployments --job-id abc1234        those that serve checkpoints of this job",
    "bt-tui deployments show wxy7890",
    "bt-tui deployments logs wxy7890 --follow",
    "bt-tui deployments promote wxy7890 --yes",
)
@click.group(invoke_without_command=True)
@model_option
@click.option("--job-id", metavar="JOB_ID", help="Only deployments that serve checkpoints of this job.")
@format_option(TABLE, JSON, CSV)
@remote_option
@click.pass_context
def deployments(context: click.Context, model: str | None, job_id: str | None) -> ExitCode | None:
    """List the deployments of all models that your key can access, newest first."""
    if context.invoked_subcommand is not None:
        context.default_map = {name: {"model": model} for name in deployments.commands}
        return None

    async def show(client: TrainingClient, output: CommandOutput) -> None:
        served_job_id = None if job_id is None else await _job_id(client, job_id)
        matching = await list_deployments(client, await _models(client, model), served_job_id)
        empty_message = (
            f"no deployments of checkpoints of job {served_job_id}" if served_job_id else "no deployments"
        )
        print_list(output, matching, LISTED_DEPLOYMENT_COLUMNS, COLUMNS, empty_message)

    return run_on_remote(context.ensure_object(CommandSettings), show)


async def _job_id(client: TrainingClient, text: str) -> str:
    """Return the id of the job that ``text`` names; else ``text``, since deployments outlive deleted jobs."""
    try:
        return (await job_named(client, text)).id
    except NotFound:
        return text


@examples("bt-tui deployments show wxy7890", "bt-tui deployments show wxy7890 -o json | jq -r .curl")
@deployments.command(short_help="Show a deployment: what it serves, how it started, how to call it.")
@deployment_argument
@format_option(TABLE, JSON)
@client_command
async def show(client: TrainingClient, output: CommandOutput, deployment_id: str, model: str | None) -> None:
    """Show a deployment: status, checkpoints, the phases of its last start, and how to call it.

    The API lists the starts of the last seven days. JSON is the API's deployment with "model_name",
    "link", "checkpoints", "startups" and, if it serves checkpoints, "url", "curl" and "python".
    """
    deployment = await _find_deployment(client, deployment_id, model)
    served_model = await read_served(client, deployment)
    link = deployment_link(client.remote, deployment.model_id, deployment.id)
    text = facts_text(_facts(deployment, served_model, link), output) + call_examples_text(
        output, served_model.call
    )
    output.print_result(_deployment_document(deployment, served_model, link), text)
    if output.format == TABLE and served_model.call is not None and serves_nothing(client.remote):
        output.print_message("on Baseten you would call it like this")


def call_examples_text(output: CommandOutput, call_examples: Calls | None) -> str:
    """Return examples of calling a deployment; empty if it is unknown how to call it."""
    example_texts = (
        {} if call_examples is None else {"curl": call_examples.curl, "python": call_examples.python}
    )
    return "".join(
        f"\n{output.paint(f'how to call it: {name}', 'muted')}\n{sanitize_multiline(text)}\n"
        for name, text in example_texts.items()
    )


def _deployment_document(
    deployment: ListedDeployment, served_model: ServedModel, link: str
) -> dict[str, Any]:
    document = deployment.model_dump(mode="json") | {
        "link": link,
        "checkpoints": [item._asdict() for item in served_model.checkpoints],
        "startups": [item.model_dump(mode="json") for item in served_model.startups],
    }
    if served_model.call is not None:
        document |= {
            "url": served_model.call.url,
            "curl": served_model.call.curl,
            "python": served_model.call.python,
        }
    return document


def _facts(deployment: ListedDeployment, served_model: ServedModel, link: str) -> list[tuple[str, Cell]]:
    created_text = f"{local_time(deployment.created_at) or UNKNOWN}, {age_of(deployment.created_at)} ago"
    return [
        ("status", Cell(status_word(deployment.status), status_tone(deployment.status))),
        ("model", Cell(f"{deployment.model_name} ({deployment.model_id})", "strong")),
        ("deployment", Cell(f"{deployment.name} ({deployment.id})")),
        ("environment", Cell(deployment.environment or "")),
        ("instance", Cell(deployment.instance_type_name or "")),
        ("replicas", Cell(str(deployment.active_replica_count))),
        ("created", Cell(created_text)),
        (
            "checkpoints",
            Cell(
                ", ".join(
                    f"{checkpoint.name} of {checkpoint.job_id}" for checkpoint in served_model.checkpoints
                )
            ),
        ),
        ("last start", Cell(startup_text(served_model.startups))),
        ("link", Cell(link)),
    ]


@examples("bt-tui deployments logs wxy7890 --since 1h", "bt-tui deployments logs wxy7890 --follow")
@deployments.command(short_help="Print the log of a deployment, or follow its start.")
@deployment_argument
@click.option(
    "--follow", "-f", "follows", is_flag=True, help="Follow until the deployment serves or has failed."
)
@since_option("Only lines from this time on: 2h, 12:30, a date.")
@format_option(TEXT, NDJSON, JSON)
@client_command
async def logs(
    client: TrainingClient,
    output: CommandOutput,
    deployment_id: str,
    model: str | None,
    follows: bool,
    since: str | None,
) -> ExitCode:
    """Print the log of a deployment from its creation on, oldest line first.

    With --follow the command waits until the deployment serves (exit code 0) or has failed (5), and reports
    each phase on stderr. The fields of ndjson and json are the same as in "bt-tui logs".
    """
    refuse_if(
        follows and output.format == JSON, "--follow needs text or ndjson: a JSON array would have no end"
    )
    deployment = await _find_deployment(client, deployment_id, model)
    start = resolve_since(since, datetime.now(UTC))
    start_ns = start.timestamp() * NS_PER_S if start is not None else 0
    printer = LogPrinter(output)
    status = ""
    stream = follow(client, deployment.model_id, deployment.id)
    async with aclosing(stream) as updates:
        async for update in updates:
            if follows and update.status != status:
                status = update.status
                output.print_message(f"status: {status_word(status)}")
            printer.print([OutputLine(line) for line in update.lines if stamp_ns(line) >= start_ns])
            if not follows:
                break
    printer.end()
    return ExitCode.OK if not follows or status in SERVING_STATUSES else ExitCode.DEPLOY_FAILED


def _add_change_command(verb: DeploymentVerb) -> None:
    async def run(
        client: TrainingClient,
        output: CommandOutput,
        deployment_id: str,
        model: str | None,
        assume_yes: bool,
    ) -> ExitCode:
        client.check_may_change(f"{verb.name} deployment {deployment_id}")
        deployment = await _find_deployment(client, deployment_id, model)
        change = DeploymentChange(verb, deployment, deployment.model_name)
        return await _change_deployment(client, output, change, assume_yes)

    run.__doc__ = f"{verb.help}\n\nAsks for confirmation. Prints the API's response with -o json."
    command = client_command(run)
    for decorate in (format_option(TABLE, JSON), yes_option, deployment_argument):
        command = decorate(command)
    added_command = deployments.command(verb.name, short_help=verb.help)(command)
    examples(f"bt-tui deployments {verb.name} wxy7890", f"bt-tui deployments {verb.name} wxy7890 --yes")(
        added_command
    )


async def _change_deployment(
    client: TrainingClient, output: CommandOutput, change: DeploymentChange, assume_yes: bool
) -> ExitCode:
    if change.refusal:
        raise CommandFailed(change.refusal, ExitCode.USAGE)
    output.print_message(change.verb.consequence)
    confirm(change.question, assume_yes=assume_yes)
    try:
        outcome = await change_deployment(client, change)
    except RequestError as error:
        return print_failure(output, error, f"deployment {change.deployment.id}", change.verb.done)
    if outcome.reason:
        output.print_message(f"nothing changed: {outcome.reason}")
    else:
        show = client.remote.command_line("deployments", "show", change.deployment.id)
        output.print_message(f"{change.verb.done} {change.name}; {show}")
    if output.format == JSON:
        output.print_json(outcome.response)
    elif not outcome.is_refused:
        output.write_text(f"{change.deployment.id}\n")
    return ExitCode.UNEXPECTED if outcome.is_refused else ExitCode.OK


for _verb in VERBS.values():
    _add_change_command(_verb)
