"""Run a job in a thread: prepare its folders, start a process per node, report its statuses and outcome."""

from __future__ import annotations

import json
import logging
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from threading import Event, Thread
from typing import Any

from pydantic import ValidationError

from api_client.archives import BadArchive, Unpacker
from api_client.clock import Clock
from api_client.definitions.job_request import JobRequest
from api_client.definitions.weights import WeightsAuthMethod, WeightsSource
from api_client.emulator.responses import first_problem
from api_client.emulator.runner import weights as weights_program
from api_client.emulator.runner.checkpoints import CheckpointStore
from api_client.emulator.runner.environment import (
    MOUNTS,
    WORKSPACE,
    CannotStart,
    DataFolders,
    Mount,
    kill_orphans,
    link_mounts,
    mounts_of,
    node_environment,
)
from api_client.emulator.runner.processes import JobLog, SupervisedProcess, output_of
from api_client.emulator.runner.sampling import Gpus, SampledNode, gpus_of_node, sample_until
from api_client.emulator.runner.supervisor import SIGNAL_EXIT_BASE
from api_client.emulator.runner.weights import SCHEMES
from api_client.emulator.store.stores import Stores
from api_client.files import write_private
from api_client.models import JobStatus, TrainingJob
from api_client.words import counted

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A status that a job enters, with its message and exit code."""

    status: JobStatus
    message: str | None = None
    exit_code: int | None = None


class EndRequested(Exception):
    """The end of the job was requested before it had started."""


@dataclass(frozen=True, slots=True)
class RunServices:
    """Services and settings that all runs share."""

    stores: Stores
    clock: Clock
    gpus: Gpus
    environ: Mapping[str, str]
    stop_grace_s: float
    max_nodes: int
    checkpoints: CheckpointStore
    folders: DataFolders


class JobRun(Thread):
    """Runs a job once.

    ``on_status`` is called with each status that the job enters. The final status comes after the last log
    line.
    """

    def __init__(
        self, job: TrainingJob, spec: JobRequest, services: RunServices, on_status: Callable[[Outcome], None]
    ) -> None:
        super().__init__(name=f"job {job.id}", daemon=True)
        self._job = job
        self._spec = spec
        self._services = services
        self._folders = services.folders.job(job.id)
        self._on_status = on_status
        self._job_log = JobLog(services.stores.logs, services.clock, job.id)
        self._processes: list[SupervisedProcess] = []
        self._requested_end: Outcome | None = None
        self._stop_sampling = Event()

    def request_end(self, outcome: Outcome, *, kill: bool = False) -> None:
        """End the run with that outcome: gracefully, or immediately with ``kill``."""
        self._requested_end = self._requested_end or outcome
        if kill:
            self._job_log.drop_failed_writes()
        for process in tuple(self._processes):
            process.end(kill=kill)

    def run(self) -> None:
        """Run the job to its end; report a failure as its outcome, and leave no process running."""
        try:
            outcome = self._run()
        except EndRequested:
            outcome = Outcome(JobStatus.STOPPED)
        except CannotStart as error:
            self._log(f"[emulator] ERROR cannot start: {error}")
            outcome = Outcome(JobStatus.DEPLOY_FAILED, str(error))
        except Exception as error:  # an error of the emulator must not leave the job RUNNING forever
            _logger.exception("an error in the emulator ended job %s", self._job.id)
            outcome = Outcome(JobStatus.FAILED, f"the emulator failed: {error!r}")
        self._stop_sampling.set()
        for process in self._processes:
            process.close()
        kill_orphans(self._folders.root)
        self._folders.wipe()
        self._on_status(self._requested_end or outcome)

    def _enter_status(self, status: JobStatus) -> None:
        if self._requested_end:
            raise EndRequested
        self._on_status(Outcome(status))

    def _run(self) -> Outcome:
        spec, folders = self._spec, self._folders
        check_request(spec, self._services.max_nodes)
        nodes = counted(spec.node_count, "node as a process", "nodes as processes")
        self._log(f"[emulator] INFO running {nodes} of this machine, unsandboxed, in {folders.root}")
        if spec.gpu_count:
            local_gpus = counted(len(self._services.gpus.names()), "GPU")
            request_text = f"the job requests {spec.gpu_count} × {spec.gpu_type} per node"
            self._log(f"[emulator] INFO {request_text}, {local_gpus} found on this machine")
        mounts = self._make_folders()
        self._deliver_weights()
        self._enter_status(JobStatus.DEPLOYING)
        command, environments = self._prepare_start(mounts)
        sampled_nodes = []
        for rank, environment in enumerate(environments):
            volumes = {"ephemeral_storage": folders.node(rank)}
            if spec.caching and rank == 0:  # nodes share the cache
                volumes["cache"] = self._services.folders.cache(self._job.project_id)
            workspace = folders.node(rank, WORKSPACE)
            process = self._start(command, workspace, environment, self._services.stop_grace_s)
            sampled_nodes.append(SampledNode(self._job.id, rank, process.pid, volumes, self._gpu_names(rank)))
        self._enter_status(JobStatus.RUNNING)
        metrics, clock = self._services.stores.metrics, self._services.clock
        Thread(
            target=sample_until,
            args=(self._stop_sampling, sampled_nodes, metrics, clock, self._services.gpus),
            daemon=True,
        ).start()
        return self._store_output()

    def _make_folders(self) -> list[list[Mount]]:
        """Create folders and links; return each node's mounts."""
        spec, folders = self._spec, self._folders
        weight_mounts = [
            Mount(weights.mount_location, folders.weights / str(index), f"weights {weights.source}")
            for index, weights in enumerate(parse_weights(spec.weights))
        ]
        cache = self._services.folders.cache(self._job.project_id)
        mounts = [[*weight_mounts, *mounts_of(spec, folders, cache, rank)] for rank in range(spec.node_count)]
        try:
            folders.make(spec)
            if spec.caching:
                self._services.folders.make_cache(self._job.project_id)
            mount_lines = [
                list(link_mounts(folders.node(rank, MOUNTS), node_mounts))
                for rank, node_mounts in enumerate(mounts)
            ]
        except (OSError, ValueError) as error:
            raise CannotStart(f"can't create the job's folders: {error}") from error
        self._job_log.write(0, mount_lines[0])
        return mounts

    def _deliver_weights(self) -> None:
        """Fetch the weights into the job's folder, one source at a time."""
        services, mirror = self._services, self._services.folders.weights
        # No variable of the environment may give access to an account of the user.
        inherited = {
            secret_name: value
            for secret_name, value in services.environ.items()
            if not secret_name.upper().startswith(("AWS_", "GOOGLE_"))
        } | {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
        for index, weights in enumerate(parse_weights(self._spec.weights)):
            self._log(f"[emulator] INFO fetching weights {weights.source}")
            mirror.mkdir(parents=True, exist_ok=True)
            secret_name = (weights.auth and weights.auth.auth_secret_name) or weights.auth_secret_name
            fetch_request = weights_program.FetchRequest(
                scheme=weights.scheme,
                location=weights.source.partition("://")[2],
                allow_patterns=weights.allow_patterns,
                ignore_patterns=weights.ignore_patterns,
                mirror=str(mirror),
                destination=str(self._folders.weights / str(index)),
                endpoint=services.environ.get("AWS_ENDPOINT_URL", ""),
            )
            secret = self._secret_value(secret_name, f"weights {weights.source}") if secret_name else ""
            command = [sys.executable, "-P", weights_program.__file__, json.dumps(asdict(fetch_request))]
            variables = {**inherited, weights_program.SECRET_VARIABLE: secret}
            process = self._start(command, mirror, variables, grace_s=0)
            summary = ""
            for _, lines, code in output_of([process]):
                summary = lines[-1] if lines else summary
                if code and not self._requested_end:
                    raise CannotStart(f"can't fetch the weights {weights.source}: {summary}")
            self._log(f"[emulator] INFO delivered {summary}")
            self._processes.remove(process)
            process.close()

    def _prepare_start(self, mounts: Sequence[Sequence[Mount]]) -> tuple[list[str], list[dict[str, str]]]:
        """Write the start script, unpack archives and copy checkpoints; return command and environments."""
        spec, folders = self._spec, self._folders
        environments = [
            node_environment(
                spec,
                self._job,
                folders,
                rank,
                node_mounts,
                inherited=self._services.environ,
                secret_by_name=self._secret_value,
                visible_gpus=",".join(self._gpu_names(rank)) or None,
            )
            for rank, node_mounts in enumerate(mounts)
        ]
        # Not a login shell: /etc/profile resets PATH on many systems, which would hide the Python environment
        # that the emulator was started from.
        shell = shutil.which("bash") or shutil.which("sh")
        if shell is None:
            raise CannotStart("neither bash nor sh found on this machine")
        try:
            write_private(folders.script, _start_script(spec.start_commands).encode())
        except OSError as error:
            raise CannotStart(f"can't write the start commands: {error}") from error
        for rank in range(spec.node_count):
            self._unpack(folders.node(rank, WORKSPACE))
        if spec.load_from is not None:
            self._services.checkpoints.load(self._job, spec.load_from)
        return [shell, str(folders.script)], environments

    def _unpack(self, folder: Path) -> None:
        """Unpack the archives with a single unpacker, so that no archive writes through another's symlink."""
        name = ""
        try:
            with Unpacker(folder) as unpacker:
                for artifact in self._spec.artifacts:
                    name = f"{artifact.bucket}/{artifact.key}"
                    archive = self._services.stores.blobs.path(artifact.bucket, artifact.key)
                    if archive is None:
                        raise CannotStart(f"the artifact {name} was never uploaded")
                    unpacker.add(archive)
        except (BadArchive, OSError) as error:
            raise CannotStart(f"can't unpack the artifact {name}: {error}") from error

    def _start(
        self, command: list[str], folder: Path, environment: Mapping[str, str], grace_s: float
    ) -> SupervisedProcess:
        if self._requested_end:
            raise EndRequested
        try:
            process = SupervisedProcess(command, cwd=folder, environment=environment, grace_s=grace_s)
        except (OSError, ValueError) as error:
            raise CannotStart(f"can't start a process: {error}") from error
        self._processes.append(process)
        if self._requested_end:
            process.end(kill=True)  # the request arrived while it was starting
        return process

    def _store_output(self) -> Outcome:
        """Store the output of all nodes as log lines; return the outcome once all nodes have ended."""
        outcome, stop_others_s = Outcome(JobStatus.COMPLETED, exit_code=0), inf
        for rank, lines, code in output_of(self._processes):
            self._job_log.write(rank, lines)
            if code and outcome.exit_code == 0:
                outcome = Outcome(JobStatus.FAILED, f"node-{rank}: {describe_exit(code)}", code)
                stop_others_s = time.monotonic() + 2.0  # time for the other nodes to log their errors
                if self._requested_end is None:
                    self._log(f"[emulator] ERROR {outcome.message}", rank)
            if time.monotonic() > stop_others_s:
                stop_others_s = inf
                for process in self._processes:
                    process.end()
        return outcome

    def _secret_value(self, name: str, reference: str) -> str:
        stores = self._services.stores
        value = stores.secrets.value(stores.team_of(self._job.project_id), name)
        if value is None:
            raise CannotStart(f"{reference} refers to the secret {name!r}, which does not exist")
        return value

    def _gpu_names(self, rank: int) -> list[str]:
        spec = self._spec
        names = self._services.gpus.names() if spec.gpu_count else []
        return gpus_of_node(names, gpus_per_node=spec.gpu_count, node_count=spec.node_count, rank=rank)

    def _log(self, message: str, rank: int = 0) -> None:
        self._job_log.write(rank, [message])


def _start_script(commands: Sequence[str]) -> str:
    """Return the start commands as a single script that exits at the first failing command.

    All commands run in the same shell, so that a ``cd`` or an ``export`` affects later ones. Each goes
    through ``eval``, so that an incomplete line (a comment, an open quote) cannot swallow the next command.
    """
    exit_if_failed = 'bt_status=$?; if [ "$bt_status" -ne 0 ]; then exit "$bt_status"; fi'
    return "".join(f"eval {shlex.quote(command)}\n{exit_if_failed}\n" for command in commands)


def describe_exit(code: int) -> str:
    """Describe an exit code, as in ``exit code 3``; for 128 + N add the signal's name."""
    try:
        name = signal.Signals(code - SIGNAL_EXIT_BASE).name
    except ValueError:
        return f"exit code {code}"
    return f"exit code {code} ({name})"


def check_request(spec: JobRequest, max_nodes: int) -> None:
    """Raise ``CannotStart`` if the emulator can never run the job."""
    if not any(command.strip() for command in spec.start_commands):
        raise CannotStart("runtime.start_commands is empty: nothing to run")
    if not 1 <= spec.node_count <= max_nodes:
        limit = counted(max_nodes, "node")
        raise CannotStart(f"compute.node_count is {spec.node_count}; this emulator runs at most {limit}")
    parse_weights(spec.weights)
    for source in spec.load_from or ():
        if source.is_loops:
            raise CannotStart("load_checkpoint_config: there are no Loops checkpoints on this machine")
        if source.is_nameless:
            raise CannotStart("load_checkpoint_config: checkpoint_name is required for a named checkpoint")


def parse_weights(items: Sequence[Any]) -> list[WeightsSource]:
    """Parse all entries; raise ``CannotStart`` that names the first entry the emulator cannot deliver."""
    return [_parse_source(item, f"weights[{index}]") for index, item in enumerate(items)]


def _parse_source(item: Any, field: str) -> WeightsSource:
    try:
        weights = WeightsSource.model_validate(item)
    except ValidationError as error:
        raise CannotStart(first_problem(field, error)) from error
    if weights.scheme not in SCHEMES:
        supported = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise CannotStart(f"{field}.source {weights.source!r}: the emulator supports only {supported}")
    method = weights.auth.auth_method if weights.auth is not None else WeightsAuthMethod.CUSTOM_SECRET
    if method is not WeightsAuthMethod.CUSTOM_SECRET:
        raise CannotStart(
            f"{field}.auth: {method.value} works only on Baseten; use CUSTOM_SECRET in the emulator"
        )
    return weights
