"""Run one job: prepare its folders, start a process per node, and report statuses and outcome."""

from __future__ import annotations

import asyncio
import logging
import shlex
import shutil
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from api_client.archives import BadArchive, Unpacker
from api_client.definitions.job_request import Artifact, JobRequest
from api_client.emulator.runner.checkpoints import CheckpointStore
from api_client.emulator.runner.environment import (
    inherited,
    kill_orphans,
    make_mounts,
    node_environment,
    resolved,
)
from api_client.emulator.runner.folders import (
    CannotStart,
    DataFolders,
    JobFolders,
    NodeFolders,
)
from api_client.emulator.runner.log_writer import LogWriter
from api_client.emulator.runner.node_process import NodeProcess
from api_client.emulator.runner.sampling import Gpus, SampledNode, Sampling, share_of
from api_client.emulator.runner.supervisor import SIGNAL_EXIT_BASE
from api_client.emulator.runner.weights import WeightsMirror, parse_weights, secret_name
from api_client.emulator.store.blobs import BlobStore
from api_client.emulator.store.stores import Stores
from api_client.files import write_private
from api_client.models import JobStatus, ProjectSummary, TrainingJob
from api_client.words import counted


def unpack_artifacts(artifacts: tuple[Artifact, ...], node: NodeFolders, blobs: BlobStore) -> None:
    """Unpack the uploaded archives into a node's working directory; raise ``CannotStart`` on failure.

    An archive is a tar file, gzipped or not.
    """
    name = ""
    try:
        with Unpacker(node.workspace) as unpacker:
            for artifact in artifacts:
                name = f"{artifact.bucket}/{artifact.key}"
                archive = blobs.path(artifact.bucket, artifact.key)
                if archive is None:
                    raise CannotStart(f"the artifact {name} was never uploaded")
                unpacker.add(archive)
    except (BadArchive, OSError) as error:
        raise CannotStart(f"can't unpack the artifact {name}: {error}") from error


def write_script(folders: JobFolders, commands: tuple[str, ...]) -> None:
    """Write the start commands as a single script that exits at the first failing command.

    All commands run in the same shell, so that a ``cd`` or an ``export`` affects later ones. Each goes
    through ``eval``, so that an incomplete line (a comment, an open quote) cannot swallow the next command.
    """
    lines = []
    for command in commands:
        lines.append(f"eval {shlex.quote(command)}")
        lines.append('bt_status=$?; if [ "$bt_status" -ne 0 ]; then exit "$bt_status"; fi')
    write_private(folders.script, ("\n".join(lines) + "\n").encode(errors="surrogateescape"))


def shell() -> str:
    """Return the shell that runs start commands: bash if available, otherwise sh.

    It is not a login shell: /etc/profile resets PATH on many systems, which would hide the Python
    environment that the emulator was started from.
    """
    found = shutil.which("bash") or shutil.which("sh")
    if found is None:
        raise CannotStart("neither bash nor sh found on this machine")
    return found


FAILURE_GRACE_S = 2.0
"""Time the other nodes get after one has failed, to log their own errors."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JobOutcome:
    status: JobStatus
    error_message: str | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class RunServices:
    """The backend's services that every run needs."""

    logs: LogWriter
    sampling: Sampling
    gpus: Gpus
    stores: Stores
    environ: Mapping[str, str]
    stop_grace_s: float
    max_nodes: int
    weights: WeightsMirror
    checkpoints: CheckpointStore
    folders: DataFolders


