"""Running a download for a command: a bar on a terminal's stderr, remarks elsewhere."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui.commands.exit_codes import ExitCode
from tui.commands.output import Output
from tui.commands.progress_line import ProgressLine
from tui.insight.units import bytes_iec, duration

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.downloads import DownloadPlan, DownloadProgress, DownloadReport, Existing

MOST_REMARKS = 10
"""Waits that are told of where there is no bar; a bad line has hundreds."""


async def run_plan(
    client: TrainingClient, output: Output, plan: DownloadPlan, existing: Existing
) -> DownloadReport:
    """Run the plan, showing how far it is. Raises what ``client.downloads.run`` does."""
    line = ProgressLine()
    told: list[str] = []

    def show(progress: DownloadProgress) -> None:
        line.show(
            progress_label(progress), progress.done_bytes, progress.total_bytes, progress_note(progress)
        )
        if not line.is_terminal and progress.note and progress.note not in told[-1:]:
            told.append(progress.note)
            if len(told) <= MOST_REMARKS:
                output.remark(progress.note)

    try:
        return await client.downloads.run(plan, on_progress=show, existing=existing)
    except asyncio.CancelledError:
        line.clear()
        output.remark("stopped; the same command goes on from here")
        raise
    finally:
        line.clear()


def progress_label(progress: DownloadProgress) -> str:
    """``3/36 files``, or nothing much for a single one."""
    count = len(progress.files)
    return "downloading" if count == 1 else f"{progress.files_done}/{count} files"


def progress_note(progress: DownloadProgress) -> str:
    """``157 MiB/s  12 s left``; of a stall, for how long."""
    if progress.stalled_s:
        return f"stalled for {duration(progress.stalled_s)}"
    if not progress.speed_bytes_per_s:
        return progress.note
    left = "" if not progress.eta_s else f"  {duration(progress.eta_s)} left"
    return f"{bytes_iec(progress.speed_bytes_per_s)}/s{left}"


def failure_code(report: DownloadReport) -> ExitCode:
    """The exit code of a download that is not complete."""
    if report.failed and all(file.is_retryable for file in report.failed):
        return ExitCode.UNREACHABLE
    return ExitCode.UNEXPECTED
