"""A deployment that leaves everything to be asked."""

from truss_train import DeployCheckpointsConfig

config = DeployCheckpointsConfig()
