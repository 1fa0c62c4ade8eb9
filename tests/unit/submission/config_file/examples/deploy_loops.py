"""A deployment of Loops checkpoints."""

from truss_train import CheckpointList, DeployCheckpointsConfig

config = DeployCheckpointsConfig(checkpoint_details=CheckpointList(loops_checkpoint_ids=["l1", "l2"]))
