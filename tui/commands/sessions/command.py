"""``bt-tui sessions``: Show, extend or trigger the interactive sessions of a job.

``bt-tui update_session`` (hidden)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import click

from api_client.client import TrainingClient
from api_client.models import AuthCode, TrainingJob
from tui.commands.support.exit_codes import CommandFailed, ExitCode, refuse
from tui.commands.support.lookups import job_named
from tui.commands.support.options import (
    JSON,
    TABLE,
    Command,
    examples,
    format_option,
    job_argument,
    trigger_option,
)
from tui.commands.support.output import Output
from tui.commands.support.session import client_command
from tui.commands.support.tables import print_list
from tui.tables.column import Column, Span, text_column
from tui.text.units import UNKNOWN, age


def _minutes_option(name: str) -> Callable[[Command], Command]:
    least = click.IntRange(min=-1)
    return click.option(
        name, "minutes", type=least, metavar="MINUTES", help="Extend the sessions; -1 for ten years."
    )


@examples(
    "bt-tui sessions abc1234",
    "bt-tui sessions abc1234 --update-timeout 120",
    "bt-tui sessions abc1234 -o json | jq -r '.[0].auth_url'",
)
@click.command()
@job_argument
@_minutes_option("--update-timeout")
@trigger_option("--update-trigger", "trigger", help="When sessions start.")
@click.option(
    "--messages", "with_messages", is_flag=True, hidden=True, help="JSON as truss train isession prints it."
)
@format_option(TABLE, JSON, also=["--format"])
@client_command
async def sessions(
    client: TrainingClient,
    output: Output,
    job_id: str,
    minutes: int | None,
    trigger: str | None,
    with_messages: bool,
    output_format: str,
) -> None:
    """Show how to sign in to a job's interactive sessions, by replica, and when they expire.

    The codes open a shell in the job: treat them like passwords. --update-timeout and --update-trigger
    change every session of the job first. JSON is a list; with "bt-tui isession", the object that
    "truss train isession" prints: auth_codes and update_messages.
    """
    await _show(client, output, job_id, minutes, trigger, output_format, with_messages=with_messages)


@examples("bt-tui update_session abc1234 --timeout-minutes 60")
@click.command("update_session", hidden=True)
@click.argument("job_id", metavar="JOB_ID")
@_minutes_option("--timeout-minutes")
@trigger_option("--trigger", help="When sessions start.")
@client_command
async def update_session(
    client: TrainingClient, output: Output, job_id: str, minutes: int | None, trigger: str | None
) -> None:
    """Change the interactive sessions of a job: bt-tui sessions with the official command's flags."""
    refuse(minutes is None and trigger is None, "nothing to change: give --timeout-minutes or --trigger")
    await _show(client, output, job_id, minutes, trigger, TABLE)


async def _show(
    client: TrainingClient,
    output: Output,
    job_id: str,
    minutes: int | None,
    trigger: str | None,
    output_format: str,
    *,
    with_messages: bool = False,
) -> None:
    refuse(minutes == 0, "0 minutes would change nothing; -1 means ten years")
    job = await job_named(client, job_id)
    codes = await client.sessions.auth_codes(job.project_id, job.id)
    messages = []
    if minutes is not None or trigger is not None:
        messages = await _change(client, output, job, codes, minutes=minutes, trigger=trigger)
        codes = await client.sessions.auth_codes(job.project_id, job.id)
    codes.sort(key=lambda code: code.replica_id)
    if output_format == JSON and with_messages:
        output.json({"auth_codes": codes} | ({"update_messages": messages} if messages else {}))
        return
    none = f"job {job.id} has no interactive session (set runtime.interactive_session in its config)"
    print_list(output, output_format, codes, COLUMNS, (), none)


async def _change(
    client: TrainingClient,
    output: Output,
    job: TrainingJob,
    found: Sequence[AuthCode],
    *,
    minutes: int | None,
    trigger: str | None,
) -> list[str]:
    """Change each session once, even if several replicas share it; return the server's messages."""
    if not found:
        raise CommandFailed(f"job {job.id} has no interactive session to change", ExitCode.NOT_FOUND)
    messages = []
    for session_id in dict.fromkeys(code.session_id for code in found):
        answer = await client.sessions.update(
            job.project_id, job.id, session_id, timeout_minutes=minutes, trigger=trigger
        )
        messages.append(answer.message or "changed")
        output.remark(f"session {session_id}: {messages[-1]}")
    return messages


def _end(code: AuthCode) -> list[Span]:
    if code.expires_at is None:
        return [(UNKNOWN, "plain")]
    left_s = (code.expires_at - datetime.now(UTC)).total_seconds()
    return [(f"in {age(left_s)}", "plain") if left_s > 0 else ("ended", "muted")]


COLUMNS: tuple[Column[AuthCode], ...] = (
    text_column("REPLICA", lambda code: code.replica_id or UNKNOWN, "strong"),
    text_column("CODE", lambda code: code.auth_code or UNKNOWN),
    Column("ENDS", "ENDS", _end),
    text_column("TUNNEL", lambda code: code.tunnel_name or UNKNOWN),
    text_column("SIGN IN AT", lambda code: code.auth_url or UNKNOWN),
)
