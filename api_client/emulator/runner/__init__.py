"""The local runner: one process group per node, on this machine, unsandboxed, as the current user."""

from api_client.emulator.runner.backend import LocalBackend

__all__ = ["LocalBackend"]
