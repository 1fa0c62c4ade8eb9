"""The exit codes of every command: a published contract, printed by ``bt-tui --help``."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the exit code of a command tells."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    JOB_FAILED = 3
    JOB_STOPPED = 4
    DEPLOY_FAILED = 5
    AUTH = 6
    NOT_FOUND = 7
    UNREACHABLE = 8
    TIMED_OUT = 9
    WARNING = 10
    CRITICAL = 11
    INTERRUPTED = 130


MEANINGS: dict[ExitCode, str] = {
    ExitCode.OK: "fine; the followed job completed",
    ExitCode.UNEXPECTED: "something else went wrong",
    ExitCode.USAGE: "wrong usage or settings; errors found before submitting; what --readonly forbids",
    ExitCode.JOB_FAILED: "the followed job failed (or ended in a way unknown to this version)",
    ExitCode.JOB_STOPPED: "the followed job was stopped or preempted",
    ExitCode.DEPLOY_FAILED: "the followed job, or the followed deployment of a model, could not be deployed",
    ExitCode.AUTH: "no key, or the key was refused",
    ExitCode.NOT_FOUND: "no such job, project, node, cache, checkpoint or file",
    ExitCode.UNREACHABLE: "the server cannot be reached, or keeps failing",
    ExitCode.TIMED_OUT: "the timeout came before what was waited for",
    ExitCode.WARNING: "health: something about a job wants a look",
    ExitCode.CRITICAL: "health: a job burns money for nothing",
    ExitCode.INTERRUPTED: "interrupted (ctrl-c)",
}


def outcome_exit_code(status: str) -> ExitCode:
    """The exit code of following a job that ended with ``status``.

    An unknown status counts as ended (API facts, 1) and, since nobody can tell that all went well, as
    a failure.
    """
    from api_client.models.status import JobStatus

    known = {
        JobStatus.COMPLETED: ExitCode.OK,
        JobStatus.FAILED: ExitCode.JOB_FAILED,
        JobStatus.DEPLOY_FAILED: ExitCode.DEPLOY_FAILED,
        JobStatus.STOPPED: ExitCode.JOB_STOPPED,
        JobStatus.PREEMPTED: ExitCode.JOB_STOPPED,
    }
    return {str(key): value for key, value in known.items()}.get(status, ExitCode.JOB_FAILED)


def is_known_outcome(status: str) -> bool:
    """Whether ``status`` is one of the documented ends of a job."""
    from api_client.models.status import JobStatus, is_finished

    return is_finished(status) and status in set(JobStatus)