class JobRun:
    """Runs a job once.

    ``check`` raises ``CannotStart`` if the job can never run here. ``on_status`` is called for DEPLOYING
    and RUNNING.
    """

    def __init__(
        self,
        job: TrainingJob,
        spec: JobRequest,
        services: RunServices,
        *,
        on_status: Callable[[JobStatus], None],
        check: Callable[[], None],
    ) -> None:
        self._job = job
        self._job_id = job.id
        self._project = job.training_project or ProjectSummary(id=job.training_project_id)
        self._spec = spec
        self._services = services
        self._folders = services.folders.job(job.id)
        self._caches = services.folders.caches(self._project.id) if spec.caching else None
        self._on_status = on_status
        self._check = check
        self._fetch: asyncio.Task[None] | None = None
        self._nodes: list[NodeProcess] = []
        self._requested_end: JobOutcome | None = None

    def request_end(self, outcome: JobOutcome, *, kill: bool = False) -> None:
        """End the run with that outcome: gracefully, or immediately with ``kill``."""
        self._requested_end = self._requested_end or outcome
        if self._fetch is not None:
            self._fetch.cancel()
        for node in self._nodes:
            if kill:
                node.kill()
            else:
                node.stop()

    async def run(self) -> JobOutcome:
        """Run to the end. Every failure becomes an outcome, and no process is left behind."""
        try:
            outcome = await self._run()
        except CannotStart as error:
            self._log(f"[emulator] ERROR cannot start: {error}")
            outcome = JobOutcome(JobStatus.DEPLOY_FAILED, str(error))
        except Exception as error:  # our own error must not leave the job RUNNING forever
            _logger.exception("job %s was lost to a fault of the emulator", self._job_id)
            outcome = JobOutcome(JobStatus.FAILED, f"the emulator failed: {error!r}")
        finally:
            for node in self._nodes:
                node.kill()
            self._services.sampling.unwatch(self._job_id)
            await asyncio.to_thread(self._clean_up)
        return self._requested_end or outcome

    async def _run(self) -> JobOutcome:
        self._check()
        if self._spec.gpu_count:
            await asyncio.to_thread(self._services.gpus.names)  # the first call may be slow
        self._log_job_placement()
        for line in await asyncio.to_thread(self._make_folders):
            self._log(line)
        await self._deliver_weights()
        if self._requested_end:
            return self._requested_end
        self._on_status(JobStatus.DEPLOYING)
        argv, environments = await asyncio.to_thread(self._prepare)
        for rank, environment in enumerate(environments):
            if self._requested_end:
                return self._requested_end
            await self._start_node(rank, argv, environment)
        self._on_status(JobStatus.RUNNING)
        return await self._watch()

    def _make_folders(self) -> list[str]:
        """Create folders and mounts; return log lines about them. Runs in a thread."""
        spec, folders = self._spec, self._folders
        try:
            folders.make(spec)
            if self._caches is not None:
                self._caches.make()
            lines = [make_mounts(spec, folders, self._caches, rank) for rank in range(spec.node_count)]
        except (OSError, ValueError) as error:
            raise CannotStart(f"can't create the job's folders: {error}") from error
        return lines[0]

    async def _deliver_weights(self) -> None:
        """Deliver the weights one source at a time, before DEPLOYING."""
        for index, weights in enumerate(parse_weights(self._spec.weights)):
            name = secret_name(weights)
            secret = self._secret(name, f"weights {weights.source}") if name else None
            if self._requested_end:
                return
            destination = self._folders.weights(index)
            self._fetch = asyncio.create_task(
                self._services.weights.deliver(weights, destination, secret, self._log)
            )
            await asyncio.wait([self._fetch])
            if not self._fetch.cancelled():
                self._fetch.result()

    def _prepare(self) -> tuple[list[str], list[dict[str, str]]]:
        """Do all other work on disk; return the command and each node's environment. Runs in a thread."""
        spec, services = self._spec, self._services
        user_variables = resolved(spec.environment, self._secret)
        command = [shell(), str(self._folders.script)]
        try:
            write_script(self._folders, spec.start_commands)
        except (OSError, ValueError) as error:
            raise CannotStart(f"can't write the start commands: {error}") from error
        for rank in range(spec.node_count):
            unpack_artifacts(spec.artifacts, self._folders.node(rank), services.stores.blobs)
        if spec.load_from is not None:
            services.checkpoints.load(self._job, spec.load_from)
        base = inherited(services.environ)
        environments = [
            node_environment(
                spec,
                job_id=self._job_id,
                project=self._project,
                rank=rank,
                folders=self._folders,
                caches=self._caches,
                base=base,
                user_variables=user_variables,
                visible_gpus=",".join(self._gpu_names(rank)) or None,
            )
            for rank in range(spec.node_count)
        ]
        return command, environments

    async def _start_node(self, rank: int, argv: list[str], environment: Mapping[str, str]) -> None:
        node = NodeProcess(lambda lines: self._take(node, rank, lines))
        try:
            await node.start(
                argv,
                cwd=self._folders.node(rank).workspace,
                environment=environment,
                grace_s=self._services.stop_grace_s,
            )
        except (OSError, ValueError) as error:
            raise CannotStart(f"can't start node-{rank}: {error}") from error
        self._nodes.append(node)
        self._services.sampling.watch(
            SampledNode(
                self._job_id,
                rank,
                node.pid,
                folder=self._folders.node(rank).root,
                cache=self._caches.base if self._caches is not None and rank == 0 else None,
                gpu_names=self._gpu_names(rank),
            )
        )
        if self._requested_end:
            node.kill()  # the request arrived while this node was starting

    async def _watch(self) -> JobOutcome:
        waiting: dict[asyncio.Task[int], int] = {
            asyncio.create_task(node.wait(), name=f"{self._job_id} node-{rank}"): rank
            for rank, node in enumerate(self._nodes)
        }
        failed: JobOutcome | None = None
        timeout_s: float | None = None
        while waiting:
            done, _ = await asyncio.wait(waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(done, key=lambda task: waiting[task]):
                rank, code = waiting.pop(task), task.result()
                if code != 0 and failed is None:
                    failed = JobOutcome(JobStatus.FAILED, f"node-{rank}: {describe_exit(code)}", code)
                    timeout_s = FAILURE_GRACE_S
                    if self._requested_end is None:
                        self._log(f"[emulator] ERROR node-{rank}: {describe_exit(code)}", rank)
            if not done:
                timeout_s = None
                for node in self._nodes:
                    node.stop()
        return self._requested_end or failed or JobOutcome(JobStatus.COMPLETED, exit_code=0)

    def _secret(self, name: str, wanted_by: str) -> str:
        value = self._services.stores.secret_of(self._project.id, name)
        if value is None:
            raise CannotStart(f"{wanted_by} refers to the secret {name!r}, which does not exist")
        return value

    def _take(self, node: NodeProcess, rank: int, lines: list[str]) -> bool:
        self._services.logs.add(self._job_id, rank, lines)
        if self._services.logs.is_full:
            self._services.logs.when_drained(node.resume_reading)
            return False
        return True

    def _gpu_names(self, rank: int) -> list[str]:
        spec = self._spec
        names = self._services.gpus.names() if spec.gpu_count else []
        return share_of(names, gpus_per_node=spec.gpu_count, node_count=spec.node_count, rank=rank)

    def _log_job_placement(self) -> None:
        spec = self._spec
        nodes = counted(spec.node_count, "node as a process", "nodes as processes")
        self._log(f"[emulator] INFO running {nodes} of this machine, unsandboxed, in {self._folders.root}")
        if spec.gpu_count:
            self._log(
                f"[emulator] INFO {spec.gpu_count} × {spec.gpu_type} a node declared,"
                f" {counted(len(self._services.gpus.names()), 'GPU')} found on this machine"
            )

    def _log(self, message: str, rank: int = 0) -> None:
        self._services.logs.add(self._job_id, rank, [message])

    def _clean_up(self) -> None:
        """Kill escaped processes and delete temporary data. Runs in a thread."""
        kill_orphans(self._folders.root)
        self._folders.wipe()


def describe_exit(code: int) -> str:
    """Describe an exit code, as in ``exit code 3``; for 128 + N add the signal's name."""
    try:
        name = signal.Signals(code - SIGNAL_EXIT_BASE).name
    except ValueError:
        return f"exit code {code}"
    return f"exit code {code} ({name})"
