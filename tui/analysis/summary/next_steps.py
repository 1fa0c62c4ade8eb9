"""The commands that make sense next for a run, each with what it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from api_client.models import WAITING_STATUSES, JobStatus
from tui.analysis.checkpoints.facts import CheckpointFacts, newest_sound
from tui.analysis.run.snapshot import RunSnapshot
from tui.text.sanitize import sanitize

_FAILED = (JobStatus.FAILED, JobStatus.DEPLOY_FAILED)


class Command(Protocol):
    """Returns a command line that acts on the same server; empty if none does (``Remote.command_line``)."""

    def __call__(self, *arguments: str, changes: bool = False) -> str: ...


Suggestion = tuple[tuple[str, ...], str, bool]


def next_steps(
    run: RunSnapshot, checkpoints: Sequence[CheckpointFacts], command: Command
) -> list[dict[str, str | bool]]:
    """Return commands, the most useful first, with their purpose, and ``changes`` if they change something.

    Commands that would contain an unusual name, which a shell may misread, are left out.
    """
    steps: list[dict[str, str | bool]] = []
    named = [fact for fact in checkpoints if not fact.name.startswith("-")]  # else it would be an option
    for arguments, purpose, changes in _suggestions(run, named):
        line = command(*arguments, changes=changes) if all(map(_is_usable, arguments)) else ""
        if line:
            is_change = {"changes": True} if changes else {}
            steps.append({"command": line, "purpose": purpose, **is_change})
    return steps


def _is_usable(name: str) -> bool:
    return 0 < len(name) <= 80 and name.isascii() and sanitize(name) == name


def _suggestions(run: RunSnapshot, checkpoints: Sequence[CheckpointFacts]) -> Iterator[Suggestion]:
    job = run.job.id
    if run.job.current_status in WAITING_STATUSES:
        yield ("capacity",), "who has the GPUs", False
        yield ("wait", job, "--until", "running"), "wait until it runs", False
        if not run.job.is_spot:
            spot = ("update", job, "--availability-model", "spot")
            yield spot, "change it to wait for spot capacity, which can be reclaimed", True
    elif run.job.is_finished:
        yield from _after_the_end(run, checkpoints)
    else:
        yield from _while_running(run, checkpoints)


def _while_running(run: RunSnapshot, checkpoints: Sequence[CheckpointFacts]) -> Iterator[Suggestion]:
    job = run.job.id
    bad = [finding for finding in run.findings if finding.severity != "info"]
    if bad:
        yield ("why", job), "all evidence of the findings", False
    node = next((finding.node for finding in bad if finding.node), None)
    if node is not None and not node.startswith("-"):
        lines = ("logs", job, "--node", node, "--min-level", "warning", "--since", "1h")
        yield lines, "warnings of that node", False
    useless = [f for f in bad if f.severity == "critical" or (f.kind.wastes_all and f.kind.saves_no_more)]
    if useless:
        is_broken = any(finding.kind.loss for finding in useless)
        lost = "nothing since its loss broke can be used" if is_broken else "what is not saved is lost"
        yield ("stop", job), f"stop it now: {lost}", True
        yield from _resuming(run, checkpoints)
    elif bad and checkpoints and not any(finding.kind.saves_no_more for finding in run.findings):
        yield ("stop", job, "--after-checkpoint"), "stop it once its next checkpoint is stored", True
    yield ("summary", job, "--follow"), "report what changes until it ends", False


def _after_the_end(run: RunSnapshot, checkpoints: Sequence[CheckpointFacts]) -> Iterator[Suggestion]:
    job, status = run.job.id, run.job.current_status
    if status in _FAILED:
        yield ("why", job), "all evidence of the failure", False
        yield ("logs", job, "--min-level", "error"), "all errors", False
        yield ("download", job), "its code, to correct and push again", False
    best = next((fact for fact in checkpoints if fact.is_best), newest_sound(checkpoints))
    if status == JobStatus.COMPLETED and best is not None:
        yield ("checkpoints", "show", best.name, "--job-id", job), "what is in the checkpoint", False
        deploy = ("deploy_checkpoints", "--job-id", job, "--checkpoint", best.name)
        yield deploy, "deploy it; a terminal asks for what is missing, such as the GPU", True
    if status != JobStatus.COMPLETED:
        yield from _resuming(run, checkpoints)
        if status not in _FAILED:
            yield ("recreate", job), "submit it again, from the beginning", True


def _resuming(run: RunSnapshot, checkpoints: Sequence[CheckpointFacts]) -> Iterator[Suggestion]:
    newest = newest_sound(checkpoints)
    if newest is not None:
        if run.job.is_finished:
            resume = ("resume", run.job.id, "--from", newest.name, "--dry-run", "--yes")
            yield resume, "what continuing from it sends; runs the job's config.py on this machine", False
        snippet = ("checkpoints", "snippet", newest.name, "--job-id", run.job.id)
        yield snippet, "code that resumes training from it", False
