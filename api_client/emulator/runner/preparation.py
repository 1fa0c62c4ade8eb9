"""Everything that happens before a job's first process: folders, archives, the start script."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

from api_client.archives import BadArchive, Unpacker
from api_client.emulator.private_files import remove_tree, write_private
from api_client.emulator.runner.cannot_start import CannotStart
from api_client.emulator.runner.folders import NODE_PREFIX, WEIGHTS_FOLDER, JobFolders, NodeFolders
from api_client.emulator.runner.spec import Artifact, JobSpec

OpenArtifact = Callable[[str, str], Path | None]
"""Bucket and key → the uploaded file, or None if there is none."""


def make_folders(folders: JobFolders, spec: JobSpec) -> None:
    """Create the directories of all nodes."""
    for rank in range(spec.node_count):
        node = folders.node(rank)
        for folder in (node.workspace, node.scratch):
            folder.mkdir(parents=True, exist_ok=True)
        if spec.checkpointing:
            node.checkpoints.mkdir(parents=True, exist_ok=True)


def wipe(folders: JobFolders) -> None:
    """Take away what does not outlive a job: scratch space and delivered weights."""
    remove_tree(folders.root / WEIGHTS_FOLDER)
    for node in folders.root.glob(f"{NODE_PREFIX}*"):
        remove_tree(NodeFolders(node).scratch)


def unpack_artifacts(artifacts: tuple[Artifact, ...], node: NodeFolders, open_artifact: OpenArtifact) -> None:
    """Unpack the uploaded archives into a node's working directory.

    An archive is a tar, gzipped or not (API facts, 3.5). Raises ``CannotStart``.
    """
    name = ""
    try:
        with Unpacker(node.workspace) as unpacker:
            for artifact in artifacts:
                name = f"{artifact.bucket}/{artifact.key}"
                archive = open_artifact(artifact.bucket, artifact.key)
                if archive is None:
                    raise CannotStart(f"the artifact {name} was never uploaded")
                unpacker.add(archive)
    except (BadArchive, OSError) as error:
        raise CannotStart(f"the artifact {name} cannot be unpacked: {error}") from error


def write_script(folders: JobFolders, commands: tuple[str, ...]) -> None:
    """Write the start commands as one script that ends at the first one that fails.

    One shell runs them all, so a ``cd`` or an ``export`` holds for those after it. Each goes through
    ``eval``, so that a command which is no whole line of shell (a comment, an open quote) cannot swallow
    the next.
    """
    lines = []
    for command in commands:
        lines.append(f"eval {shlex.quote(command)}")
        lines.append('bt_status=$?; if [ "$bt_status" -ne 0 ]; then exit "$bt_status"; fi')
    write_private(folders.script, ("\n".join(lines) + "\n").encode(errors="surrogateescape"))


def shell() -> str:
    """The shell that runs start commands: bash where there is one.

    Not a login shell: /etc/profile resets PATH on many systems, which would hide the Python
    environment that the emulator was started from.
    """
    found = shutil.which("bash") or shutil.which("sh")
    if found is None:
        raise CannotStart("there is neither bash nor sh on this machine")
    return found
