"""The snippets of the pages on the basics."""

from truss_train import definitions

training_runtime = definitions.Runtime(
    start_commands=["python train.py"],
    environment_variables={"HF_TOKEN": definitions.SecretReference(name="hf_access_token")},
    cache_config=definitions.CacheConfig(enabled=True),
    checkpointing_config=definitions.CheckpointingConfig(enabled=True),
)

compute = definitions.Compute(
    node_count=2,  # Use 2 nodes for multinode training
)

project = definitions.TrainingProject(
    name="basics",
    job=definitions.TrainingJob(
        image=definitions.Image(base_image="python:3.12-slim"), compute=compute, runtime=training_runtime
    ),
)
