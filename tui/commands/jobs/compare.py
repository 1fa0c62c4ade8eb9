"""``bt-tui compare``: Compare jobs: results, loss and throughput.

``bt-tui diff``: Show what differs between two jobs: code, settings, environment, hardware.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from api_client import ErrorAnswer, InvalidAnswer, NotFound, TrainingClient, Unauthorized
from tui.analysis.comparison import (
    MAX_COMPARED_RUNS,
    Axis,
    ComparedRun,
    comparison_rows,
    comparison_table,
    curves,
    curves_table,
    job_records,
    labels,
    throughput_unit,
)
from tui.analysis.export import csv_text, records
from tui.analysis.series import smoothed
from tui.commands.support.options import examples, format_option, job_named
from tui.commands.support.output import (
    CHART,
    CSV,
    JSON,
    MARKDOWN,
    TABLE,
    TEXT,
    ExitCode,
    Output,
    explain,
    refuse,
)
from tui.commands.support.run_reading import read_with_line
from tui.commands.support.session import client_command
from tui.commands.support.tables import table_of
from tui.commands.support.text_chart import clock_label, draw_chart
from tui.readers.code import read_differences
from tui.readers.session import listed_prices
from tui.tables.comparison import comparison_columns
from tui.text.sanitize import clip, markdown_code
from tui.text.units import count, duration, number

X_AXES: dict[str, Axis] = {"step": "step", "relative": "elapsed", "time": "clock"}


@examples(
    "bt-tui compare abc1234 def5678",
    "bt-tui compare abc1234 def5678 -o chart --x relative",
    "bt-tui compare abc1234 def5678 -o csv --curves > curves.csv",
)
@click.command()
@click.argument("job_ids", metavar="JOB_ID JOB_ID [JOB_ID]…", nargs=-1, required=True)
@click.option(
    "--x",
    "x_axis",
    type=click.Choice(tuple(X_AXES)),
    default="step",
    show_default=True,
    help="X axis of the curves.",
)
@click.option(
    "--curves", "with_curves", is_flag=True, help="Include the curves (json), or print only them (csv)."
)
@click.option(
    "--smoothing", type=click.FloatRange(0, 0.999), default=0.0, help="Smoothing of the chart, 0 to 0.999."
)
@format_option(TABLE, JSON, CSV, CHART)
@client_command
async def compare(
    client: TrainingClient,
    output: Output,
    job_ids: tuple[str, ...],
    x_axis: str,
    with_curves: bool,
    smoothing: float,
) -> ExitCode:
    """Compare jobs by log, status, duration, GPU-hours, estimated cost and checkpoints.

    In the table, ≠ marks properties that differ, ★ marks the best value, and percentages are relative to
    the first job. The same-step loss is that of the last step at which all jobs logged one. CSV has one
    line per property and one column per job; JSON has a list "jobs" of objects with the same properties.
    Curves have the columns chart, series, time, step, value and unit; with --x relative, time is seconds
    since the start of the run.

    A job that no longer exists or cannot be read is left out with a remark, and the exit code is 7 or 8.
    """
    refuse(
        with_curves and output.format in (TABLE, CHART),
        "--curves needs -o json or csv; -o chart draws the curves",
    )
    refuse(smoothing and output.format != CHART, "--smoothing needs -o chart")
    ids = tuple(dict.fromkeys(job_ids))

    refuse(not 2 <= len(ids) <= MAX_COMPARED_RUNS, f"give 2 to {MAX_COMPARED_RUNS} different jobs")
    runs, worst = await _read(client, output, ids)
    if not runs:
        return worst
    if output.format == CHART:
        _draw(output, runs, X_AXES[x_axis], x_axis, smoothing)
        return worst
    lines = curves_table(runs, X_AXES[x_axis]) if with_curves else None
    output.answer(
        {"jobs": job_records(runs)} | ({"curves": records(lines)} if lines else {}),
        lambda: table_of(comparison_columns(labels(runs)), comparison_rows(runs), output),
        lambda: csv_text([lines or comparison_table(runs)]),
    )
    return worst


async def _read(
    client: TrainingClient, output: Output, ids: Sequence[str]
) -> tuple[list[ComparedRun], ExitCode]:
    prices = await listed_prices(client)
    runs: list[ComparedRun] = []
    worst = ExitCode.OK
    for job_id in ids:
        try:
            job = await job_named(client, job_id)
            reading = await read_with_line(client, job, output, prices=prices)
        except Unauthorized:
            raise
        except (ErrorAnswer, InvalidAnswer) as error:
            message, code = explain(error)
            output.remark(f"skipped {job_id}: {message}")
            worst = code if worst is ExitCode.OK or isinstance(error, NotFound) else worst
            continue
        runs.append(ComparedRun(job, "read", reading.run, gap_count=reading.gap_count))
    return runs, worst


def _draw(output: Output, runs: Sequence[ComparedRun], axis: Axis, name: str, smoothing: float) -> None:
    loss, speed = curves(runs, "loss", axis), curves(runs, "throughput", axis)
    for title, measured in (("loss", loss), (throughput_unit(runs), speed)):
        span_s = max((line.times[-1] - line.times[0] for line in measured), default=0.0)
        label = {"step": count, "elapsed": duration, "clock": clock_label(span_s)}[axis]
        lines = [smoothed(curve, smoothing) for curve in measured]
        draw_chart(output, f"{title} by {name}", lines, unit=number, x_label=label)


@examples("bt-tui diff abc1234 def5678", "bt-tui diff abc1234 def5678 -o markdown | pbcopy")
@click.command()
@click.argument("job_id", metavar="JOB_A")
@click.argument("other_id", metavar="JOB_B")
@format_option(TEXT, JSON, MARKDOWN)
@client_command
async def diff(client: TrainingClient, output: Output, job_id: str, other_id: str) -> None:
    """Show what differs between two jobs, from the first to the second: how a run became another.

    Compared are hardware and the files of both archives: of text files the lines, up to 200 of each. Of a
    config, its names and the values of image, start commands, compute and so on are shown; the values of
    its environment variables never, nor what is recognized as a secret: only that they differ. Other files
    are shown as they are. A config is read, not run. How the runs went is compared by "bt-tui compare".
    """
    before, after = await job_named(client, job_id), await job_named(client, other_id)
    differences = await read_differences(client, before, after)
    if differences.not_compared:
        output.remark(f"code not compared: {differences.not_compared}")
    cells = output.width_cells
    text = "".join(
        f"{output.paint(clip(line, cells) if cells else line, tone)}\n" for line, tone in differences.lines()
    )
    text = f"{output.paint(differences.title, 'strong')}\n{text}"
    if output.format == MARKDOWN:
        lines = "\n".join(line for line, _ in differences.lines())
        fenced = lines.replace("`", "'")
        text = f"### {markdown_code(differences.title)}\n\n"
        text += f"{differences.none_words}\n" if differences.none_words else f"```diff{fenced}\n```\n"
    document = {
        "job_a": before.id,
        "job_b": after.id,
        "job": differences.job,
        "files": differences.files,
        "code_not_compared_because": differences.not_compared or None,
    }
    output.answer(document, text)
    if differences.none_words:
        output.remark(differences.none_words)
