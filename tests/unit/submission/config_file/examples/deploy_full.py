"""A deployment of a whole model, with an environment."""

from truss_train import definitions as d

config = d.DeployCheckpointsConfig(
    checkpoint_details=d.CheckpointList(
        download_folder="/models",
        checkpoints=[
            d.FullCheckpoint(training_job_id="gvpql31", checkpoint_name="."),
            d.WhisperCheckpoint(training_job_id="gvpql31", checkpoint_name="checkpoint-2"),
        ],
    ),
    runtime=d.DeployCheckpointsRuntime(
        environment_variables={"HF_TOKEN": d.SecretReference(name="hf"), "A": "b"}
    ),
)
