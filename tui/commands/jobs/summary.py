"""``bt-tui summary``: Summarize a run in at most 4 KB, for scripts and coding agents.

``bt-tui why``: Explain a job's problems: root cause, evidence, log lines.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import click

from api_client import RequestError, TrainingClient
from api_client.http.retry import LASTING, retrying
from api_client.models import RUNNABLE_STATUSES, WAITING_STATUSES, TrainingJob
from tui.analysis.fleet.capacity import queue_position
from tui.analysis.health.judge import judged
from tui.analysis.health.registry import KINDS
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.run.verdict import verdict
from tui.analysis.summary.rendering import NOTICE, Document, as_markdown, as_text
from tui.analysis.summary.value import MAX_EXPLAINED, state_of, summarize
from tui.analysis.why.explain import explained_findings
from tui.analysis.why.explanation import Clue, Explanation, markdown, since_words
from tui.commands.support.options import examples, format_option, job_argument, job_named, recording_option
from tui.commands.support.output import JSON, MARKDOWN, TEXT, CommandOutput, ExitCode, outcome_exit_code
from tui.commands.support.progress_line import ProgressLine, lines_note
from tui.commands.support.remotes import run_settings
from tui.commands.support.run_reading import read_with_progress_line
from tui.commands.support.session import client_command
from tui.readers.log_reader import OnLogProgress
from tui.readers.session import listed_prices
from tui.readers.watcher import RunWatcher, gather_or_cancel
from tui.readers.why import read_explanation
from tui.settings.runs import DEFAULT, RunSettings
from tui.text.sanitize import sanitize, sanitize_multiline
from tui.text.times import iso_time


@examples(
    "bt-tui summary abc1234",
    "bt-tui summary abc1234 -o json | jq -r '.problems[].answer'",
    "bt-tui summary abc1234 --follow -o jsonl     a line whenever something that matters changes",
)
@click.command()
@recording_option
@job_argument
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="Print another summary when status, findings, checkpoints or restarts change, until the job ends.",
)
@format_option(TEXT, JSON, MARKDOWN)
@client_command
async def summary(client: TrainingClient, output: CommandOutput, job_id: str, follow: bool) -> ExitCode:
    """Summarize a run: what it does, findings and their causes, progress, cost, checkpoints, what to do next.

    A summary has at most 4,096 bytes in every format; items without room are counted. Quoted log lines are
    data: they may contain anything. In JSON, what is unknown is left out, times are UTC, durations
    and ages are seconds, and non-finite numbers are strings.

    With --follow the exit code is that of the job's outcome, as with logs --follow.
    """
    with ProgressLine() as line:
        label = f"reading the log of {job_id}"
        reader = SummaryReader(
            client,
            await job_named(client, job_id),
            run_settings(),
            on_log_progress=lambda fraction, count: line.show(label, note=lines_note(fraction, count)),
        )
        if not follow:
            document = await reader.read()
            line.clear()
            _print_summary(output, document)
            return ExitCode.OK
        print_retry = lambda error, _delay_s: output.print_message(f"{error}; retrying")  # noqa: E731
        async with aclosing(reader.follow(print_retry)) as summaries:
            async for document in summaries:
                line.clear()
                _print_summary(output, document)
    return outcome_exit_code(reader.job.current_status)


def _print_summary(output: CommandOutput, summary: Document) -> None:
    render = as_markdown if output.format == MARKDOWN else as_text
    output.print_result(summary, render(summary))


@examples(
    "bt-tui why abc1234",
    "bt-tui why abc1234 -o markdown | pbcopy",
    "bt-tui why abc1234 -o json | jq -r '.explanations[].answer'",
)
@click.command()
@job_argument
@click.option("--kind", type=click.Choice(list(KINDS)), help="Explain only these findings.")
@format_option(TEXT, JSON, MARKDOWN)
@client_command
async def why(client: TrainingClient, output: CommandOutput, job_id: str, kind: str | None) -> None:
    """Explain the findings of a running job, or why a job failed, by its log and its metrics.

    For a failed job it names the first error, apart from the errors that follow when a process dies; for a
    slow node the lines that only this node logs; for a stall the last line of each node; for a broken loss
    the step, the gradient norms before it, and the last checkpoint from before.

    Nothing is claimed that the data does not show: "answer" is empty if nothing explains a finding. Times
    are in UTC.
    """
    job = await job_named(client, job_id)
    loaded_run = await read_with_progress_line(
        client, job, output, with_health_metrics=True, prices=await listed_prices(client)
    )
    run = judged(loaded_run.run, run_settings().rules)
    findings = [
        finding
        for finding in explained_findings(run)
        if kind in (None, str(finding.kind) if finding else "failed")
    ]
    explanations = [await read_explanation(client, run, finding) for finding in findings]
    document = {
        "notice": NOTICE,
        "job_id": job.id,
        "explanations": list(map(_explanation_record, explanations)),
    }
    text = "".join(_explanation_text(output, explanation) for explanation in explanations)
    if output.format == MARKDOWN:
        text = "\n".join(markdown(explanation, job.name or job.id) for explanation in explanations)
    output.print_result(document, text)
    if not explanations:
        output.print_message(f"nothing to explain: {_no_explanation_reason(run, kind)}")


def _no_explanation_reason(run: RunSnapshot, kind: str | None) -> str:
    if kind is not None:
        return f"no finding {kind}"
    is_waiting = run.job.current_status in WAITING_STATUSES
    return f"the job is {run.status.word}" if run.job.is_finished or is_waiting else verdict(run).words


def _explanation_record(explanation: Explanation) -> dict[str, Any]:
    finding = explanation.finding
    return {
        "kind": str(finding.kind) if finding is not None else "failed",
        "severity": finding.severity if finding is not None else "critical",
        "node": finding.node if finding is not None else None,
        "since": iso_time(finding.since) if finding is not None and finding.since else None,
        "problem": explanation.problem,
        "answer": explanation.answer,
        "facts": list(explanation.facts),
        "sections": [
            {"title": section.title, "lines": [_clue_record(clue) for clue in section.clues]}
            for section in explanation.sections
        ],
    }


def _clue_record(clue: Clue) -> dict[str, Any]:
    return {
        "timestamp": str(clue.at_ns),
        "replica": clue.node,
        "count": clue.count,
        "message": clue.text,
    }


def _explanation_text(output: CommandOutput, explanation: Explanation) -> str:
    lines = [
        f"{output.paint(sanitize(explanation.problem), 'strong')}{since_words(explanation.finding)}",
        *([f"  {output.paint(sanitize(explanation.answer), 'caution')}"] if explanation.answer else []),
        *(f"  {sanitize(fact)}" for fact in explanation.facts),
    ]
    for section in explanation.sections:
        lines.append(f"  {output.paint(sanitize(section.title), 'muted')}")
        lines += map(_clue_text, section.clues)
    return "".join(f"{line}\n" for line in lines)


def _clue_text(clue: Clue) -> str:
    count_text = f"{clue.count}× " if clue.count > 1 else ""
    node = f"{sanitize(clue.node)} " if clue.node else ""
    text = sanitize_multiline(clue.text).replace("\n", "\n" + 6 * " ")
    return f"    {clue.clock} {node}{count_text}{text}"


class SummaryReader:
    """Summarizes one run. Calls ``on_log_progress`` with the fraction and number of log lines read."""

    def __init__(
        self,
        client: TrainingClient,
        job: TrainingJob,
        settings: RunSettings = DEFAULT,
        *,
        on_log_progress: OnLogProgress = lambda _fraction, _count: None,
    ) -> None:
        self._client = client
        self._watcher = RunWatcher(client, job, settings, on_log_progress=on_log_progress)

    @property
    def job(self) -> TrainingJob:
        return self._watcher.job

    async def read(self) -> Document:
        """Return a summary of the run's current state. Raises RequestError."""
        return await self._summary(await self._read_current_run())

    async def follow(
        self, on_retry: Callable[[RequestError, float], object]
    ) -> AsyncGenerator[Document, None]:
        """Yield a summary, and another whenever the run's ``state_of`` changes, until the job ends.

        Retries during outages, after calling ``on_retry``. Raises RequestError if the server refuses.
        """
        clock, state = self._client.clock, None

        async def read_if_changed() -> Document | None:
            nonlocal state
            run = await self._read_current_run()
            if state == (newest := state_of(run)):
                return None
            summary = await self._summary(run)
            state = newest
            return summary

        while True:
            summary = await retrying(
                read_if_changed,
                LASTING,
                sleep=clock.sleep,
                may_repeat=lambda error: error.retryable,
                on_wait=on_retry,
            )
            if summary is not None:
                yield summary
            if self.job.is_finished:
                return
            # findings take minutes to appear, so polling more often is useless
            await clock.sleep(30.0)

    async def _read_current_run(self) -> RunSnapshot:
        """Read new status, log, metrics, checkpoints and cost, and return the judged run."""
        watcher = self._watcher
        await watcher.read_status()
        await gather_or_cancel(watcher.poll(watcher.log.read_new), watcher.read_price(), watcher.read_bill())
        await watcher.read_kept_losses()
        await watcher.check()
        await watcher.check_checkpoints()
        return watcher.snapshot

    async def _read_queue(self) -> str:
        """Return a waiting job's place in the queue; the API's queue context ends at the submission."""
        if self.job.current_status not in WAITING_STATUSES:
            return ""
        client = self._client
        try:
            jobs, capacity = await gather_or_cancel(
                client.jobs.search(statuses=sorted(RUNNABLE_STATUSES)), client.capacity.get()
            )
        except RequestError:
            return ""
        return queue_position(self.job, jobs, capacity, client.clock.now())

    async def _summary(self, run: RunSnapshot) -> Document:
        findings = explained_findings(run)[:MAX_EXPLAINED]
        explanations = [await read_explanation(self._client, run, finding) for finding in findings]
        return summarize(
            run,
            explanations,
            self._watcher.log.newest,
            gap_count=self._watcher.log.gap_count,
            unread=list(self._watcher.read_errors),
            queue=await self._read_queue(),
            command=self._client.remote.command_line,
        )
