"""``bt-tui diff``: Show what differs between two jobs: code, settings, environment, hardware."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from api_client.client import TrainingClient
from api_client.models import TrainingJob
from tui.analysis.code import CodeDifferences, Difference, FileDifference, code_differences
from tui.analysis.comparison import ComparedRun, comparison_rows
from tui.commands.support.options import JSON, MARKDOWN, TEXT, examples, format_option
from tui.commands.support.output import Output
from tui.commands.support.session import client_command
from tui.readers.code import NoCode, read_code
from tui.readers.run import together
from tui.text.sanitize import sanitize
from tui.text.units import counted

MACHINE = ("project", "instance", "gpu_type", "nodes", "gpus", "availability")
"""The properties of the jobs themselves, not of how they went."""
TONES = {"+": "good", "-": "bad", "@": "muted"}


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
    before, after = [await client.jobs.find(each) for each in (job_id, other_id)]
    job, code, problem = _of_jobs(before, after), CodeDifferences(), ""
    try:
        code = code_differences(*await together(read_code(client, before), read_code(client, after)))
    except NoCode as error:
        problem = str(error)
        output.remark(f"code not compared: {problem}")
    if output_format == JSON:
        document = {"job_a": before.id, "job_b": after.id, "job": job, **asdict(code)}
        output.json(document | {"code_not_compared_because": problem or None})
    elif output_format == MARKDOWN:
        output.data("\n".join(_markdown(before, after, job, code)) + "\n")
    else:
        _print(output, before, after, job, code)
    if not (job or code.settings or code.environment or code.files):
        output.remark("the machines are the same" if problem else "no differences")


def _of_jobs(before: TrainingJob, after: TrainingJob) -> list[Difference]:
    rows = comparison_rows([ComparedRun(before), ComparedRun(after)])
    return [Difference(row.title, *row.shown) for row in rows if row.id in MACHINE and row.differs]


def _parts(job: Sequence[Difference], code: CodeDifferences) -> list[tuple[str, Sequence[Difference]]]:
    parts = (("job", job), ("config", code.settings), ("environment (names only)", code.environment))
    return [(title, differences) for title, differences in parts if differences]


def _words(difference: Difference) -> str:
    if difference.before is None:
        return f"+ {difference.name}" + (f" = {difference.after}" if difference.after != "set" else "")
    if difference.after is None:
        return f"- {difference.name}" + (f" = {difference.before}" if difference.before != "set" else "")
    return f"  {difference.name}: {difference.before} → {difference.after}"


def _print(
    output: Output, before: TrainingJob, after: TrainingJob, job: Sequence[Difference], code: CodeDifferences
) -> None:
    output.data(f"{output.paint(f'{_name(before)} → {_name(after)}', 'strong')}\n")
    for title, differences in _parts(job, code):
        output.data(f"\n{title}\n")
        for difference in differences:
            words = _words(difference)
            output.data(f"{output.paint(words, TONES.get(words[0]))}\n")
    for file in code.files:
        output.data(f"\n{output.paint(_title(file), 'strong')}\n")
        for line in file.lines:
            output.data(f"{output.paint(line, TONES.get(line[:1]))}\n")


def _markdown(
    before: TrainingJob, after: TrainingJob, job: Sequence[Difference], code: CodeDifferences
) -> list[str]:
    lines = [f"### `{_plain(_name(before))}` → `{_plain(_name(after))}`"]
    for title, differences in _parts(job, code):
        lines += ["", f"{title}:", "", "```diff", *(_plain(_words(each)) for each in differences), "```"]
    for file in code.files:
        lines += ["", f"`{_plain(_title(file))}`"]
        lines += ["", "```diff", *map(_plain, file.lines), "```"] if file.lines else []
    return lines


def _plain(text: str) -> str:
    return text.replace("`", "'")


def _name(job: TrainingJob) -> str:
    return sanitize(f"{job.name} ({job.id})" if job.name else job.id)


def _title(file: FileDifference) -> str:
    more = f" ({counted(file.more, 'line')} more)" if file.more else ""
    return f"{file.path} {file.change}{more}"
