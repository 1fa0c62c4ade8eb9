"""``bt-tui diff``: Show what differs between two jobs: code, settings, environment, hardware."""

from __future__ import annotations

from dataclasses import asdict

import click

from api_client.client import TrainingClient
from tui.commands.support.options import JSON, MARKDOWN, TEXT, examples, format_option
from tui.commands.support.output import Output
from tui.commands.support.session import client_command
from tui.readers.code import read_differences


@examples("bt-tui diff abc1234 def5678", "bt-tui diff abc1234 def5678 -o markdown | pbcopy")
@click.command()
@click.argument("job_id", metavar="JOB_A")
@click.argument("other_id", metavar="JOB_B")
@format_option(TEXT, JSON, MARKDOWN)
@client_command
async def diff(
    client: TrainingClient, output: Output, job_id: str, other_id: str, output_format: str
) -> None:
    """Show what differs between two jobs, from the first to the second: how a run became another.

    Compared are hardware, the arguments and constants of the config (image, start commands, checkpoints and
    so on), the names of environment variables, and the text files of both archives, up to 200 lines of each.
    Values of environment variables are never shown, and what is recognized as a secret is removed. A config
    is read, not run: a computed value is its source text. How the runs went is compared by "bt-tui compare".
    """
    before, after = await client.jobs.find(job_id), await client.jobs.find(other_id)
    differences = await read_differences(client, before, after)
    if differences.not_compared:
        output.remark(f"code not compared: {differences.not_compared}")
    text = "".join(f"{output.paint(line, tone)}\n" for line, tone in differences.lines())
    text = f"{output.paint(differences.title, 'strong')}\n{text}"
    if output_format == MARKDOWN:
        lines = "\n".join(line for line, _ in differences.lines())
        title, lines = differences.title.replace("`", "'"), lines.replace("`", "'")
        text = f"### `{title}`\n\n```diff{lines}\n```\n"
    document = {
        "job_a": before.id,
        "job_b": after.id,
        "job": differences.job,
        **asdict(differences.code),
        "code_not_compared_because": differences.not_compared or None,
    }
    output.answer(output_format, document, text)
    if differences.none_words:
        output.remark(differences.none_words)
