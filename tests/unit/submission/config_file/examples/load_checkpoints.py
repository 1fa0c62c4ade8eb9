"""Every kind of checkpoint to load."""

from truss_train import (
    BasetenCheckpoint,
    Image,
    LoadCheckpointConfig,
    LoopsCheckpoint,
    Runtime,
    TrainingJob,
    TrainingProject,
)

project = TrainingProject(
    name="resume",
    job=TrainingJob(
        image=Image(base_image="python:3.12-slim"),
        runtime=Runtime(
            load_checkpoint_config=LoadCheckpointConfig(
                enabled=True,
                checkpoints=[
                    BasetenCheckpoint.from_latest_checkpoint(project_name="my-project"),
                    BasetenCheckpoint.from_latest_checkpoint(job_id="lqz4pw4"),
                    BasetenCheckpoint.from_latest_checkpoint("my-project", "lqz4pw4"),
                    BasetenCheckpoint.from_named_checkpoint(checkpoint_name="checkpoint-24", job_id="abc123"),
                    LoopsCheckpoint.from_checkpoint(run_id="r1", checkpoint_name="step-100"),
                    LoopsCheckpoint.from_checkpoint("r1", "step-200", target="sampler"),
                ],
            )
        ),
    ),
)
