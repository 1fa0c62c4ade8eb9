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
    CommandOutput,
    ExitCode,
    explain,
    refuse_if,
)
from tui.commands.support.run_reading import read_with_progress_line
from tui.commands.support.session import client_command
from tui.commands.support.tables import table_text
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
    "--curves", "with_curves", is_flag=True, help="Include the curves (json), or print only the curves (csv)."
)
@click.option(
    "--smoothing", type=click.FloatRange(0, 0.999), default=0.0, help="Smoothing of the chart, 0 to 0.999."
)
@format_option(TABLE, JSON, CSV, CHART)
@client_command
async def compare(
    client: TrainingClient,
    output: CommandOutput,
    job_ids: tuple[str, ...],
    x_axis: str,
    with_curves: bool,
    smoothing: float,
) -> ExitCode:
    """Compare jobs by log, status, duration, GPU-hours, estimated cost and checkpoints.

    In the table, ≠ marks properties that differ, ★ marks the best value, and percentages are relative to the
    first job. The same-step loss is the loss at the last step at which all jobs logged a loss. CSV has one
    line per property and one column per job; JSON has a list "jobs" of objects with the same properties.
    Curves have the columns chart, series, time, step, value and unit; with --x relative, time is seconds
    since the start of the run.

    A job that no longer exists or cannot be read is left out and named on stderr; the exit code is 7 or 8.
    """
    refuse_if(
        with_curves and output.format in (TABLE, CHART),
        "--curves needs -o json or csv; -o chart draws the curves",
    )
    refuse_if(smoothing and output.format != CHART, "--smoothing needs -o chart")
    ids = tuple(dict.fromkeys(job_ids))

    refuse_if(not 2 <= len(ids) <= MAX_COMPARED_RUNS, f"give 2 to {MAX_COMPARED_RUNS} different jobs")
    runs, code = await _read_runs(client, output, ids)
    if not runs:
        return code
    if output.format == CHART:
        _draw_charts(output, runs, X_AXES[x_axis], x_axis, smoothing)
        return code
    curve_table = curves_table(runs, X_AXES[x_axis]) if with_curves else None
    output.print_result(
        {"jobs": job_records(runs)} | ({"curves": records(curve_table)} if curve_table else {}),
        lambda: table_text(comparison_columns(labels(runs)), comparison_rows(runs), output),
        lambda: csv_text([curve_table or comparison_table(runs)]),
    )
    return code


async def _read_runs(
    client: TrainingClient, output: CommandOutput, ids: Sequence[str]
) -> tuple[list[ComparedRun], ExitCode]:
    prices = await listed_prices(client)
    runs: list[ComparedRun] = []
    exit_code = ExitCode.OK
    for job_id in ids:
        try:
            job = await job_named(client, job_id)
            loaded_run = await read_with_progress_line(client, job, output, prices=prices)
        except Unauthorized:
            raise
        except (ErrorAnswer, InvalidAnswer) as error:
            message, code = explain(error)
            output.print_message(f"skipped {job_id}: {message}")
            exit_code = code if exit_code is ExitCode.OK or isinstance(error, NotFound) else exit_code
            continue
        runs.append(ComparedRun(job, "read", loaded_run.run, gap_count=loaded_run.gap_count))
    return runs, exit_code


def _draw_charts(
    output: CommandOutput, runs: Sequence[ComparedRun], axis: Axis, axis_name: str, smoothing: float
) -> None:
    loss, throughput = curves(runs, "loss", axis), curves(runs, "throughput", axis)
    for title, curves_of_chart in (("loss", loss), (throughput_unit(runs), throughput)):
        span_s = max((curve.times[-1] - curve.times[0] for curve in curves_of_chart), default=0.0)
        x_label = {"step": count, "elapsed": duration, "clock": clock_label(span_s)}[axis]
        smoothed_curves = [smoothed(curve, smoothing) for curve in curves_of_chart]
        draw_chart(output, f"{title} by {axis_name}", smoothed_curves, y_label=number, x_label=x_label)


@examples("bt-tui diff abc1234 def5678", "bt-tui diff abc1234 def5678 -o markdown | pbcopy")
@click.command()
@click.argument("job_id", metavar="JOB_A")
@click.argument("other_id", metavar="JOB_B")
@format_option(TEXT, JSON, MARKDOWN)
@client_command
async def diff(client: TrainingClient, output: CommandOutput, job_id: str, other_id: str) -> None:
    """Show what changed from the first job to the second: hardware and code.

    Text files of the two code archives are compared line by line; up to 200 lines of each file are shown. For
    a config, names and the values of image, start commands, compute and similar fields are shown. Values of
    environment variables and recognized secrets are never shown, only that they differ. Lines of other files
    are shown unchanged. A config is read, not run. "bt-tui compare" compares the results of runs.
    """
    first_job, second_job = await job_named(client, job_id), await job_named(client, other_id)
    differences = await read_differences(client, first_job, second_job)
    if differences.not_compared:
        output.print_message(f"code not compared: {differences.not_compared}")
    width_cells = output.width_cells
    text = "".join(
        f"{output.paint(clip(line, width_cells) if width_cells else line, tone)}\n"
        for line, tone in differences.lines()
    )
    text = f"{output.paint(differences.title, 'strong')}\n{text}"
    if output.format == MARKDOWN:
        lines = "\n".join(line for line, _ in differences.lines())
        fenced_lines = lines.replace("`", "'")
        text = f"### {markdown_code(differences.title)}\n\n"
        none_text = differences.no_differences_text
        text += f"{none_text}\n" if none_text else f"```diff{fenced_lines}\n```\n"
    document = {
        "job_a": first_job.id,
        "job_b": second_job.id,
        "job": differences.job,
        "files": differences.files,
        "code_not_compared_because": differences.not_compared or None,
    }
    output.print_result(document, text)
    if differences.no_differences_text:
        output.print_message(differences.no_differences_text)
