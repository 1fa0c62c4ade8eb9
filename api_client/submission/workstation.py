"""Workstations: jobs that only provide SSH access, as the official CLI creates them.

The values are the same as in ``truss train workstation`` 0.18.36, verified against its recorded requests.
"""

from __future__ import annotations

from api_client.definitions import (
    Accelerator,
    AcceleratorSpec,
    AvailabilityModel,
    BasetenCheckpoint,
    CacheConfig,
    CheckpointingConfig,
    Compute,
    Image,
    InteractiveSession,
    InteractiveSessionProvider,
    InteractiveSessionTrigger,
    LoadCheckpointConfig,
    Runtime,
    TrainingJob,
    TrainingProject,
    offered_accelerators,
)
from api_client.errors import ConfigurationError
from api_client.ssh import NodeHost


def workstation_project(
    *,
    accelerator: str,
    gpu_count: int,
    node_count: int,
    project_name: str | None,
    image: str | None,
    saves_checkpoints: bool,
    checkpoint_path: str | None,
    checkpoint_volume_size_gib: int | None,
    checkpoint_from_job: str | None,
    spot: bool,
) -> TrainingProject:
    """Build the project and job of a workstation; every node only sleeps.

    ``accelerator`` is case-insensitive; ``gpu_count`` is per node. ``project_name`` defaults to
    ``workstation-<accelerator>``, ``image`` to CUDA's development image for the accelerator.
    ``checkpoint_from_job`` is the id of a job whose latest checkpoint is loaded. Raises ConfigurationError
    for unknown GPUs.
    """
    gpu_type = _accelerator(accelerator)
    cuda = "13.0.3" if gpu_type in (Accelerator.B300, Accelerator.GB300) else "12.9.1"
    load_config = None
    if checkpoint_from_job:
        reference = BasetenCheckpoint.from_latest_checkpoint(job_id=checkpoint_from_job)
        load_config = LoadCheckpointConfig(enabled=True, checkpoints=[reference])
    job = TrainingJob(
        image=Image(base_image=image or f"nvidia/cuda:{cuda}-devel-ubuntu24.04"),
        compute=Compute(
            node_count=node_count,
            accelerator=AcceleratorSpec(accelerator=gpu_type, count=gpu_count),
            availability_model=AvailabilityModel.SPOT if spot else AvailabilityModel.DEDICATED,
        ),
        runtime=Runtime(
            start_commands=["sleep infinity"],  # the job runs until it is stopped
            # Without affinity the job starts wherever a GPU is free, possibly without the existing cache.
            cache_config=CacheConfig(enabled=True, require_cache_affinity=False),
            checkpointing_config=CheckpointingConfig(
                enabled=saves_checkpoints,
                checkpoint_path=checkpoint_path,
                volume_size_gib=checkpoint_volume_size_gib,
            ),
            load_checkpoint_config=load_config,
        ),
        interactive_session=InteractiveSession(
            trigger=InteractiveSessionTrigger.ON_STARTUP, session_provider=InteractiveSessionProvider.SSH
        ),
    )
    return TrainingProject(name=project_name or f"workstation-{gpu_type.value}", job=job)


def workstation_hosts(job_id: str, node_count: int, *, remote_name: str) -> tuple[NodeHost, ...]:
    """Return the nodes' SSH hosts by rank.

    Their names include the remote unless it is ``baseten``, the official CLI's default, or not valid in a
    host name.
    """
    first_host = NodeHost(job_id, 0, remote_name)
    included_remote = remote_name if remote_name != "baseten" and first_host.is_valid else None
    return tuple(NodeHost(job_id, rank, included_remote) for rank in range(node_count))


def _accelerator(name: str) -> Accelerator:
    choices = offered_accelerators()
    if name.upper() not in choices:
        raise ConfigurationError(f"unknown accelerator {name!r}; known: {', '.join(choices)}")
    return Accelerator(name.upper())
