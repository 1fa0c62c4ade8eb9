"""What a command says of a job that it has just started."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tui.commands.exit_codes import ExitCode
from tui.commands.options import JSON, NDJSON, TEXT
from tui.commands.output import Output, ascii_json

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.models import TrainingJob


async def tell_or_tail(
    client: TrainingClient,
    output: Output,
    job: TrainingJob,
    document: Mapping[str, Any],
    output_format: str,
    *,
    tail: bool,
) -> ExitCode:
    """Print the job, or follow its log until it ends and return the code that tells how.

    As JSON ``document`` is printed; followed, it is one line, and the log's lines come after it as ndjson.
    """
    if tail:
        if output_format == JSON:
            output.data(ascii_json(document) + "\n")
        return await _tail(client, output, job, NDJSON if output_format == JSON else TEXT)
    if output_format == JSON:
        output.json(document)
    else:
        from tui.commands.rows import job_facts
        from tui.commands.tables import render_facts

        facts = job_facts(job, link=client.job_link(job.project_id, job.id))
        output.data(render_facts(facts, paint=output.paint))
    output.remark(f"watch it: bt-tui logs {job.id} --follow, or in the dashboard: bt-tui")
    return ExitCode.OK


async def _tail(client: TrainingClient, output: Output, job: TrainingJob, line_format: str) -> ExitCode:
    from tui.commands.logs import follow_log, line_renderer

    output.remark(f"job {job.id}: {client.job_link(job.project_id, job.id)}")
    try:
        return await follow_log(client, job, output, line_renderer(output, line_format))
    except asyncio.CancelledError:
        output.remark(f"the job goes on; bt-tui stop {job.id} ends it")
        raise
