"""A look into one file of a checkpoint by reading a little of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from api_client.checkpoint_files import SafetensorsHeader, TrainerState, UnreadableFile, is_safetensors
from api_client.checkpoint_files.preview import preview
from api_client.checkpoint_files.trainer_state import FILE_NAME as TRAINER_STATE
from api_client.checkpoint_files.trainer_state import parse_trainer_state
from api_client.client import TrainingClient
from api_client.errors import RequestError
from api_client.models import CheckpointFile, TrainingJob
from tui.insight.text import inert

TEXT_BYTES = 256 * 1024
"""So much of a text is read; more of it is downloaded rather than read here."""
STATE_BYTES = 16 * 1024 * 1024
"""A trainer's record is read up to this size, as its curves need all of it."""
PEEK_BYTES = 512
"""So much is read of what is no text, or may be none."""
TEXT_ENDINGS = frozenset(
    (".json", ".jsonl", ".md", ".txt", ".yaml", ".yml", ".py", ".toml", ".jinja", ".log")
)
LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True)
class FileLook:
    """What a look told.

    ``header`` is of safetensors, ``state`` of a trainer_state.json. ``text`` is what was read of a text
    (``is_cut``: there is more); ``peek`` the first bytes of anything else. ``read_bytes`` says how much
    crossed the network. ``problem`` is why the file is not what its name says, ``error`` why nothing could
    be read; neither is inert.
    """

    file: CheckpointFile
    read_bytes: int = 0
    header: SafetensorsHeader | None = None
    state: TrainerState | None = None
    text: str | None = None
    is_cut: bool = False
    peek: bytes = b""
    problem: str = ""
    error: str = ""


async def look_into(client: TrainingClient, job: TrainingJob, file: CheckpointFile) -> FileLook:
    """Read a little of the file; never raises what the server or the network may do."""
    try:
        if is_safetensors(file.relative_file_name) and file.size_bytes:
            return await _weights(client, job, file)
        return await _content(client, job, file)
    except RequestError as error:
        return FileLook(file, error=inert(str(error)))


async def _weights(client: TrainingClient, job: TrainingJob, file: CheckpointFile) -> FileLook:
    try:
        header = await client.checkpoint_contents.safetensors_header(job.project_id, job.id, file)
    except UnreadableFile as error:
        look = await _content(client, job, file, length=PEEK_BYTES)
        return FileLook(file, look.read_bytes, text=look.text, peek=look.peek, problem=error.problem)
    return FileLook(file, header.header_bytes + LENGTH_BYTES, header=header)


async def _content(
    client: TrainingClient, job: TrainingJob, file: CheckpointFile, *, length: int | None = None
) -> FileLook:
    if not file.size_bytes:
        return FileLook(file)
    path = PurePosixPath(file.relative_file_name)
    if length is None:
        length = TEXT_BYTES if path.suffix.lower() in TEXT_ENDINGS else PEEK_BYTES
    is_state = path.name == TRAINER_STATE and file.size_bytes <= STATE_BYTES
    if is_state:
        length = STATE_BYTES
    content = await client.checkpoint_contents.read(
        job.project_id, job.id, file, length=min(length, file.size_bytes)
    )
    seen = preview(content, file.size_bytes)
    if length == PEEK_BYTES and seen.text is not None and not seen.is_whole:
        content += await client.checkpoint_contents.read(
            job.project_id, job.id, file, start=len(content), length=TEXT_BYTES - PEEK_BYTES
        )
        seen = preview(content, file.size_bytes)
    look = FileLook(file, len(content), text=seen.text, is_cut=not seen.is_whole, peek=content[:PEEK_BYTES])
    if not is_state:
        return look
    try:
        state = parse_trainer_state(content)
    except UnreadableFile as error:
        return FileLook(file, len(content), text=seen.text, is_cut=not seen.is_whole, problem=error.problem)
    return FileLook(file, len(content), state=state, text=seen.text, is_cut=not seen.is_whole)
