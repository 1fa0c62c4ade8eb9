"""The local runner: one process group per node, on this machine, unsandboxed, as the current user."""
