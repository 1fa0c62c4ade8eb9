"""A file that is not what its name says."""

from __future__ import annotations

from api_client.errors import InvalidAnswer


class UnreadableFile(InvalidAnswer):
    """The file's content cannot be read as what it should be. ``problem`` says why, ``file`` which one."""

    def __init__(self, problem: str, *, file: str = "") -> None:
        super().__init__(f"{file}: {problem}" if file else problem)
        self.problem = problem
        self.file = file
