"""Really runs jobs: one process group a node, on this machine, unsandboxed, as the user."""

from api_client.emulator.runner.local_backend import LocalBackend

__all__ = ["LocalBackend"]
